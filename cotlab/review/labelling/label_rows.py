"""Labels as rows of a JSONL or CSV file, validated field by field."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from cotlab.core.errors import CotlabError
from cotlab.core.keys import digest
from cotlab.core.labels import FAILURE_MODES, VERDICTS, Label
from cotlab.review.labelling.queue import KINDS

FIELDS = (
    "id",
    "run",
    "item_id",
    "rater",
    "queue",
    "reasoning",
    "answer_correct",
    "modes",
    "note",
    "flagged",
    "withdrawn",
    "origin",
    "at",
    "queue_kind",
)
"""Fields of a row."""
NEEDED = ("run", "item_id", "rater")
"""Fields that every row needs."""
FORMATS = ("jsonl", "csv")
ORIGINS = ("page", "import", "undo")
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""A cell that a spreadsheet would run: =SUM(A1), +1, @now; with quotes before it: '=SUM(A1)."""
_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character: a lone \\ud83d."""


class LabelError(CotlabError):
    """One defect of a file of labels.

    ``line`` counts from 1; it is None for a defect of the file itself.
    """

    def __init__(self, path: str, line: int | None, field: str, message: str) -> None:
        self.path, self.line, self.field, self.message = path, line, field, message
        location = f"{path}:{line}" if line is not None else path
        super().__init__(f"{location}: {field + ': ' if field else ''}{message}")


class RowDefect(Exception):
    """A defect of a line."""

    def __init__(self, field: str, message: str) -> None:
        self.field, self.message = field, message
        super().__init__(message)


def read_rows(
    path: Path, form: str, errors: list[LabelError]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the number and fields of each line; unreadable ones are added to ``errors``."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise LabelError(str(path), None, "", f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise LabelError(
            str(path), None, "", f"is not UTF-8 at byte {error.start}: save it as UTF-8"
        ) from error
    if form == "jsonl":
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError) as error:
                    errors.append(LabelError(str(path), number, "", f"is no JSON: {error}"))
                    continue
                if isinstance(row, dict):
                    yield number, row
                else:
                    errors.append(
                        LabelError(str(path), number, "", "is no JSON object: one label a line")
                    )
        return
    table = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        head = next(table, [])
        _check_names(head, path)
        for cells in table:
            if len(cells) == len(head):
                yield (
                    table.line_num,
                    {name: _parse_cell(name, cell) for name, cell in zip(head, cells, strict=True)},
                )
            elif cells:
                errors.append(
                    LabelError(
                        str(path),
                        table.line_num,
                        "",
                        f"has {len(cells)} cells under {len(head)} names",
                    )
                )
    except csv.Error as error:
        raise LabelError(str(path), table.line_num, "", f"is no CSV: {error}") from error


def _check_names(head: Sequence[str], path: Path) -> None:
    for name in head:
        if name not in FIELDS:
            if len(re.findall(r"\w+", name)) > 1 and set(re.findall(r"\w+", name)) <= set(FIELDS):
                raise LabelError(
                    str(path),
                    1,
                    "",
                    f"its columns are not separated by commas: {name!r}; save it with commas",
                )
            raise LabelError(str(path), 1, name, _unknown_field(name))
    missing = [name for name in NEEDED if name not in head]
    if missing or len(set(head)) < len(head):
        what = f"the column {missing[0]} is missing" if missing else "a column's name occurs twice"
        raise LabelError(str(path), 1, "", f"{what}; columns: {', '.join(FIELDS)}")


def _unknown_field(name: str) -> str:
    close = get_close_matches(name, FIELDS, n=1)
    return (
        f"is no field of a label.{f' Did you mean {close[0]}?' if close else ''} Fields:"
        f" {', '.join(FIELDS)}"
    )


def parse_label(row: Mapping[str, Any], seen: Counter[str]) -> Label:
    """Return the label of a line.

    ``seen`` counts equal lines without an id, the second of which is another label.
    """
    for name, value in row.items():
        if name not in FIELDS:
            raise RowDefect(name, _unknown_field(name))
        if isinstance(value, str) and _SURROGATE.search(value):
            raise RowDefect(name, "holds half of a character (a lone surrogate)")
    run, item, rater = (_string(row, name) for name in NEEDED)
    for name, text in zip(NEEDED, (run, item, rater), strict=True):
        if not text.strip():
            raise RowDefect(name, "is missing")
    withdrawn, flagged = _truth(row, "withdrawn") or False, _truth(row, "flagged") or False
    reasoning = _string(row, "reasoning") or None
    if reasoning not in VERDICTS and not (withdrawn and reasoning is None):
        problem = "is missing" if reasoning is None else f"{reasoning!r} is no verdict"
        raise RowDefect("reasoning", f"{problem}: one of {', '.join(VERDICTS)}")
    modes = row.get("modes") or []
    if not isinstance(modes, list) or not all(isinstance(mode, str) for mode in modes):
        raise RowDefect("modes", f"is a list of {', '.join(FAILURE_MODES)}")
    for mode in modes:
        if mode not in FAILURE_MODES:
            raise RowDefect(
                "modes", f"{mode!r} is no failure mode: one of {', '.join(FAILURE_MODES)}"
            )
    origin = _string(row, "origin") or "import"
    if origin not in ORIGINS:
        raise RowDefect("origin", f"{origin!r} is none: one of {', '.join(ORIGINS)}")
    at = _time(row)
    fields: dict[str, Any] = {
        "run_id": run,
        "item_id": item,
        "rater": rater,
        "reasoning": reasoning,
        "answer_correct": _truth(row, "answer_correct"),
        "modes": tuple(modes),
        "note": _string(row, "note"),
        "flagged": flagged,
        "withdrawn": withdrawn,
        "queue": _string(row, "queue") or None,
        "origin": origin,
    }
    name = _string(row, "id")
    if not name:
        content = digest([fields, at.isoformat() if at else None])
        name = digest(["imported", content, seen[content]])[:24]
        seen[content] += 1
    return Label(id=name, at=at or datetime.now(UTC), **fields)


def parse_queue_kind(row: Mapping[str, Any]) -> str | None:
    """Return the kind of the queue that a line is from, None where it names none."""
    kind = _string(row, "queue_kind") or None
    if kind is not None and kind not in KINDS:
        raise RowDefect("queue_kind", f"{kind!r} is no kind of queue: one of {', '.join(KINDS)}")
    if kind is not None and not row.get("queue"):
        raise RowDefect("queue_kind", f"is {kind!r}, and the line names no queue")
    return kind


def label_record(label: Label) -> dict[str, Any]:
    """Return a label as the fields of a row."""
    return {
        "id": label.id,
        "run": label.run_id,
        "item_id": label.item_id,
        "rater": label.rater,
        "queue": label.queue,
        "reasoning": label.reasoning,
        "answer_correct": label.answer_correct,
        "modes": list(label.modes),
        "note": label.note,
        "flagged": label.flagged,
        "withdrawn": label.withdrawn,
        "origin": label.origin,
        "at": label.at.astimezone(UTC).isoformat(),
    }


def format_cell(value: Any) -> str:
    """Return the text of a CSV cell.

    A quote is put before what a spreadsheet would run, also where one stands there already, and is
    removed on reading.
    """
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    text = " ".join(value) if isinstance(value, list) else str(value)
    return f"'{text}" if _FORMULA.match(text) else text


def _parse_cell(name: str, cell: str) -> Any:
    text = cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
    return (
        re.split(r"[\s;,]+", text.strip())
        if name == "modes" and text.strip()
        else []
        if name == "modes"
        else text
    )


def _string(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RowDefect(name, f"is text, got {type(value).__name__}")
    return value


def _truth(row: Mapping[str, Any], name: str) -> bool | None:
    value = row.get(name)
    if isinstance(value, bool) or value is None:
        return value
    word = str(value).strip().lower()
    if word and word not in _TRUTH:
        raise RowDefect(name, f"{value!r} is neither true nor false")
    return _TRUTH.get(word)


def _time(row: Mapping[str, Any]) -> datetime | None:
    text = _string(row, "at").strip()
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise RowDefect(
            "at", f"{text!r} is no time: write it as 2026-11-21T18:00:00+00:00"
        ) from None
    if at.tzinfo is None:
        raise RowDefect("at", f"{text!r} names no time zone: write it as {text}+00:00, say")
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise RowDefect("at", f"{text!r} is out of range") from None
