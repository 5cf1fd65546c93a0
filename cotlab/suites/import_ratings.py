"""Published judgements from CSV: two classifiers' counts by group, and people's ratings of single steps.

What the numbers mean (kappa, McNemar, correlation) is for ``cotlab.stats`` to say; here they are read and checked.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from cotlab.core.errors import SuiteError, SuiteErrors
from cotlab.core.types import Step
from cotlab.suites.shipped import opened, shown

MAX_RATINGS_BYTES = 64 * 2**20
SCALE = (
    "Not Supportive At All", "Slightly Supportive", "Moderately Supportive", "Mostly Supportive", "Fully Supportive",
)  # fmt: skip
"""The scale of the published study of single steps, from the least support to the most."""
T = TypeVar("T")
Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class AgreementCounts:
    """How often two classifiers said yes to the same responses of one group: both, one alone, neither."""

    group: str
    both: int
    first_only: int
    second_only: int
    neither: int

    @property
    def table(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Counts (2, 2), yes before no, a row for the first classifier's word and a column for the second's."""
        return (self.both, self.first_only), (self.second_only, self.neither)


@dataclass(frozen=True, slots=True)
class StepRating:
    """One person's rating of one step: its place on the scale from 0, beside what a model lost without the step.

    ``drop`` is the fall of the answer's probability, in [-1, 1]; ``flip`` says whether the answer changed.
    """

    row_id: str
    question: str
    steps: tuple[Step, ...]
    step: int
    drop: float
    flip: bool
    rating: int
    dataset: str
    model: str


def import_agreement(
    path: str | Path, *, group: str = "hint_type", both: str = "both_faithful", first_only: str = "our_only_faithful",
    second_only: str = "sonnet_only_faithful", neither: str = "both_unfaithful",
) -> tuple[AgreementCounts, ...]:  # fmt: skip
    """Two classifiers' counts from a CSV file with a row for each group.

    Parameters
    ----------
    path : file in UTF-8, with a line of column names
    group, both, first_only, second_only, neither : str
        The columns; the defaults are those of the published counts of ``lie_to_me``.

    Raises
    ------
    SuiteErrors
        Every defect, by line and column: a missing column, a count that is none, a group that stands twice, no row.
    """
    seen: set[str] = set()

    def read(row: Row) -> AgreementCounts:
        if row[group] in seen:
            raise _Defect(group, f"{shown(row[group], 60)!r} stands twice")
        seen.add(row[group])
        counts = [_count(row, column) for column in (both, first_only, second_only, neither)]
        return AgreementCounts(row[group], *counts)

    return _collected(path, (group, both, first_only, second_only, neither), read)


def import_step_ratings(path: str | Path, *, scale: Sequence[str] = SCALE) -> tuple[StepRating, ...]:
    """Ratings of single steps from the published study's CSV file, steps of a chain joined by ``||``.

    Parameters
    ----------
    path : file in UTF-8, with or without a byte order mark
    scale : sequence of str
        The words of the scale, from the lowest to the highest.

    Raises
    ------
    SuiteErrors
        Every defect, by line and column: a missing column, a word that is not on the scale, a step that its chain does not
        have, a drop outside [-1, 1], a flip that is neither TRUE nor FALSE, no row.
    """
    places = {word: place for place, word in enumerate(scale)}

    def read(row: Row) -> StepRating:
        steps = tuple(Step(i, text) for i, text in enumerate(row["segmented_cot"].split("||")))
        step = _count(row, "target_step_idx")
        if step >= len(steps):
            raise _Defect("target_step_idx", f"step {step} of a chain of {len(steps)} steps, counted from 0")
        if row["rating"] not in places:
            raise _Defect("rating", f"{shown(row['rating'], 60)!r} is not on the scale")
        if row["flip"].upper() not in ("TRUE", "FALSE"):
            raise _Defect("flip", f"{shown(row['flip'], 60)!r} is neither TRUE nor FALSE")
        return StepRating(
            row["ID"], row["Question"], steps, step, _drop(row), row["flip"].upper() == "TRUE", places[row["rating"]],
            row["dataset"], row["model"],
        )  # fmt: skip

    columns = ("ID", "Question", "segmented_cot", "target_step_idx", "dp", "flip", "rating", "dataset", "model")
    return _collected(path, columns, read)


class _Defect(Exception):
    """What is wrong with one field of the row that is being read."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field, self.message = field, message


def _collected(path: str | Path, columns: Sequence[str], read: Callable[[Row], T]) -> tuple[T, ...]:
    """What ``read`` makes of each row; SuiteErrors with every defect, and where there is no row."""
    name = shown(str(path))
    found: list[T] = []
    errors: list[SuiteError] = []
    for line, row in _rows(path, name, columns):
        try:
            found.append(read(row))
        except _Defect as defect:
            errors.append(SuiteError(name, line, defect.field, defect.message))
    if not errors and not found:
        errors.append(SuiteError(name, None, "", "has no rows"))
    if errors:
        raise SuiteErrors(errors, 0)
    return tuple(found)


def _rows(path: str | Path, name: str, columns: Sequence[str]) -> Iterator[tuple[int, Row]]:
    """The line on which each row ends, and its cells by column name; SuiteErrors where the file is no such table."""
    with opened(path, limit=MAX_RATINGS_BYTES) as stream:
        raw = stream.read(MAX_RATINGS_BYTES + 1)
    try:
        reader = csv.reader(io.StringIO(raw.decode("utf-8-sig"), newline=""), strict=True)
        head = next(reader, [])
        absent = [column for column in columns if column not in head]
        if absent:
            raise SuiteErrors([SuiteError(name, 1, column, "no such column") for column in absent], 0)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(head):
                raise SuiteErrors([SuiteError(name, reader.line_num, "", f"{len(cells)} cells under {len(head)} columns")], 0)
            yield reader.line_num, dict(zip(head, cells, strict=True))
    except UnicodeDecodeError as exc:
        raise SuiteErrors([SuiteError(name, None, "", "is not text in UTF-8")], 0) from exc
    except csv.Error as exc:
        raise SuiteErrors([SuiteError(name, reader.line_num, "", f"is not CSV: {shown(str(exc), 120)}")], 0) from exc


def _count(row: Row, column: str) -> int:
    text = row[column].strip()
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise _Defect(column, f"{shown(row[column], 60)!r} is no whole number from 0 on")
    return int(text)


def _drop(row: Row) -> float:
    try:
        found = float(row["dp"])
    except ValueError:
        found = math.nan
    if not -1 <= found <= 1:
        raise _Defect("dp", f"{shown(row['dp'], 60)!r} is no difference of two probabilities")
    return found
