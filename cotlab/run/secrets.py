"""Where keys may lie beside the environment: ``.env`` and ``.streamlit/secrets.toml`` of the working directory."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from dotenv import load_dotenv

from cotlab.core.errors import ConfigError
from cotlab.providers.keys import KEYS


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
        load_dotenv(folder / ".env")
    except (ValueError, OSError):
        raise ConfigError(f"{folder / '.env'}: not a text file. Keys are written NAME=value.") from None
    path = folder / ".streamlit" / "secrets.toml"
    try:
        told = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    except (ValueError, OSError):
        raise ConfigError(f"{path}: not a TOML file. Keys are written NAME = \"value\".") from None
    for name in KEYS.values():
        value = told.get(name)
        if isinstance(value, str) and value:
            os.environ.setdefault(name, value)
