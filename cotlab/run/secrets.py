"""Read keys and options from ``.env`` and ``.streamlit/secrets.toml`` of the working directory.

Whoever wrote the folder wrote these files: they bring keys and options of a run, and nothing that
says which program runs or where a key of the user goes.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from cotlab.core.errors import ConfigError
from cotlab.providers.keys import KEY_VARIABLES, SEND_KEY_TO_VARIABLE, VARIABLES_FROM_FILES

ACCESS_VARIABLES = (
    "COTLAB_ADMINS",
    "COTLAB_LABELLERS",
    "COTLAB_TRUSTED_HEADER",
    "COTLAB_PROXY_SECRET",
    "COTLAB_OPEN",
)
"""Variables of who may do what; ``.env`` is read again for each action, so that a change applies at
once."""
_USER_ONLY_VARIABLES = (
    "COTLAB_CHROME",
    "COTLAB_STORE",
    SEND_KEY_TO_VARIABLE,
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
)
"""Variables that only the user sets, in the environment; so are the proxies."""


def load_secrets(folder: Path | None = None) -> None:
    """Bring keys into the environment, which wins over ``.env``, which wins over ``secrets.toml``.

    ``.env`` may hold options of a run too; of ``secrets.toml`` only the vendors' keys are read.
    Other lines are passed over.

    Raises
    ------
    ConfigError
        If ``secrets.toml`` is no TOML or ``.env`` no text, or if one sets what only the user may
        set: a program, a proxy, the store, where keys go. Then nothing is brought; what the files
        say is never repeated.
    """
    folder = folder or Path.cwd()
    env_file, toml_file = folder / ".env", folder / ".streamlit" / "secrets.toml"
    env_values, toml_values = _read_env(env_file, interpolate=False), _read_toml(toml_file)
    _check_allowed(
        env_file, [name for name, value in env_values.items() if value and name not in os.environ]
    )
    # the dashboard's package brings the top of secrets.toml into the environment when it reads a
    # login there
    _check_allowed(
        toml_file,
        [name for name, value in toml_values.items() if os.environ.get(name) == str(value)],
    )
    allowed_values = (
        {name: value for name, value in env_values.items() if name in _names_by_variable()}
        if env_values
        else {}
    )
    for name, value in allowed_values.items():
        if "${" in (value or "") and not os.environ.get(name):
            raise ConfigError(
                f"{env_file}: variables are not filled in there: write the value of {name} itself."
            )
    for name, value in allowed_values.items():
        _set_variable(name, value, env_file)
    for name in KEY_VARIABLES.values():
        value = toml_values.get(name)
        if isinstance(value, str):
            _set_variable(name, value, toml_file)
    base_url = toml_values.get("COTLAB_BASE_URL")
    if isinstance(base_url, str) and os.environ.get("COTLAB_BASE_URL") == base_url:
        VARIABLES_FROM_FILES["COTLAB_BASE_URL"] = str(toml_file), base_url


def load_key(variable: str, folder: Path | None = None) -> None:
    """Bring one key that a run names into the environment, as ``load_secrets`` does for others."""
    folder = folder or Path.cwd()
    env_file, toml_file = folder / ".env", folder / ".streamlit" / "secrets.toml"
    for file, values in (
        (env_file, _read_env(env_file, interpolate=False)),
        (toml_file, _read_toml(toml_file)),
    ):
        value = values.get(variable)
        if isinstance(value, str) and value and not os.environ.get(variable):
            os.environ[variable] = value
            VARIABLES_FROM_FILES[variable] = str(file), value


def _check_allowed(path: Path, names: Sequence[str]) -> None:
    """Raise where a file sets what only the user may."""
    forbidden_names = [
        name for name in names if name in _USER_ONLY_VARIABLES or name.lower().endswith("_proxy")
    ]
    if forbidden_names:
        raise ConfigError(
            f"{path}: {', '.join(forbidden_names)} cannot be set there: a file of a folder names no"
            " program, and no place for keys and results. Take the line out; if you mean it, type:"
            f" {' '.join(['export', *(f'{name}=VALUE' for name in forbidden_names)])}"
        )


@lru_cache(maxsize=1)
def _names_by_variable() -> dict[str, tuple[str, ...]]:
    """Return the variables that ``.env`` may set, keys and options, each with all its names.

    The environment wins over ``.env`` under any name of an option.
    """
    # its packages take longer to load than many a command
    from cotlab.run.config import FORMER_VARIABLES, run_fields

    names_by_key = {name: (name,) for name in KEY_VARIABLES.values()}
    names_by_option = {
        name: field.env_variables for field in run_fields().values() for name in field.env_variables
    }
    return names_by_key | names_by_option | {name: (name,) for name in FORMER_VARIABLES}


def access_settings(folder: Path) -> dict[str, str]:
    """Return who may do what, by names of ``ACCESS_VARIABLES``; the environment wins over .env.

    Raises
    ------
    ConfigError
        If ``.env`` or ``secrets.toml``, where a login may be set up, cannot be read: then nobody is
        to be let in.
    """
    _read_toml(folder / ".streamlit" / "secrets.toml")
    settings = _read_env(folder / ".env")
    return {name: os.environ.get(name) or settings.get(name) or "" for name in ACCESS_VARIABLES}


def _read_env(path: Path, *, interpolate: bool = True) -> dict[str, str | None]:
    try:
        return dict(dotenv_values(path, interpolate=interpolate)) if path.is_file() else {}
    except (ValueError, OSError):
        raise ConfigError(f"{path}: not a text file. Keys are written NAME=value.") from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    except (ValueError, OSError):
        raise ConfigError(f'{path}: not a TOML file. Keys are written NAME = "value".') from None


def _set_variable(name: str, value: str | None, file: Path) -> None:
    """Set a variable that the environment lacks; an empty key is missing, an empty option not."""
    is_key = name in KEY_VARIABLES.values()
    equivalent_names = (name,) if is_key else _names_by_variable()[name]
    is_set = any(os.environ.get(variable) for variable in equivalent_names)
    if value is not None and not is_set and (value if is_key else name not in os.environ):
        os.environ[name] = value
        VARIABLES_FROM_FILES[name] = str(file), value
