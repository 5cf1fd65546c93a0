"""Reads the JSON of published CMI scores; what its rows mean is cotlab.metrics.mediation.published's."""

from __future__ import annotations

import json
from pathlib import Path

from cotlab.core.errors import SuiteError, SuiteErrors
from cotlab.suites.shipped import open_suite_file, printable

MAX_CMI_BYTES = 64 * 2**20


def read_cmi(path: str | Path) -> dict[str, object]:
    """The object in a JSON file of published CMI scores.

    Raises
    ------
    SuiteError
        Where the file cannot be read, is no JSON object in UTF-8, or names a key twice.
    """
    name = printable(str(path))
    try:
        with open_suite_file(path, limit=MAX_CMI_BYTES) as stream:
            raw = stream.read(MAX_CMI_BYTES + 1)
    except SuiteErrors as exc:
        raise exc.errors[0] from exc
    if len(raw) > MAX_CMI_BYTES:
        raise SuiteError(name, None, "", f"has more than the {MAX_CMI_BYTES:,} bytes that are read")
    try:
        parsed = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=_unique_keys)
    except RecursionError as exc:
        raise SuiteError(name, None, "", "is nested too deeply") from exc
    except json.JSONDecodeError as exc:
        raise SuiteError(name, exc.lineno, "", f"is not JSON: {exc.msg}") from exc
    except UnicodeDecodeError as exc:
        raise SuiteError(name, None, "", "is not text in UTF-8") from exc
    except ValueError as exc:  # a whole number of thousands of digits, or a key named twice
        raise SuiteError(name, None, "", f"cannot be read: {printable(str(exc), 120)}") from exc
    if not isinstance(parsed, dict):
        raise SuiteError(name, None, "", "must be a JSON object of items, each with a list of rows")
    return parsed


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {repeated!r} stands twice in one object")
    return mapping
