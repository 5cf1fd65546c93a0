"""Labels as JSONL or CSV files: export from the store, and import with every defect reported."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from cotlab.core.errors import CotlabError, UnknownName, join_errors
from cotlab.core.keys import digest
from cotlab.core.labels import (
    FAILURE_MODES,
    Label,
    StepVerdict,
    Verdict,
    first_mistake_of,
    step_defect,
    steps_digest,
    verdict_from_steps,
)
from cotlab.review.labelling.judged_steps import load_judged_steps
from cotlab.review.labelling.queue import QUEUE_KINDS
from cotlab.store import labels as label_store
from cotlab.store.database import Store

FILE_FORMATS = ("jsonl", "csv")
NO_VERDICT = "none"
"""Word of a step without a verdict in a CSV cell."""
LABEL_ORIGINS = ("page", "open", "import", "undo")
STEP_FIELDS = ("steps_judged", "first_wrong_step", "step_verdicts", "faithful", "steps_digest")
"""Fields of what a rater says of the steps, which count from 0."""
_STEP_DEFAULTS = {field.name: field.default for field in fields(Label) if field.name in STEP_FIELDS}
_FREE_TEXTS = ("id", "run", "item_id", "rater", "queue", "note")
_FORMULA_RE = re.compile(r"'*[=+\-@\t\r]")
"""A cell that a spreadsheet would run: =SUM(A1), +1, @now; with quotes before it: '=SUM(A1)."""
_MAX_CLOCK_SKEW = timedelta(days=1)
"""How far another machine's clock may be ahead; later labels would count as given after a fit."""


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


