"""Suites from bytes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from cotlab.core.errors import SuiteError, SuiteErrors
from cotlab.core.types import Suite
from cotlab.suites.jsonl import load_suite


def parse_suite(data: bytes, **options: Any) -> Suite:
    """Return the suite of a file ``s.jsonl`` with these bytes."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        path.write_bytes(data)
        return load_suite(path, **options)


def defects(data: bytes, **options: Any) -> list[SuiteError]:
    """Return what is wrong with such a file."""
    with pytest.raises(SuiteErrors) as caught:
        parse_suite(data, **options)
    str(caught.value).encode()  # can be shown on any terminal
    return list(caught.value.errors)
