"""Reading a YAML file of options, weights or prices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def read_yaml(path: Path) -> Any:
    """Return what a YAML file holds, as plain values.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is no YAML of plain values; of a tag that does not fit its value, such as
        ``!!bool x``, the parser raises errors of any kind.
    """
    text = path.read_text("utf-8")
    try:
        return yaml.safe_load(text)
    except (
        *(yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError),
        *(ArithmeticError, RecursionError),
    ) as error:
        raise ValueError(" ".join(str(error).split())[:200] or type(error).__name__) from error
