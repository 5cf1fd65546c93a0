"""Labels as files: JSONL or CSV, out of the store and back into it, checked line by line."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from cotlab.core.errors import CotlabError, UnknownName
from cotlab.core.keys import digest
from cotlab.core.labels import FAILURE_MODES, VERDICTS, Label
from cotlab.review.labelling.queue import KINDS
from cotlab.store import labels as label_store
from cotlab.store.database import Store

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
NEEDED = ("run", "item_id", "rater")
FORMATS = ("jsonl", "csv")
ORIGINS = ("page", "import", "undo")
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_MAX_CLOCK_SKEW = timedelta(days=1)
"""So far a clock elsewhere may be ahead; what is said to come later than a fit would count as
labelled after it."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class LabelError(CotlabError):
    """One defect of a file of labels. ``line`` counts from 1; None where the whole file is meant."""

    def __init__(self, path: str, line: int | None, field: str, message: str) -> None:
        self.path, self.line, self.field, self.message = path, line, field, message
        location = f"{path}:{line}" if line is not None else path
        super().__init__(f"{location}: {field + ': ' if field else ''}{message}")


class LabelErrors(CotlabError):
    """All defects of a file of labels at once, in line order."""

    def __init__(self, errors: Sequence[LabelError], good: int) -> None:
        self.errors, self.good = tuple(errors), good
        listed = "\n".join(str(error) for error in self.errors[:20])
        more = f"\n… and {len(self.errors) - 20} more" if len(self.errors) > 20 else ""
        rest = f" {good} other lines are good: --good-lines takes those." if good else ""
        super().__init__(f"{listed}{more}\nNothing was stored.{rest}")


@dataclass(frozen=True, slots=True)
class Imported:
    """Labels that were ``new``, those that the store ``had`` already, and the defects of lines that were left out."""

    new: int
    had: int
    errors: tuple[LabelError, ...] = ()


def labels_as_text(
    labels: Sequence[Label], form: str = "jsonl", kinds: Mapping[str, str] | None = None
) -> str:
    """Labels as the text of a file; a spreadsheet runs no cell of a CSV as a formula.

    Parameters
    ----------
    labels : sequence of Label
    form : one of ``FORMATS``
    kinds : mapping of queue to kind, optional
        Told with each label of these queues, so that an adjudication is one in the store that
        imports it too.

    Raises
    ------
    UnknownName
        If there is no such format.
    """
    if form not in FORMATS:
        raise UnknownName("format of labels", form, FORMATS)
    rows = [
        _label_record(label) | {"queue_kind": (kinds or {}).get(label.queue or "")}
        for label in labels
    ]
    out = io.StringIO()
    if form == "jsonl":
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return out.getvalue()
    table = csv.writer(
        out
    )  # its own line end, CR LF: with another it would leave a lone CR unquoted
    table.writerow(FIELDS)
    table.writerows([_cell(row[name]) for name in FIELDS] for row in rows)
    return out.getvalue()


def import_labels(store: Store, path: Path, *, good_lines: bool = False) -> Imported:
    """Store the labels of a file, the order of its lines being that in which they were given.

    A label that the store has already is not written again, so that importing a file twice adds
    nothing; a line without an id gets one that is made of what it says. What kind of queue a label
    is from is kept where the store does not have the queue.

    Parameters
    ----------
    path : Path
        JSONL, or CSV where the name ends in ``.csv``. Fields: ``FIELDS``; ``NEEDED`` and, unless
        the label withdraws, ``reasoning`` have to be there. A time has to name its time zone;
        without one the label was given now.
    good_lines : bool
        Store the lines without a defect; otherwise nothing is stored where a line has one.

    Raises
    ------
    LabelErrors
        If lines have defects.
    LabelError
        If the file cannot be read, or no line is good.
    """
    good, errors = _read(path)
    with store.writing() as connection:
        kinds = {
            entry.queue: label_store.queue_kind(connection, entry.queue)
            for _, entry, _ in good
            if entry.queue is not None
        }
        known = label_store.known_items(connection, sorted({label.run_id for _, label, _ in good}))
        existing = {
            entry.id: entry
            for entry in label_store.as_labels(
                label_store.select_labels(connection, ids=[x.id for _, x, _ in good], history=True)
            )
        }
        fits: list[Label] = []
        new_kinds: dict[str, str] = {}
        for line, label, kind in good:
            misfit = _misfit(label, known, existing) or _other_kind(label, kind, kinds)
            if misfit is None:
                fits.append(label)
                existing.setdefault(label.id, label)
                if label.queue is not None and kind is not None and kinds[label.queue] is None:
                    kinds[label.queue] = new_kinds[label.queue] = kind
            else:
                errors.append(LabelError(str(path), line, misfit.field, misfit.message))
        errors.sort(key=lambda error: error.line or 0)
        if errors and not (good_lines and fits):
            raise LabelErrors(errors, len(fits))
        new = label_store.add_labels(connection, fits)
        for queue, kind in new_kinds.items():
            label_store.add_queue(connection, queue, "imported", (), kind=kind, by="import")
    return Imported(new, len(fits) - new, tuple(errors))


def read_label_file(path: Path) -> tuple[list[tuple[int, Label]], list[LabelError]]:
    """The labels of a file, each with its line, and the defects of the others; nothing is looked up in a store."""
    good, errors = _read(path)
    return [(line, label) for line, label, _ in good], errors


