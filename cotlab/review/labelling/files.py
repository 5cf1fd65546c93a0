"""Labels as JSONL or CSV files: export from the store, and import with every defect reported."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path

from cotlab.core.errors import CotlabError, UnknownName, join_errors
from cotlab.core.labels import Label, steps_digest
from cotlab.review.labelling import label_rows
from cotlab.review.labelling.judged_steps import load_judged_steps
from cotlab.review.labelling.label_rows import FILE_FORMATS, ROW_FIELDS, LabelError, RowDefect
from cotlab.store import labels as label_store
from cotlab.store.database import Store

_MAX_CLOCK_SKEW = timedelta(days=1)
"""How far another machine's clock may be ahead; later labels would count as given after a fit."""


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
        label_rows.label_record(label)
        | {"queue_kind": (kind_by_queue or {}).get(label.queue or "")}
        for label in labels
    ]
    buffer = io.StringIO()
    if file_format == "jsonl":
        buffer.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return buffer.getvalue()
    # The default line end, CR LF: with another, csv leaves a lone CR unquoted.
    writer = csv.writer(buffer)
    writer.writerow(ROW_FIELDS)
    writer.writerows([label_rows.format_cell(row[name]) for name in ROW_FIELDS] for row in rows)
    return buffer.getvalue()


def import_labels(store: Store, path: Path, *, good_lines_only: bool = False) -> ImportResult:
    """Store the labels of a file, in the order of its lines.

    A label that the store has already is not written again, so that importing a file twice adds
    nothing; a line without an id gets one that is a digest of its content. The kind of a label's
    queue is stored where the store does not have the queue.

    Parameters
    ----------
    store : Store
    path : Path
        JSONL, or CSV where the name ends in ``.csv``. Fields: ``ROW_FIELDS``; ``REQUIRED_FIELDS``
        and, unless the label withdraws or the steps tell it, ``reasoning`` are required. Steps
        count from 0; a ``first_wrong_step`` of -1 says that no step is wrong. A time has to name
        its time zone; without one the label was given now.
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
            defect = (
                _store_defect(label, items_by_run, labels_by_id)
                or _kind_defect(label, kind, kind_by_queue)
                or _steps_defect(label, steps)
            )
            if defect is None:
                accepted_labels.append(label)
                n_other_steps += label.has_steps and label.steps_digest != steps_digest(steps)
                labels_by_id.setdefault(label.id, label)
                if (
                    label.queue is not None
                    and kind is not None
                    and kind_by_queue[label.queue] is None
                ):
                    kind_by_queue[label.queue] = new_kind_by_queue[label.queue] = kind
            else:
                errors.append(LabelError(str(path), line_number, defect.field, defect.message))
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
    file_format = "csv" if path.suffix.lower() == ".csv" else "jsonl"
    errors: list[LabelError] = []
    parsed_lines: list[tuple[int, Label, str | None]] = []
    n_by_content: Counter[str] = Counter()
    for line_number, row in label_rows.read_rows(path, file_format, errors):
        try:
            parsed_lines.append(
                (
                    line_number,
                    label_rows.parse_label(row, n_by_content),
                    label_rows.parse_queue_kind(row),
                )
            )
        except RowDefect as defect:
            errors.append(LabelError(str(path), line_number, defect.field, defect.message))
    return parsed_lines, errors


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


def _steps_defect(label: Label, steps: Sequence[str]) -> RowDefect | None:
    """Return the defect of a label of steps that the item's chain does not have, if any."""
    if not label.has_steps:
        return None
    if label.steps_digest is None:
        return RowDefect(
            "first_wrong_step", f"the chain of {label.item_id!r} is not in the store or its log"
        )
    if label.steps_digest != steps_digest(steps):
        return None
    if label.first_wrong_step is not None and label.first_wrong_step >= len(steps):
        return RowDefect(
            "first_wrong_step",
            f"{label.first_wrong_step} is no step of {label.item_id!r}, whose {len(steps)} steps"
            " count from 0",
        )
    if label.step_verdicts and len(label.step_verdicts) != len(steps):
        return RowDefect(
            "step_verdicts",
            f"has {len(label.step_verdicts)} verdicts for the {len(steps)} steps of"
            f" {label.item_id!r}: one a step, null where there is none",
        )
    return None


def _kind_defect(
    label: Label, kind: str | None, kind_by_queue: Mapping[str, str | None]
) -> RowDefect | None:
    """Return the defect of a label whose queue is of another kind in the store, if any."""
    stored_kind = kind_by_queue.get(label.queue or "")
    if kind is None or stored_kind is None or kind == stored_kind:
        return None
    return RowDefect(
        "queue_kind", f"the queue {label.queue!r} is of the kind {stored_kind!r}, not {kind!r}"
    )


def _store_defect(
    label: Label, items_by_run: Mapping[str, set[str]], labels_by_id: Mapping[str, Label]
) -> RowDefect | None:
    """Return the defect that keeps a label out of this store, if any."""
    if label.run_id not in items_by_run:
        return RowDefect("run", f"the store has no run {label.run_id!r}: `cotlab runs` lists them")
    if label.item_id not in items_by_run[label.run_id]:
        close_names = get_close_matches(label.item_id, sorted(items_by_run[label.run_id]), n=1)
        hint = f": did you mean {close_names[0]!r}?" if close_names else ""
        return RowDefect(
            "item_id", f"run {label.run_id} has no scores of an item {label.item_id!r}{hint}"
        )
    if label.rater != label.rater.strip():
        return RowDefect(
            "rater",
            f"{label.rater!r} has spaces around it: it would be another rater than"
            f" {label.rater.strip()!r}",
        )
    if label.at > datetime.now(UTC) + _MAX_CLOCK_SKEW:
        return RowDefect("at", f"{label.at.isoformat()} has not come yet")
    stored_label = replace(labels_by_id.get(label.id, label), at=label.at)
    if label_rows.label_record(stored_label) != label_rows.label_record(label):
        return RowDefect(
            "id", f"{label.id!r} is the id of another label: leave the id out, or give a new one"
        )
    return None
