"""Options of ``cotlab run`` and ``cotlab plan``, made from the fields of the configuration."""

from __future__ import annotations

import getpass
import inspect
import ipaddress
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from cotlab.core.errors import ConfigError
from cotlab.providers.keys import SEND_TO

if TYPE_CHECKING:
    from cotlab.run.fields import ConfigField


SendKeyTo = Annotated[
    Optional[list[str]],
    typer.Option(
        "--send-key-to",
        metavar="HOST",
        help="Host that a key may go to besides the vendor's own; repeatable.",
    ),
]
ConfigFile = Annotated[
    Optional[Path], typer.Option("--config", help="A YAML file with any of these options.")
]


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

    fields = [f for f in run_fields().values() if command in f.setting.commands]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def wrapper(**given: Any) -> None:
            function(flags_to_config({f.name: given.pop(f.name) for f in fields}), **given)

        _, *others = inspect.signature(function, eval_str=True).parameters.values()
        parameters = [*map(_parameter, fields), *others]
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
        return wrapper

    return decorate


def _parameter(field: ConfigField) -> inspect.Parameter:
    """Return the option of a field; None means that it was not given, so the environment holds."""
    kind: Any = Path if field.setting.path else field.kind
    if field.kind in (list, dict):
        kind = list[str]
    declared = typer.Option(field.flag, help=field.help, dir_okay=field.setting.path != "file")
    return inspect.Parameter(
        field.name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None,
        annotation=Annotated[Optional[kind], declared],
    )


def flags_to_config(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that were given, as fields of a RunConfig."""
    from cotlab.run.config import run_fields

    given: dict[str, Any] = {}
    for name, value in flags.items():
        if value is None or value is False or value == []:
            continue
        if run_fields()[name].kind is dict:
            given[name] = dict(_pair(name, text) for text in value)
        else:
            given[name] = str(value) if isinstance(value, Path) else value
    return given


def send_key_to(hosts: Sequence[str] | None) -> None:
    """Let keys be sent to these hosts, for this process and those that it starts.

    Raises
    ------
    ConfigError
        If one is no host.
    """
    if not hosts:
        return
    for host in hosts:
        if not _is_host(host):
            raise ConfigError(
                "--send-key-to takes a host like proxy.example.com, without http://, port or path:"
                f" {host!r}"
            )
    os.environ[SEND_TO] = ",".join([os.environ.get(SEND_TO, ""), *hosts])


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

    wrong = [name for name in flags if "resume" not in run_fields()[name].setting.commands]
    wrong += [
        name
        for name, value in (("dry_run", dry_run), ("config", config), ("run_id", run_id))
        if value
    ]
    if wrong:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in wrong)
        raise ConfigError(
            f"{names} cannot go with --resume: it carries out the stored plan. Start a new run"
            " instead."
        )


def _pair(flag: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--{flag} needs key=value, got {text!r}")
    return key.strip(), value.strip()


def acting_user(by: str | None) -> str:
    """Return the given name, else that of whoever is logged in here; never an empty one."""
    if by is not None and by.strip():
        return by.strip()
    try:
        return getpass.getuser().strip() or "command line"
    except (OSError, KeyError):  # a container's user may have no name
        return "command line"
