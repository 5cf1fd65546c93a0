"""Read files of published CMI scores, in each of the forms in which they are published."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cotlab.core.errors import SuiteError
from cotlab.suites.shipped import printable_text, read_file_bytes

MAX_CMI_BYTES = 64 * 2**20
_ROWS_KEY, _RECORDS_KEY, _DROP_KEY = "intervention_records", "records", "cot_drop"


@dataclass(slots=True)
class CMIFile:
    """What a file of published CMI scores holds."""

    rows_by_item: dict[str, object] = field(default_factory=dict)
    """Item → list of rows, as `cotlab.metrics.mediation.published` interprets them."""
    means_by_item: dict[str, float] = field(default_factory=dict)
    """Item → its published mean, of a summary, which has no rows."""


def read_cmi_file(path: str | Path) -> CMIFile:
    """Read a JSON or JSON Lines file of published CMI scores.

    There are six forms: an object of items, each with a list of rows; a suite (a list of records,
    each with an id and ``intervention_records``); results (an object with a list of ``records``);
    the records alone, one a line; one record, or its rows; and a summary (a list of ``ID`` and
    ``CMI_mean``), which has no drops. Records without an id are named by position.

    Raises
    ------
    SuiteError
        If the file cannot be read, is in no such form, or repeats an item or a key.
    """
    name = printable_text(str(path))
    document = _parse(path, name)
    stem = printable_text(Path(path).stem)
    if isinstance(document, dict) and isinstance(document.get(_RECORDS_KEY), list):
        document = document[_RECORDS_KEY]
    elif isinstance(document, dict) and _ROWS_KEY in document:
        document = [{"id": stem, **document}]
    if isinstance(document, dict):
        return CMIFile(rows_by_item=document)
    if not isinstance(document, list) or not document:
        raise SuiteError(name, None, "", "must be a JSON object of items, or a list of records")
    if all(isinstance(row, dict) and _DROP_KEY in row for row in document):
        return CMIFile(rows_by_item={stem: document})
    file = CMIFile()
    for position, (item, record) in enumerate(_records(document, name)):
        if item in file.rows_by_item or item in file.means_by_item:
            message = f"has the id {printable_text(item, 60)!r} of an earlier record"
            raise SuiteError(name, None, f"[{position}]", message)
        mean = record.get("CMI_mean")
        if _ROWS_KEY in record:
            file.rows_by_item[item] = record[_ROWS_KEY]
        elif isinstance(mean, int | float) and not isinstance(mean, bool):
            file.means_by_item[item] = float(mean)
        else:
            message = f"has neither {_ROWS_KEY} nor a number CMI_mean: no form that is known"
            raise SuiteError(name, None, f"[{position}]", message)
    return file


def _records(document: Iterable[object], name: str) -> Iterator[tuple[str, dict[str, object]]]:
    for position, record in enumerate(document):
        if not isinstance(record, dict):
            raise SuiteError(name, None, f"[{position}]", "must be a JSON object")
        item = record.get("id", record.get("ID", f"record-{position:04d}"))
        yield item if isinstance(item, str) else str(item), record


def _parse(path: str | Path, name: str) -> object:
    line = 1
    try:
        text = read_file_bytes(path, MAX_CMI_BYTES).decode("utf-8-sig")
        if Path(path).suffix.lower() != ".jsonl":
            return json.loads(text, object_pairs_hook=_require_unique_keys)
        records = []
        for number, row in enumerate(text.split("\n"), start=1):
            line = number
            if row.strip():
                records.append(json.loads(row, object_pairs_hook=_require_unique_keys))
    except RecursionError as exc:
        raise SuiteError(name, None, "", "is nested too deeply") from exc
    except json.JSONDecodeError as exc:
        line_number = line + exc.lineno - 1
        raise SuiteError(name, line_number, "", f"is not JSON: {exc.msg}") from exc
    except UnicodeDecodeError as exc:
        raise SuiteError(name, None, "", "is not text in UTF-8") from exc
    except ValueError as exc:  # an integer with thousands of digits, or a repeated key
        raise SuiteError(
            name, None, "", f"cannot be read: {printable_text(str(exc), 120)}"
        ) from exc
    return records


def _require_unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated_key = next(key for k, key in enumerate(keys) if key in keys[:k])
        raise ValueError(f"the key {repeated_key!r} stands twice in one object")
    return mapping
