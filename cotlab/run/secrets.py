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
from cotlab.providers.keys import FROM_FILES, KEY_VARIABLES, SEND_TO

ACCESS = (
    "COTLAB_ADMINS",
    "COTLAB_LABELLERS",
    "COTLAB_TRUSTED_HEADER",
    "COTLAB_PROXY_SECRET",
    "COTLAB_OPEN",
)
"""Who may do what. Those of ``.env`` are read anew whenever somebody asks, so that a change holds
at the next action."""
_USERS = (
    "COTLAB_CHROME",
    "COTLAB_STORE",
    SEND_TO,
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
    env, toml = folder / ".env", folder / ".streamlit" / "secrets.toml"
    lines, table = _lines(env, interpolate=False), _table(toml)
    _refuse(env, [name for name, value in lines.items() if value and name not in os.environ])
    # the dashboard's package brings the top of secrets.toml into the environment when it reads a
    # login there
    _refuse(toml, [name for name, value in table.items() if os.environ.get(name) == str(value)])
    taken = {name: value for name, value in lines.items() if name in _names()} if lines else {}
    for name, value in taken.items():
        if "${" in (value or "") and not os.environ.get(name):
            raise ConfigError(
                f"{env}: variables are not filled in there: write the value of {name} itself."
            )
    for name, value in taken.items():
        _set(name, value, env)
    for name in KEY_VARIABLES.values():
        value = table.get(name)
        if isinstance(value, str):
            _set(name, value, toml)
    url = table.get("COTLAB_BASE_URL")
    if isinstance(url, str) and os.environ.get("COTLAB_BASE_URL") == url:
        FROM_FILES["COTLAB_BASE_URL"] = str(toml), url


def _refuse(path: Path, names: Sequence[str]) -> None:
    """Raise where a file sets what only the user may."""
    found = [name for name in names if name in _USERS or name.lower().endswith("_proxy")]
    if found:
        raise ConfigError(
            f"{path}: {', '.join(found)} cannot be set there: a file of a folder names no program,"
            " and no place for keys and results. Take the line out; if you mean it, type:"
            f" {' '.join(['export', *(f'{name}=VALUE' for name in found)])}"
        )


@lru_cache(maxsize=1)
def _names() -> dict[str, tuple[str, ...]]:
    """Return the variables that ``.env`` may set, keys and options, each with all its names.

    The environment wins over ``.env`` under any name of an option.
    """
    from cotlab.run.config import run_fields  # its packages take longer to load than many a command

    keys = {name: (name,) for name in KEY_VARIABLES.values()}
    options = {name: f.variables for f in run_fields().values() for name in f.variables}
    return keys | options


def access_settings(folder: Path) -> dict[str, str]:
    """Return who may do what, by the names of ``ACCESS``; the environment wins over ``.env``.

    Raises
    ------
    ConfigError
        If ``.env`` or ``secrets.toml``, where a login may be set up, cannot be read: then nobody is
        to be let in.
    """
    files = (folder / ".env", folder / ".streamlit" / "secrets.toml")
    settings = _access(*(str(file) for file in files), *(_stamp(file) for file in files))
    return {name: os.environ.get(name) or settings.get(name, "") for name in ACCESS}


@lru_cache(maxsize=8)
def _access(env: str, toml: str, env_stamp: object, toml_stamp: object) -> dict[str, str]:
    _table(Path(toml))
    return {name: value for name, value in _lines(Path(env)).items() if name in ACCESS and value}


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Return what changes with a file; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _lines(path: Path, *, interpolate: bool = True) -> dict[str, str | None]:
    try:
        return dict(dotenv_values(path, interpolate=interpolate)) if path.is_file() else {}
    except (ValueError, OSError):
        raise ConfigError(f"{path}: not a text file. Keys are written NAME=value.") from None


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    except (ValueError, OSError):
        raise ConfigError(f'{path}: not a TOML file. Keys are written NAME = "value".') from None


def _set(name: str, value: str | None, file: Path) -> None:
    """Set a variable that the environment lacks; an empty key is missing, an empty option not."""
    is_key = name in KEY_VARIABLES.values()
    names = (name,) if is_key else _names()[name]
    current = any(os.environ.get(other) for other in names)
    if value is not None and not current and (value if is_key else name not in os.environ):
        os.environ[name] = value
        FROM_FILES[name] = str(file), value
