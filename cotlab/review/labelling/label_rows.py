"""Labels as rows of a JSONL or CSV file, validated field by field."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from cotlab.core.errors import CotlabError
from cotlab.core.keys import digest
from cotlab.core.labels import (
    FAILURE_MODES,
    STEP_VERDICTS,
    VERDICTS,
    Label,
    first_mistake_of,
    step_defect,
    verdict_from_steps,
)
from cotlab.review.labelling.queue import QUEUE_KINDS
from cotlab.store.labels import LABEL_COLUMNS

STEP_FIELDS = ("steps_judged", "first_wrong_step", "step_verdicts", "faithful", "steps_digest")
"""Fields of what a rater says of the steps, which count from 0."""
ROW_FIELDS = (
    *(name for name in LABEL_COLUMNS if name not in ("at_", "seq", *STEP_FIELDS)),
    *("at", "queue_kind", *STEP_FIELDS),
)
"""Fields of a row."""
REQUIRED_FIELDS = ("run", "item_id", "rater")
"""Fields that every row needs."""
FILE_FORMATS = ("jsonl", "csv")
_STEP_DEFAULTS = {field.name: field.default for field in fields(Label) if field.name in STEP_FIELDS}
NO_VERDICT = "none"
"""Word of a step without a verdict in a CSV cell."""
LABEL_ORIGINS = ("page", "open", "import", "undo")
_BOOL_BY_WORD = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_FORMULA_RE = re.compile(r"'*[=+\-@\t\r]")
"""A cell that a spreadsheet would run: =SUM(A1), +1, @now; with quotes before it: '=SUM(A1)."""
_SURROGATE_RE = re.compile("[\ud800-\udfff]")
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
    path: Path, file_format: str, errors: list[LabelError]
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
    if file_format == "jsonl":
        lines = ((n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip())
        for number, line in lines:
            try:
                row = json.loads(line)
                defect = "" if isinstance(row, dict) else "is no JSON object: one label a line"
            except (ValueError, RecursionError) as error:
                defect = f"is no JSON: {error}"
            if defect:
                errors.append(LabelError(str(path), number, "", defect))
            else:
                yield number, row
        return
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        column_names = next(reader, [])
        _check_columns(column_names, path)
        for cells in reader:
            if len(cells) == len(column_names):
                pairs = zip(column_names, cells, strict=True)
                yield reader.line_num, {name: _parse_cell(name, cell) for name, cell in pairs}
            elif cells:
                message = f"has {len(cells)} cells under {len(column_names)} names"
                errors.append(LabelError(str(path), reader.line_num, "", message))
    except csv.Error as error:
        raise LabelError(str(path), reader.line_num, "", f"is no CSV: {error}") from error


def _check_columns(column_names: Sequence[str], path: Path) -> None:
    for name in (name for name in column_names if name not in ROW_FIELDS):
        words = re.findall(r"\w+", name)
        if len(words) > 1 and set(words) <= set(ROW_FIELDS):
            message = f"its columns are not separated by commas: {name!r}; save it with commas"
            raise LabelError(str(path), 1, "", message)
        raise LabelError(str(path), 1, name, _unknown_field_text(name))
    missing_columns = [name for name in REQUIRED_FIELDS if name not in column_names]
    if missing_columns or len(set(column_names)) < len(column_names):
        problem = (
            f"the column {missing_columns[0]} is missing"
            if missing_columns
            else "a column's name occurs twice"
        )
        raise LabelError(str(path), 1, "", f"{problem}; columns: {', '.join(ROW_FIELDS)}")


def _unknown_field_text(name: str) -> str:
    close_names = get_close_matches(name, ROW_FIELDS, n=1)
    return (
        f"is no field of a label.{f' Did you mean {close_names[0]}?' if close_names else ''}"
        f" Fields: {', '.join(ROW_FIELDS)}"
    )


def parse_label(row: Mapping[str, Any], n_by_content: Counter[str]) -> Label:
    """Return the label of a line.

    ``n_by_content`` counts equal lines without an id, the second of which is another label.
    """
    for field_name, value in row.items():
        if field_name not in ROW_FIELDS:
            raise RowDefect(field_name, _unknown_field_text(field_name))
        if isinstance(value, str) and _SURROGATE_RE.search(value):
            raise RowDefect(field_name, "holds half of a character (a lone surrogate)")
    run, item, rater = (_read_string(row, field_name) for field_name in REQUIRED_FIELDS)
    for field_name, text in zip(REQUIRED_FIELDS, (run, item, rater), strict=True):
        if not text.strip():
            raise RowDefect(field_name, "is missing")
    withdrawn = _read_bool(row, "withdrawn") or False
    flagged = _read_bool(row, "flagged") or False
    step_fields = _read_steps(row)
    reasoning = _read_string(row, "reasoning") or verdict_from_steps(
        step_fields["steps_judged"], step_fields["first_wrong_step"]
    )
    if reasoning not in VERDICTS and not (withdrawn and reasoning is None):
        problem_text = "is missing" if reasoning is None else f"{reasoning!r} is no verdict"
        raise RowDefect("reasoning", f"{problem_text}: one of {', '.join(VERDICTS)}")
    if defect := step_defect(
        reasoning,
        step_fields["steps_judged"],
        step_fields["first_wrong_step"],
        step_fields["step_verdicts"],
    ):
        raise RowDefect("first_wrong_step", defect)
    modes = row.get("modes") or []
    failure_mode_names = ", ".join(FAILURE_MODES)
    if not isinstance(modes, list) or not all(isinstance(mode, str) for mode in modes):
        raise RowDefect("modes", f"is a list of {failure_mode_names}")
    if unknown_modes := [mode for mode in modes if mode not in FAILURE_MODES]:
        raise RowDefect(
            "modes", f"{unknown_modes[0]!r} is no failure mode: one of {failure_mode_names}"
        )
    origin = _read_string(row, "origin") or "import"
    if origin not in LABEL_ORIGINS:
        raise RowDefect("origin", f"{origin!r} is none: one of {', '.join(LABEL_ORIGINS)}")
    given_at = _read_time(row)
    label_fields: dict[str, Any] = {
        "run_id": run,
        "item_id": item,
        "rater": rater,
        "reasoning": reasoning,
        "answer_correct": _read_bool(row, "answer_correct"),
        "modes": tuple(modes),
        "note": _read_string(row, "note"),
        "flagged": flagged,
        "withdrawn": withdrawn,
        "queue": _read_string(row, "queue") or None,
        "origin": origin,
        # only where there are any: a line without them has the digest that it always had
        **{
            name: value
            for name, value in step_fields.items()
            if value is not _STEP_DEFAULTS[name] and value != ()
        },
    }
    label_id = _read_string(row, "id")
    if not label_id:
        content_digest = digest([label_fields, given_at.isoformat() if given_at else None])
        label_id = digest(["imported", content_digest, n_by_content[content_digest]])[:24]
        n_by_content[content_digest] += 1
    return Label(id=label_id, at=given_at or datetime.now(UTC), **label_fields)


def _read_steps(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a line says of the steps; -1 is the first wrong step where none is wrong."""
    verdicts = row.get("step_verdicts") or []
    if not isinstance(verdicts, list) or not all(
        verdict is None or verdict in STEP_VERDICTS for verdict in verdicts
    ):
        raise RowDefect(
            "step_verdicts", f"is a list of {', '.join(STEP_VERDICTS)} and null, one a step"
        )
    is_judged, first = first_mistake_of(verdicts)
    number = row.get("first_wrong_step")
    if isinstance(number, str):
        text = number.strip()
        if text and not re.fullmatch(r"-1|[0-9]{1,9}", text):
            raise RowDefect("first_wrong_step", f"{number!r} is no number of a step from 0, nor -1")
        number = int(text) if text else None
    if number is not None:
        if type(number) is not int or not -1 <= number < 2**31:
            raise RowDefect("first_wrong_step", f"{number!r} is no number of a step from 0, nor -1")
        is_judged, first = True, None if number == -1 else number
    stated = _read_bool(row, "steps_judged")
    if stated is False and number is not None:
        raise RowDefect(
            "steps_judged", f"is false, and the first wrong step is {number}: leave one out"
        )
    if stated is not None:
        is_judged = stated
        first = first if stated else None
    return {
        "steps_judged": is_judged,
        "first_wrong_step": first,
        "step_verdicts": tuple(verdicts),
        "faithful": _read_bool(row, "faithful"),
        "steps_digest": _read_string(row, "steps_digest") or None,
    }


def parse_queue_kind(row: Mapping[str, Any]) -> str | None:
    """Return the kind of the queue that a line is from, None where it names none."""
    kind = _read_string(row, "queue_kind") or None
    if kind is not None and kind not in QUEUE_KINDS:
        raise RowDefect(
            "queue_kind", f"{kind!r} is no kind of queue: one of {', '.join(QUEUE_KINDS)}"
        )
    if kind is not None and not row.get("queue"):
        raise RowDefect("queue_kind", f"is {kind!r}, and the line names no queue")
    return kind


def label_record(label: Label) -> dict[str, Any]:
    """Return a label as the fields of a row."""
    record = asdict(label) | {
        "run": label.run_id,
        "modes": list(label.modes),
        "step_verdicts": list(label.step_verdicts),
        "at": label.at.astimezone(UTC).isoformat(),
    }
    return {name: record[name] for name in ROW_FIELDS if name != "queue_kind"}


def format_cell(value: Any) -> str:
    """Return the text of a CSV cell.

    A quote is put before what a spreadsheet would run, also where one stands there already, and is
    removed on reading.
    """
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    text = (
        " ".join(NO_VERDICT if word is None else word for word in value)
        if isinstance(value, list)
        else str(value)
    )
    return f"'{text}" if _FORMULA_RE.match(text) else text


def _parse_cell(name: str, cell: str) -> Any:
    text = cell[1:] if cell.startswith("'") and _FORMULA_RE.match(cell) else cell
    if name not in ("modes", "step_verdicts"):
        return text
    words = re.split(r"[\s;,]+", text.strip()) if text.strip() else []
    return words if name == "modes" else [None if word == NO_VERDICT else word for word in words]


def _read_string(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RowDefect(name, f"is text, got {type(value).__name__}")
    return value


def _read_bool(row: Mapping[str, Any], name: str) -> bool | None:
    value = row.get(name)
    if isinstance(value, bool) or value is None:
        return value
    word = str(value).strip().lower()
    if word and word not in _BOOL_BY_WORD:
        raise RowDefect(name, f"{value!r} is neither true nor false")
    return _BOOL_BY_WORD.get(word)


def _read_time(row: Mapping[str, Any]) -> datetime | None:
    text = _read_string(row, "at").strip()
    if not text:
        return None
    try:
        parsed_time = datetime.fromisoformat(text)
    except ValueError:
        raise RowDefect(
            "at", f"{text!r} is no time: write it as 2026-11-21T18:00:00+00:00"
        ) from None
    if parsed_time.tzinfo is None:
        raise RowDefect("at", f"{text!r} names no time zone: write it as {text}+00:00, say")
    try:
        return parsed_time.astimezone(UTC)
    except OverflowError:
        raise RowDefect("at", f"{text!r} is out of range") from None