class LabelErrors(CotlabError):
    """All defects of a file of labels, in line order."""

    def __init__(self, errors: Sequence[LabelError], n_good_lines: int) -> None:
        self.errors, self.n_good_lines = tuple(errors), n_good_lines
        good_lines_hint = (
            f" {n_good_lines} other lines are good: --good-lines takes those."
            if n_good_lines
            else ""
        )
        super().__init__(f"{join_errors(self.errors)}\nNothing was stored.{good_lines_hint}")


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Result of an import."""

    n_new: int
    """Labels that were added."""
    n_known: int
    """Labels that the store had already."""
    n_other_steps: int = 0
    """Labels of steps that are not those of the item here: kept, and not held against them."""
    errors: tuple[LabelError, ...] = ()
    """Defects of lines that were left out."""


def labels_as_text(
    labels: Sequence[Label],
    file_format: str = "jsonl",
    kind_by_queue: Mapping[str, str] | None = None,
) -> str:
    """Return labels as the text of a file; no CSV cell runs as a formula in a spreadsheet.

    Parameters
    ----------
    labels : sequence of Label
    file_format : one of ``FILE_FORMATS``
    kind_by_queue : mapping of queue to kind, optional
        Written with each label of these queues, so that an adjudication stays one in the store that
        imports it.

    Raises
    ------
    UnknownName
        If there is no such format.
    """
    if file_format not in FILE_FORMATS:
        raise UnknownName("format of labels", file_format, FILE_FORMATS)
    rows = [
        _label_record(label) | {"queue_kind": (kind_by_queue or {}).get(label.queue or "")}
        for label in labels
    ]
    buffer = io.StringIO()
    if file_format == "jsonl":
        buffer.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return buffer.getvalue()
    # The default line end, CR LF: with another, csv leaves a lone CR unquoted.
    writer = csv.writer(buffer)
    writer.writerow(ROW_FIELDS)
    writer.writerows([_format_cell(row[name]) for name in ROW_FIELDS] for row in rows)
    return buffer.getvalue()


def _one_of(names: Sequence[str]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"{name!r} is none of {', '.join(names)}")
        return name

    return AfterValidator(check)


def _parse_time(value: object) -> datetime:
    try:
        time = datetime.fromisoformat(str(value))
        if time.tzinfo is not None:
            return time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"{value!r} is no time with its zone, as 2026-11-21T18:00:00+00:00 is")


def _parse_step(value: object) -> object:
    return "True" if value is True else "False" if value is False else value  # no number of a step


class LabelRow(BaseModel):
    """A label as the fields of a line.

    Steps count from 0; a ``first_wrong_step`` of -1 says that no step is wrong. A time has to name
    its time zone; without one the label was given now.
    """

    model_config = ConfigDict(extra="forbid")

    id: str = ""
    run: Annotated[str, StringConstraints(pattern=r"\S")]
    item_id: Annotated[str, StringConstraints(pattern=r"\S")]
    rater: Annotated[str, StringConstraints(pattern=r"\S")]
    queue: str | None = None
    reasoning: Verdict | None = None
    answer_correct: bool | None = None
    modes: list[Annotated[str, _one_of(FAILURE_MODES)]] = []
    note: str = ""
    flagged: bool = False
    withdrawn: bool = False
    origin: Annotated[str, _one_of(LABEL_ORIGINS)] = "import"
    at: Annotated[datetime | None, BeforeValidator(_parse_time)] = None
    queue_kind: Annotated[str | None, _one_of(QUEUE_KINDS)] = None
    steps_judged: bool | None = None
    first_wrong_step: Annotated[
        int | None, BeforeValidator(_parse_step), Field(ge=-1, lt=2**31)
    ] = None
    step_verdicts: list[StepVerdict | None] = []
    faithful: bool | None = None
    steps_digest: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, row: Any) -> Any:
        """Leave out fields that say nothing; an unknown one stays, to be refused."""
        if not isinstance(row, dict):
            return row
        stripped = {
            name: value.strip() if isinstance(value, str) and name not in _FREE_TEXTS else value
            for name, value in row.items()
        }
        return {
            name: value
            for name, value in stripped.items()
            if name not in cls.model_fields or (value is not None and value != "")
        }

    def to_label(self, n_by_content: Counter[str]) -> Label:
        """Return the label of the line.

        ``n_by_content`` counts equal lines without an id, the second of which is another label.
        """
        is_judged, first = first_mistake_of(self.step_verdicts)
        if self.first_wrong_step is not None:
            is_judged = True
            first = None if self.first_wrong_step == -1 else self.first_wrong_step
            if self.steps_judged is False:
                raise RowDefect("steps_judged", "is false beside a first wrong step: leave one out")
        if self.steps_judged is not None:
            is_judged, first = self.steps_judged, first if self.steps_judged else None
        reasoning = self.reasoning or verdict_from_steps(is_judged, first)
        if reasoning is None and not self.withdrawn:
            raise RowDefect("reasoning", "is missing: acceptable, not_acceptable or unsure")
        if defect := step_defect(reasoning, is_judged, first, self.step_verdicts):
            raise RowDefect("first_wrong_step", defect)
        if self.queue_kind and not self.queue:
            raise RowDefect("queue_kind", f"is {self.queue_kind!r}, and the line names no queue")
        steps = {
            "steps_judged": is_judged,
            "first_wrong_step": first,
            "step_verdicts": tuple(self.step_verdicts),
            "faithful": self.faithful,
            "steps_digest": self.steps_digest,
        }
        said: dict[str, Any] = {
            "run_id": self.run,
            "item_id": self.item_id,
            "rater": self.rater,
            "reasoning": reasoning,
            "answer_correct": self.answer_correct,
            "modes": tuple(self.modes),
            "note": self.note,
            "flagged": self.flagged,
            "withdrawn": self.withdrawn,
            "queue": self.queue,
            "origin": self.origin,
            # only where there are any: a line without them has the digest that it always had
            **{name: value for name, value in steps.items() if value != _STEP_DEFAULTS[name]},
        }
        label_id = self.id
        if not label_id:
            content_digest = digest([said, self.at.isoformat() if self.at else None])
            label_id = digest(["imported", content_digest, n_by_content[content_digest]])[:24]
            n_by_content[content_digest] += 1
        return Label(id=label_id, at=self.at or datetime.now(UTC), **said)


ROW_FIELDS = tuple(LabelRow.model_fields)
"""Fields of a line."""
_REQUIRED_FIELDS = tuple(n for n, field in LabelRow.model_fields.items() if field.is_required())


def import_labels(store: Store, path: Path, *, good_lines_only: bool = False) -> ImportResult:
    """Store the labels of a file, in the order of its lines.

    A label that the store has already is not written again, so that importing a file twice adds
    nothing; a line without an id gets one that is a digest of its content. The kind of a label's
    queue is stored where the store does not have the queue.

    Parameters
    ----------
    store : Store
    path : Path
        JSONL, or CSV where the name ends in ``.csv``, of the fields of ``LabelRow``. Unless the
        label withdraws or the steps tell it, ``reasoning`` is required.
    good_lines_only : bool
        Store the lines without a defect; by default nothing is stored where a line has one.

    Raises
    ------
    LabelErrors
        If lines have defects.
    LabelError
        If the file cannot be read, or no line is good.
    """
    parsed_lines, errors = read_label_file(path)
    steps_by_item = _load_known_steps(store, [label for _, label, _ in parsed_lines])
    with store.writing() as connection:
        kind_by_queue = {
            entry.queue: label_store.get_queue_kind(connection, entry.queue)
            for _, entry, _ in parsed_lines
            if entry.queue is not None
        }
        items_by_run = label_store.scored_items_by_run(
            connection, sorted({label.run_id for _, label, _ in parsed_lines})
        )
        stored_table = label_store.select_labels(
            connection, label_ids=[label.id for _, label, _ in parsed_lines], history=True
        )
        labels_by_id = {label.id: label for label in label_store.labels_from_table(stored_table)}
        accepted_labels: list[Label] = []
        new_kind_by_queue: dict[str, str] = {}
        n_other_steps = 0
        for line_number, read_label, kind in parsed_lines:
            steps = steps_by_item.get((read_label.run_id, read_label.item_id), ())
            label = _with_steps_digest(read_label, steps)
            try:
                _check_label(label, items_by_run, labels_by_id)
                stored_kind = kind_by_queue.get(label.queue or "")
                if kind is not None and stored_kind not in (None, kind):
                    message = (
                        f"the queue {label.queue!r} is of the kind {stored_kind!r}, not {kind!r}"
                    )
                    raise RowDefect("queue_kind", message)
                _check_steps(label, steps)
            except RowDefect as defect:
                errors.append(LabelError(str(path), line_number, defect.field, defect.message))
                continue
            accepted_labels.append(label)
            n_other_steps += label.has_steps and label.steps_digest != steps_digest(steps)
            labels_by_id.setdefault(label.id, label)
            if label.queue is not None and kind is not None and stored_kind is None:
                kind_by_queue[label.queue] = new_kind_by_queue[label.queue] = kind
        errors.sort(key=lambda error: error.line or 0)
        if errors and not (good_lines_only and accepted_labels):
            raise LabelErrors(errors, len(accepted_labels))
        n_new = label_store.add_labels(connection, accepted_labels)
        for queue, kind in new_kind_by_queue.items():
            label_store.add_queue(connection, queue, "imported", (), kind=kind, author="import")
    return ImportResult(n_new, len(accepted_labels) - n_new, n_other_steps, tuple(errors))


def read_label_file(path: Path) -> tuple[list[tuple[int, Label, str | None]], list[LabelError]]:
    """Return the labels of a file and the defects of its other lines.

    Each label has its line before it and the kind of its queue, None where unnamed, after it.
    Nothing is looked up in a store.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise LabelError(str(path), None, "", f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 at byte {error.start}: save it as UTF-8"
        raise LabelError(str(path), None, "", message) from error
    errors: list[LabelError] = []
    parsed_lines: list[tuple[int, Label, str | None]] = []
    n_by_content: Counter[str] = Counter()
    is_csv = path.suffix.lower() == ".csv"
    for line_number, line in _csv_rows(path, text, errors) if is_csv else _json_lines(text):
        try:
            row = (
                LabelRow.model_validate_json(line)
                if isinstance(line, str)
                else LabelRow.model_validate(line)
            )
            parsed_lines.append((line_number, row.to_label(n_by_content), row.queue_kind))
        except RowDefect as defect:
            errors.append(LabelError(str(path), line_number, defect.field, defect.message))
        except ValidationError as error:
            errors.append(LabelError(str(path), line_number, *_defect_of(error)))
    return parsed_lines, errors


def _defect_of(error: ValidationError) -> tuple[str, str]:
    """Return field and message of the first thing that is wrong with a line."""
    first = error.errors()[0]
    if not first["loc"]:
        return "", f"is not a label, one JSON object a line: {first['msg']}"
    field, *place = map(str, first["loc"])
    if first["type"] == "extra_forbidden":
        return field, _unknown_field_text(field)
    if first["type"] in ("missing", "string_pattern_mismatch"):
        return field, f"is missing: a line needs {', '.join(_REQUIRED_FIELDS)}"
    message = first["msg"].removeprefix("Value error, ")
    got = "" if first["type"] == "value_error" else f", got {json.dumps(first['input'])[:40]}"
    return field, f"{f'entry {place[0]}: ' if place else ''}{message}{got}"


def _json_lines(text: str) -> Iterator[tuple[int, str]]:
    return ((n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip())


def _csv_rows(
    path: Path, text: str, errors: list[LabelError]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line and fields of each row; rows of another length are added to ``errors``."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        names = next(reader, [])
        _check_columns(names, path)
        for cells in reader:
            if len(cells) == len(names):
                pairs = zip(names, cells, strict=True)
                yield reader.line_num, {name: _parse_cell(name, cell) for name, cell in pairs}
            elif cells:
                message = f"has {len(cells)} cells under {len(names)} names"
                errors.append(LabelError(str(path), reader.line_num, "", message))
    except csv.Error as error:
        raise LabelError(str(path), reader.line_num, "", f"is no CSV: {error}") from error


def _check_columns(names: Sequence[str], path: Path) -> None:
    for name in (name for name in names if name not in ROW_FIELDS):
        words = re.findall(r"\w+", name)
        if len(words) > 1 and set(words) <= set(ROW_FIELDS):
            message = f"its columns are not separated by commas: {name!r}; save it with commas"
            raise LabelError(str(path), 1, "", message)
        raise LabelError(str(path), 1, name, _unknown_field_text(name))
    missing = [name for name in _REQUIRED_FIELDS if name not in names]
    if missing or len(set(names)) < len(names):
        problem = f"the column {missing[0]} is missing" if missing else "a column occurs twice"
        raise LabelError(str(path), 1, "", f"{problem}; columns: {', '.join(ROW_FIELDS)}")


def _unknown_field_text(name: str) -> str:
    close_names = get_close_matches(name, ROW_FIELDS, n=1)
    return (
        f"is no field of a label.{f' Did you mean {close_names[0]}?' if close_names else ''}"
        f" Fields: {', '.join(ROW_FIELDS)}"
    )


def _label_record(label: Label) -> dict[str, Any]:
    """Return a label as the fields of a line."""
    record = asdict(label) | {
        "run": label.run_id,
        "modes": list(label.modes),
        "step_verdicts": list(label.step_verdicts),
        "at": label.at.astimezone(UTC).isoformat(),
    }
    return {name: record[name] for name in ROW_FIELDS if name != "queue_kind"}


def _format_cell(value: Any) -> str:
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


def _load_known_steps(
    store: Store, labels: Sequence[Label]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the steps of the items whose steps have labels, of runs that the store has."""
    known_runs = {row[0] for row in store.query_rows("SELECT id FROM runs")}
    keys = {(label.run_id, label.item_id) for label in labels if label.has_steps}
    return load_judged_steps(store, sorted(key for key in keys if key[0] in known_runs))


def _with_steps_digest(label: Label, steps: Sequence[str]) -> Label:
    """Return a label of steps that does not say which as one of the item's own."""
    if label.has_steps and label.steps_digest is None and steps:
        return replace(label, steps_digest=steps_digest(steps))
    return label


def _check_steps(label: Label, steps: Sequence[str]) -> None:
    """Refuse a label of steps that the item's chain does not have."""
    if not label.has_steps:
        return
    if label.steps_digest is None:
        message = f"the chain of {label.item_id!r} is not in the store or its log"
        raise RowDefect("first_wrong_step", message)
    if label.steps_digest != steps_digest(steps):
        return
    if label.first_wrong_step is not None and label.first_wrong_step >= len(steps):
        raise RowDefect(
            "first_wrong_step",
            f"{label.first_wrong_step} is no step of {label.item_id!r}, whose {len(steps)} steps"
            " count from 0",
        )
    if label.step_verdicts and len(label.step_verdicts) != len(steps):
        raise RowDefect(
            "step_verdicts",
            f"has {len(label.step_verdicts)} verdicts for the {len(steps)} steps of"
            f" {label.item_id!r}: one a step, null where there is none",
        )


def _check_label(
    label: Label, items_by_run: Mapping[str, set[str]], labels_by_id: Mapping[str, Label]
) -> None:
    """Refuse a label that this store cannot hold."""
    if label.run_id not in items_by_run:
        message = f"the store has no run {label.run_id!r}: `cotlab runs` lists them"
        raise RowDefect("run", message)
    if label.item_id not in items_by_run[label.run_id]:
        close_names = get_close_matches(label.item_id, sorted(items_by_run[label.run_id]), n=1)
        hint = f": did you mean {close_names[0]!r}?" if close_names else ""
        message = f"run {label.run_id} has no scores of an item {label.item_id!r}{hint}"
        raise RowDefect("item_id", message)
    name = label.rater.strip()
    if label.rater != name:
        message = f"{label.rater!r} has spaces around it: it would be another rater than {name!r}"
        raise RowDefect("rater", message)
    if label.at > datetime.now(UTC) + _MAX_CLOCK_SKEW:
        raise RowDefect("at", f"{label.at.isoformat()} has not come yet")
    if replace(labels_by_id.get(label.id, label), at=label.at) != label:
        message = f"{label.id!r} is the id of another label: leave the id out, or give a new one"
        raise RowDefect("id", message)