def _read(path: Path) -> tuple[list[tuple[int, Label, str | None]], list[LabelError]]:
    """``read_labels`` with the kind of each label's queue, None where the line does not tell it."""
    form = "csv" if path.suffix.lower() == ".csv" else "jsonl"
    errors: list[LabelError] = []
    good: list[tuple[int, Label, str | None]] = []
    seen: Counter[str] = Counter()
    for line, row in _rows(path, form, errors):
        try:
            good.append((line, _label(row, seen), _kind(row)))
        except _Defect as defect:
            errors.append(LabelError(str(path), line, defect.field, defect.message))
    return good, errors


class _Defect(Exception):
    """What is wrong with a line."""

    def __init__(self, field: str, message: str) -> None:
        self.field, self.message = field, message
        super().__init__(message)


def _rows(
    path: Path, form: str, errors: list[LabelError]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The number and the fields of each line; a line that cannot be read joins ``errors``."""
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
                    {name: _uncell(name, cell) for name, cell in zip(head, cells, strict=True)},
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


def _label(row: Mapping[str, Any], seen: Counter[str]) -> Label:
    """The label that a line says; ``seen`` counts equal lines without an id, the second of which is another label."""
    for name, value in row.items():
        if name not in FIELDS:
            raise _Defect(name, _unknown_field(name))
        if isinstance(value, str) and _SURROGATE.search(value):
            raise _Defect(name, "holds half of a character (a lone surrogate)")
    run, item, rater = (_string(row, name) for name in NEEDED)
    for name, text in zip(NEEDED, (run, item, rater), strict=True):
        if not text.strip():
            raise _Defect(name, "is missing")
    withdrawn, flagged = _truth(row, "withdrawn") or False, _truth(row, "flagged") or False
    reasoning = _string(row, "reasoning") or None
    if reasoning not in VERDICTS and not (withdrawn and reasoning is None):
        problem = "is missing" if reasoning is None else f"{reasoning!r} is no verdict"
        raise _Defect("reasoning", f"{problem}: one of {', '.join(VERDICTS)}")
    modes = row.get("modes") or []
    if not isinstance(modes, list) or not all(isinstance(mode, str) for mode in modes):
        raise _Defect("modes", f"is a list of {', '.join(FAILURE_MODES)}")
    for mode in modes:
        if mode not in FAILURE_MODES:
            raise _Defect(
                "modes", f"{mode!r} is no failure mode: one of {', '.join(FAILURE_MODES)}"
            )
    origin = _string(row, "origin") or "import"
    if origin not in ORIGINS:
        raise _Defect("origin", f"{origin!r} is none: one of {', '.join(ORIGINS)}")
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


def _kind(row: Mapping[str, Any]) -> str | None:
    """The kind of the queue that a line is from."""
    kind = _string(row, "queue_kind") or None
    if kind is not None and kind not in KINDS:
        raise _Defect("queue_kind", f"{kind!r} is no kind of queue: one of {', '.join(KINDS)}")
    if kind is not None and not row.get("queue"):
        raise _Defect("queue_kind", f"is {kind!r}, and the line names no queue")
    return kind


def _other_kind(label: Label, kind: str | None, kinds: Mapping[str, str | None]) -> _Defect | None:
    """What keeps a label out because its queue is of another kind in this store, or in a line before."""
    stored_kind = kinds.get(label.queue or "")
    if kind is None or stored_kind is None or kind == stored_kind:
        return None
    return _Defect(
        "queue_kind", f"the queue {label.queue!r} is of the kind {stored_kind!r}, not {kind!r}"
    )


def _misfit(
    label: Label, known: Mapping[str, set[str]], existing: Mapping[str, Label]
) -> _Defect | None:
    """What keeps a label out of this store."""
    if label.run_id not in known:
        return _Defect("run", f"the store has no run {label.run_id!r}: `cotlab runs` lists them")
    if label.item_id not in known[label.run_id]:
        close = get_close_matches(label.item_id, sorted(known[label.run_id]), n=1)
        hint = f": did you mean {close[0]!r}?" if close else ""
        return _Defect(
            "item_id", f"run {label.run_id} has no scores of an item {label.item_id!r}{hint}"
        )
    if label.rater != label.rater.strip():
        return _Defect(
            "rater",
            f"{label.rater!r} has spaces around it: it would be another rater than"
            f" {label.rater.strip()!r}",
        )
    if label.at > datetime.now(UTC) + _MAX_CLOCK_SKEW:
        return _Defect("at", f"{label.at.isoformat()} has not come yet")
    other = existing.get(label.id)
    if other is not None and _label_record(other) | {"at": None} != _label_record(label) | {
        "at": None
    }:
        return _Defect(
            "id", f"{label.id!r} is the id of another label: leave the id out, or give a new one"
        )
    return None


def _label_record(label: Label) -> dict[str, Any]:
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


def _cell(value: Any) -> str:
    """A cell's text. A quote stands before what a spreadsheet would run, also where one stands there already: it goes again."""
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    text = " ".join(value) if isinstance(value, list) else str(value)
    return f"'{text}" if _FORMULA.match(text) else text


def _uncell(name: str, cell: str) -> Any:
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
        raise _Defect(name, f"is text, got {type(value).__name__}")
    return value


def _truth(row: Mapping[str, Any], name: str) -> bool | None:
    value = row.get(name)
    if isinstance(value, bool) or value is None:
        return value
    word = str(value).strip().lower()
    if word and word not in _TRUTH:
        raise _Defect(name, f"{value!r} is neither true nor false")
    return _TRUTH.get(word)


def _time(row: Mapping[str, Any]) -> datetime | None:
    text = _string(row, "at").strip()
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise _Defect("at", f"{text!r} is no time: write it as 2026-11-21T18:00:00+00:00") from None
    if at.tzinfo is None:
        raise _Defect("at", f"{text!r} names no time zone: write it as {text}+00:00, say")
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise _Defect("at", f"{text!r} is out of range") from None
