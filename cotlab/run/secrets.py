"""Where keys may lie beside the environment: ``.env`` and ``.streamlit/secrets.toml`` of the working directory."""

from __future__ import annotations

import os
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from cotlab.core.errors import ConfigError
from cotlab.providers.keys import KEYS

_OTHER_NAME = {"COTLAB_TEMPERATURE": "FAITHCHECK_TEMPERATURE", "COTLAB_MAX_COST": "FAITHCHECK_MAX_COST"}
"""Options with two names: the environment wins over ``.env`` under either."""
ACCESS = ("COTLAB_ADMINS", "COTLAB_LABELLERS", "COTLAB_TRUSTED_HEADER", "COTLAB_PROXY_SECRET", "COTLAB_OPEN")
"""Who may do what. Those of ``.env`` are read anew whenever somebody asks, so that a change holds at the next action."""


def load_secrets(folder: Path | None = None) -> None:
    """Bring keys into the environment, which wins over ``.env``, which wins over ``secrets.toml``.

    ``.env`` may hold options too; of ``secrets.toml`` only the vendors' keys are read.

    Raises
    ------
    ConfigError
        If ``secrets.toml`` is no TOML or ``.env`` no text; what they say is never repeated.
    """
    folder = folder or Path.cwd()
    for name, told in _lines(folder / ".env").items():
        if name not in ACCESS:
            _set(name, told)
    table = _table(folder / ".streamlit" / "secrets.toml")
    for name in KEYS.values():
        value = table.get(name)
        if isinstance(value, str):
            _set(name, value)


def access_settings(folder: Path) -> dict[str, str]:
    """Who may do what, by the names of ``ACCESS``: the environment wins over ``.env``, as it stands now.

    Raises
    ------
    ConfigError
        If ``.env`` or ``secrets.toml``, where a login may be set up, cannot be read: then nobody is to be let in.
    """
    files = (folder / ".env", folder / ".streamlit" / "secrets.toml")
    told = _access(*(str(file) for file in files), *(_stamp(file) for file in files))
    return {name: os.environ.get(name) or told.get(name, "") for name in ACCESS}


@lru_cache(maxsize=8)
def _access(env: str, toml: str, env_stamp: object, toml_stamp: object) -> dict[str, str]:
    _table(Path(toml))
    return {name: value for name, value in _lines(Path(env)).items() if name in ACCESS and value}


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes with a file; None where there is none."""
    try:
        told = path.stat()
    except OSError:
        return None
    return told.st_mtime_ns, told.st_size, told.st_ino


def _lines(path: Path) -> dict[str, str | None]:
    try:
        return dict(dotenv_values(path)) if path.is_file() else {}
    except (ValueError, OSError):
        raise ConfigError(f"{path}: not a text file. Keys are written NAME=value.") from None


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    except (ValueError, OSError):
        raise ConfigError(f"{path}: not a TOML file. Keys are written NAME = \"value\".") from None


def _set(name: str, value: str | None) -> None:
    """Bring one value into the environment where that has none; an empty key is none, an empty option is one."""
    held = os.environ.get(name) or os.environ.get(_OTHER_NAME.get(name, name))
    is_key = name in KEYS.values()
    if value is not None and not held and (value if is_key else name not in os.environ):
        os.environ[name] = value
