"""Options of ``cotlab run`` and ``cotlab plan``, made from the fields of the configuration."""

from __future__ import annotations

import getpass
import inspect
import ipaddress
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from cotlab.core.errors import ConfigError
from cotlab.core.keys import canonical_json
from cotlab.providers.keys import SEND_KEY_TO_VARIABLE

if TYPE_CHECKING:
    from cotlab.run.options import ConfigField


SendKeyToOption = Annotated[
    Optional[list[str]],
    typer.Option(
        "--send-key-to",
        metavar="HOST",
        help="Host that a key may go to besides the vendor's own; repeatable.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
ConfigFile = Annotated[
    Optional[Path], typer.Option("--config", help="A YAML file with any of these options.")
]
_FIRST_OPTIONS = (
    *(
        "task_suite",
        "provider",
        "model",
        "base_url",
        "limit",
        "output",
        "scorer",
        "mode",
        "profile",
    ),
    *("chain", "repeats", "temperature", "seed", "embedder", "verifier", "judge", "batch"),
    *("max_concurrent", "max_requests_per_minute", "max_cost", "rr_threshold", "redact_prompts"),
)
"""Fields whose options the help lists first; the others are under Advanced."""


def run_options(command: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of the configuration to a command.

    Parameters
    ----------
    command : {"run", "plan"}
        Only fields of this command become options.

    Returns
    -------
    A decorator of a function whose first parameter gets the given options as fields of a
    RunConfig; its other parameters become options after them.
    """
    from cotlab.run.config import run_fields  # takes longer to load than many a command

    fields = [field for field in run_fields().values() if command in field.setting.commands]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def wrapper(**given_options: Any) -> None:
            function(
                flags_to_config({field.name: given_options.pop(field.name) for field in fields}),
                **given_options,
            )

        _, *other_parameters = inspect.signature(function, eval_str=True).parameters.values()
        parameters = [*map(_option_parameter, fields), *other_parameters]
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return wrapper

    return decorate


def _option_parameter(field: ConfigField) -> inspect.Parameter:
    """Return the option of a field; None means that it was not given, so the environment holds."""
    value_type: Any = Path if field.setting.path else field.value_type
    if field.value_type in (list, dict):
        value_type = list[str]
    elif field.words:
        value_type = str
    metavar = "|".join([f"<{field.value_type.__name__}>", *field.words]) if field.words else None
    typer_option = typer.Option(
        field.flag,
        help=field.help,
        dir_okay=field.setting.path != "file",
        metavar=metavar,
        rich_help_panel=None if field.name in _FIRST_OPTIONS else "Advanced",
    )
    return inspect.Parameter(
        field.name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None,
        annotation=Annotated[Optional[value_type], typer_option],
    )


def flags_to_config(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that were given, as fields of a RunConfig."""
    from cotlab.run.config import run_fields

    given_flags = {
        flag_name: flag_value
        for flag_name, flag_value in flags.items()
        if not (flag_value is None or flag_value is False or flag_value == [])
    }
    for name, value in given_flags.items():
        if run_fields()[name].value_type is dict:
            given_flags[name] = dict(_parse_pair(name, text) for text in value)
        elif isinstance(value, Path):
            given_flags[name] = str(value)
    return given_flags


def allow_key_hosts(hosts: Sequence[str] | None) -> None:
    """Let keys be sent to these hosts, for this process and those that it starts.

    Raises
    ------
    ConfigError
        If one is no host.
    """
    for host in hosts or ():
        if not _is_host(host):
            raise ConfigError(
                "--send-key-to takes a host like proxy.example.com, without http://, port or path:"
                f" {host!r}"
            )
    if hosts:
        os.environ[SEND_KEY_TO_VARIABLE] = ",".join(
            [os.environ.get(SEND_KEY_TO_VARIABLE, ""), *hosts]
        )


def _is_host(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return re.fullmatch(r"[\w-]+(\.[\w-]+)*", text) is not None  # proxy.example.com


def validate_resume_flags(
    flags: Mapping[str, Any], *, dry_run: bool, config: Path | None, run_id: str | None
) -> None:
    """Check the flags that go with ``--resume``: limits and the gate, not what the run measures.

    Raises
    ------
    ConfigError
        If another flag is given.
    """
    from cotlab.run.config import run_fields

    forbidden_names = [
        name for name in flags if "resume" not in run_fields()[name].setting.commands
    ]
    run_flags = {"dry_run": dry_run, "config": config, "run_id": run_id}
    forbidden_names += [name for name, value in run_flags.items() if value]
    forbidden_flags = [f"--{name.replace('_', '-')}" for name in forbidden_names]
    entries = [entry for entry in flags.get("role", {}) if not entry.endswith(".price")]
    forbidden_flags += [f"--role {entry}" for entry in entries]
    if forbidden_flags:
        flags_text = ", ".join(forbidden_flags)
        raise ConfigError(
            f"{flags_text} cannot go with --resume: it carries out the stored plan. Start a new run"
            " instead."
        )


def _parse_pair(flag: str, text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise ConfigError(f"--{flag} needs key=value, got {text!r}")
    return key.strip(), value.strip()


def print_json(value: Any) -> None:
    """Print a value as canonical JSON, on one line."""
    sys.stdout.write(canonical_json(value) + "\n")


@contextmanager
def explain_write_errors(name: str, hint: str = "") -> Iterator[None]:
    """Raise ConfigError where the file ``name`` cannot be written."""
    try:
        yield
    except (OSError, UnicodeEncodeError) as error:
        cause = getattr(error, "strerror", None) or error
        raise ConfigError(f"{name}: cannot be written: {cause}.{hint}") from error


def acting_user(user_name: str | None) -> str:
    """Return the given name, else that of whoever is logged in here; never an empty one."""
    if user_name is not None and user_name.strip():
        return user_name.strip()
    try:
        return getpass.getuser().strip() or "command line"
    except (OSError, KeyError):  # a container's user may have no name
        return "command line"
