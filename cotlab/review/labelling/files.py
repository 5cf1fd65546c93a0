"""Labels as JSONL or CSV files: export from the store, and import with every defect reported."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path

from cotlab.core.errors import CotlabError, UnknownName
from cotlab.core.labels import Label
from cotlab.review.labelling.label_rows import (
    FIELDS,
    FORMATS,
    LabelError,
    RowDefect,
    format_cell,
    label_record,
    parse_label,
    parse_queue_kind,
    read_rows,
)
from cotlab.store import labels as label_store
from cotlab.store.database import Store

_MAX_CLOCK_SKEW = timedelta(days=1)
"""How far another machine's clock may be ahead; later labels would count as given after a fit."""


class LabelErrors(CotlabError):
    """All defects of a file of labels, in line order."""

    def __init__(self, errors: Sequence[LabelError], good: int) -> None:
        self.errors, self.good = tuple(errors), good
        listed = "\n".join(str(error) for error in self.errors[:20])
        more = f"\n… and {len(self.errors) - 20} more" if len(self.errors) > 20 else ""
        rest = f" {good} other lines are good: --good-lines takes those." if good else ""
        super().__init__(f"{listed}{more}\nNothing was stored.{rest}")


@dataclass(frozen=True, slots=True)
class Imported:
    """Result of an import."""

    new: int
    """Labels that were added."""
    had: int
    """Labels that the store had already."""
    errors: tuple[LabelError, ...] = ()
    """Defects of lines that were left out."""


def labels_as_text(
    labels: Sequence[Label], form: str = "jsonl", kinds: Mapping[str, str] | None = None
) -> str:
    """Return labels as the text of a file; no CSV cell runs as a formula in a spreadsheet.

    Parameters
    ----------
    labels : sequence of Label
    form : one of ``FORMATS``
    kinds : mapping of queue to kind, optional
        Written with each label of these queues, so that an adjudication stays one in the store that
        imports it.

    Raises
    ------
    UnknownName
        If there is no such format.
    """
    if form not in FORMATS:
        raise UnknownName("format of labels", form, FORMATS)
    rows = [
        label_record(label) | {"queue_kind": (kinds or {}).get(label.queue or "")}
        for label in labels
    ]
    out = io.StringIO()
    if form == "jsonl":
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return out.getvalue()
    # The default line end, CR LF: with another, csv leaves a lone CR unquoted.
    table = csv.writer(out)
    table.writerow(FIELDS)
    table.writerows([format_cell(row[name]) for name in FIELDS] for row in rows)
    return out.getvalue()


def import_labels(store: Store, path: Path, *, good_lines: bool = False) -> Imported:
    """Store the labels of a file, in the order of its lines.

    A label that the store has already is not written again, so that importing a file twice adds
    nothing; a line without an id gets one that is a digest of its content. The kind of a label's
    queue is stored where the store does not have the queue.

    Parameters
    ----------
    store : Store
    path : Path
        JSONL, or CSV where the name ends in ``.csv``. Fields: ``FIELDS``; ``NEEDED`` and, unless
        the label withdraws, ``reasoning`` are required. A time has to name its time zone; without
        one the label was given now.
    good_lines : bool
        Store the lines without a defect; by default nothing is stored where a line has one.

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
    """Return the labels of a file, each with its line, and the defects of the others.

    Nothing is looked up in a store.
    """
    good, errors = _read(path)
    return [(line, label) for line, label, _ in good], errors


def _read(path: Path) -> tuple[list[tuple[int, Label, str | None]], list[LabelError]]:
    """Return ``read_label_file`` with the kind of each label's queue, None where unnamed."""
    form = "csv" if path.suffix.lower() == ".csv" else "jsonl"
    errors: list[LabelError] = []
    good: list[tuple[int, Label, str | None]] = []
    seen: Counter[str] = Counter()
    for line, row in read_rows(path, form, errors):
        try:
            good.append((line, parse_label(row, seen), parse_queue_kind(row)))
        except RowDefect as defect:
            errors.append(LabelError(str(path), line, defect.field, defect.message))
    return good, errors


def _other_kind(
    label: Label, kind: str | None, kinds: Mapping[str, str | None]
) -> RowDefect | None:
    """Return the defect of a label whose queue is of another kind in the store, if any."""
    stored_kind = kinds.get(label.queue or "")
    if kind is None or stored_kind is None or kind == stored_kind:
        return None
    return RowDefect(
        "queue_kind", f"the queue {label.queue!r} is of the kind {stored_kind!r}, not {kind!r}"
    )


def _misfit(
    label: Label, known: Mapping[str, set[str]], existing: Mapping[str, Label]
) -> RowDefect | None:
    """Return the defect that keeps a label out of this store, if any."""
    if label.run_id not in known:
        return RowDefect("run", f"the store has no run {label.run_id!r}: `cotlab runs` lists them")
    if label.item_id not in known[label.run_id]:
        close = get_close_matches(label.item_id, sorted(known[label.run_id]), n=1)
        hint = f": did you mean {close[0]!r}?" if close else ""
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
    other = existing.get(label.id)
    if other is not None and label_record(other) | {"at": None} != label_record(label) | {
        "at": None
    }:
        return RowDefect(
            "id", f"{label.id!r} is the id of another label: leave the id out, or give a new one"
        )
    return None
