"""Where keys may lie beside the environment: ``.env`` and ``.streamlit/secrets.toml`` of the working directory."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from dotenv import dotenv_values

from cotlab.core.errors import ConfigError
from cotlab.providers.keys import KEYS

_OTHER_NAME = {"COTLAB_TEMPERATURE": "FAITHCHECK_TEMPERATURE", "COTLAB_MAX_COST": "FAITHCHECK_MAX_COST"}
"""Options with two names: the environment wins over ``.env`` under either."""


def load_secrets(folder: Path | None = None) -> None:
    """Bring keys into the environment, which wins over ``.env``, which wins over ``secrets.toml``.

    ``.env`` may hold options too; of ``secrets.toml`` only the vendors' keys are read.

    Raises
    ------
    ConfigError
        If ``secrets.toml`` is no TOML or ``.env`` no text; what they say is never repeated.
    """
    folder = folder or Path.cwd()
    try:
        lines = dotenv_values(folder / ".env") if (folder / ".env").is_file() else {}
    except (ValueError, OSError):
        raise ConfigError(f"{folder / '.env'}: not a text file. Keys are written NAME=value.") from None
    for name, told in lines.items():
        _set(name, told)
    path = folder / ".streamlit" / "secrets.toml"
    try:
        table = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    except (ValueError, OSError):
        raise ConfigError(f"{path}: not a TOML file. Keys are written NAME = \"value\".") from None
    for name in KEYS.values():
        value = table.get(name)
        if isinstance(value, str):
            _set(name, value)


def _set(name: str, value: str | None) -> None:
    """Bring one value into the environment where that has none; an empty key is none, an empty option is one."""
    held = os.environ.get(name) or os.environ.get(_OTHER_NAME.get(name, name))
    is_key = name in KEYS.values()
    if value is not None and not held and (value if is_key else name not in os.environ):
        os.environ[name] = value
