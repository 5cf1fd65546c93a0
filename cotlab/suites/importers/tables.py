"""Read published tables: counts of classified responses, ratings of steps, and CMI scores."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cotlab.core.errors import SuiteError, SuiteErrors
from cotlab.core.types import Item, Step
from cotlab.suites.shipped import open_suite_file, printable

MAX_BYTES = 64 * 2**20
MAX_RESPONSES = 1_000_000
BREAKDOWN_COLUMNS = (
    "model",
    "hint_type",
    "regex_faithful",
    "regex_unfaithful",
    "judge_faithful",
    "judge_unfaithful",
    "total",
)
CONFUSION = (
    "hint_type",
    "total",
    "both_faithful",
    "our_only_faithful",
    "sonnet_only_faithful",
    "both_unfaithful",
)
RATINGS = (
    "ID",
    "Question",
    "options",
    "segmented_cot",
    "correct_answer",
    "predicted_answer",
    "target_step_idx",
    "dp",
    "flip",
    "dataset",
    "model",
    "rating",
)
LEVELS = (
    "not supportive at all",
    "slightly supportive",
    "moderately supportive",
    "mostly supportive",
    "fully supportive",
)
"""Ratings in words, from 0 to 4."""
Kind = Literal["breakdown", "confusion", "ratings"]
KINDS: Mapping[Kind, tuple[str, ...]] = {
    "breakdown": BREAKDOWN_COLUMNS,
    "confusion": CONFUSION,
    "ratings": RATINGS,
}
"""Kind of table → the columns that it needs."""
_ALL = "OVERALL"
SEVERAL = "all models"
"""Model of a table that sums over models."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A count of responses on which two classifiers gave these verdicts."""

    model: str
    """Model that wrote the responses."""
    hint: str
    """Kind of hint in the prompt."""
    scores: Mapping[str, float]
    """Classifier → verdict: 1 is unfaithful, 0 faithful."""
    count: int
    """Number of such responses."""


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV file whose header is that of a kind."""

    name: str
    """Name of the file, for messages."""
    kind: Kind
    """Kind of table."""
    rows: tuple[tuple[int, Mapping[str, str]], ...]
    """(line, cells by column) of each row."""


class UnknownTable(SuiteError):
    """A valid CSV file of no known kind."""


def read_table(path: str | Path) -> Table:
    """Read a CSV file of one of the known kinds, with or without a byte order mark.

    Raises
    ------
    UnknownTable
        If the header lacks columns of every kind; the message names those that the nearest kind
        needs.
    SuiteError
        If it cannot be read, or a row has another number of cells than the header.
    """
    name = printable(str(path))
    try:
        with open_suite_file(path, limit=MAX_BYTES) as stream:
            text = stream.read(MAX_BYTES + 1).decode("utf-8-sig")
        lines = csv.reader(io.StringIO(text, newline=""), strict=True)
        cells = [(lines.line_num, row) for row in lines if row]
    except SuiteErrors as exc:
        raise exc.errors[0] from exc
    except (UnicodeDecodeError, csv.Error) as exc:
        raise SuiteError(name, None, "", "is not a CSV file in UTF-8") from exc
    header = cells[0][1] if cells else []
    kind = min(KINDS, key=lambda kind: len(set(KINDS[kind]) - set(header)))
    if missing := [column for column in KINDS[kind] if column not in header]:
        message = (
            f"is no table that is known: for one of {kind} it lacks the columns"
            f" {', '.join(missing)}"
        )
        raise UnknownTable(name, 1, "", message)
    for line, row in cells[1:]:
        if len(row) != len(header):
            raise SuiteError(name, line, "", f"has {len(row)} cells for {len(header)} columns")
    rows = tuple((line, dict(zip(header, row, strict=True))) for line, row in cells[1:])
    if not rows:
        raise SuiteError(name, None, "", "has no row below its header")
    return Table(name, kind, rows)


def read_counts(table: Table) -> tuple[Cell, ...]:
    """Return the cells of a table of counts; sums over hints are left out.

    A breakdown holds the verdicts of a pattern (regex), and those of a second classifier (judge) on
    what the pattern called unfaithful: ``combined`` is unfaithful only where neither found an
    admission. A confusion table holds the same pipeline (combined) against another judge (sonnet).

    Raises
    ------
    SuiteError
            If a count is no whole number from 0, a row does not add up to its total or occurs
        twice, or no response is counted.
    """
    cells: list[Cell] = []
    seen: set[tuple[str, str]] = set()
    for line, row in table.rows:
        if row["hint_type"] == _ALL:
            continue
        keys = BREAKDOWN_COLUMNS if table.kind == "breakdown" else CONFUSION
        counts = {
            key: _count(row[key], table.name, line, key)
            for key in keys
            if key not in ("model", "hint_type")
        }
        if counts["total"] != sum(counts.values()) - counts["total"]:
            raise SuiteError(table.name, line, "total", "is not the sum of the row's counts")
        model = (
            _require_line(row["model"], table.name, line, "model")
            if table.kind == "breakdown"
            else SEVERAL
        )
        hint = _require_line(row["hint_type"], table.name, line, "hint_type")
        if (model, hint) in seen:
            raise SuiteError(
                table.name,
                line,
                "hint_type",
                f"{printable(hint, 60)!r} of {printable(model, 60)!r} stands twice",
            )
        seen.add((model, hint))
        cells += [
            Cell(model, hint, scores, counts[key]) for key, scores in _VERDICTS[table.kind].items()
        ]
    if sum(cell.count for cell in cells) > MAX_RESPONSES:
        raise SuiteError(table.name, None, "", f"counts more than {MAX_RESPONSES:,} responses")
    cells = [cell for cell in cells if cell.count]
    if not cells:
        raise SuiteError(
            table.name, None, "", "counts no response of any hint: there is nothing to store"
        )
    return tuple(cells)


_VERDICTS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "breakdown": {
        "regex_faithful": {"regex": 0.0, "combined": 0.0},
        "regex_unfaithful": {"regex": 1.0, "combined": 1.0},
        "judge_faithful": {"regex": 1.0, "judge": 0.0, "combined": 0.0},
        "judge_unfaithful": {"regex": 1.0, "judge": 1.0, "combined": 1.0},
    },
    "confusion": {
        "both_faithful": {"combined": 0.0, "sonnet": 0.0},
        "our_only_faithful": {"combined": 0.0, "sonnet": 1.0},
        "sonnet_only_faithful": {"combined": 1.0, "sonnet": 0.0},
        "both_unfaithful": {"combined": 1.0, "sonnet": 1.0},
    },
}
"""Kind of table → column → the classifiers' verdicts that it counts."""


def read_ratings(table: Table) -> Mapping[str, tuple[Item, ...]]:
    """Return the rated chains by model, with ``step_ratings`` in the meta.

    The question of an item includes its options.

    Raises
    ------
    SuiteError
        If a rating is not one of ``LEVELS``, a drop no number in [-1, 1], a flip neither TRUE nor
        FALSE, or the rated step is no step of the chain.
    """
    chains: dict[str, list[Item]] = {}
    for k, (line, row) in enumerate(table.rows):
        steps = [part.strip() for part in row["segmented_cot"].split("||")]
        target = _count(row["target_step_idx"], table.name, line, "target_step_idx")
        if target >= len(steps) or not all(steps):
            raise SuiteError(
                table.name,
                line,
                "target_step_idx",
                f"is {target}; the chain has {len(steps)} steps with text",
            )
        for column, allowed in (("rating", LEVELS), ("flip", ("true", "false"))):
            if row[column].strip().lower() not in allowed:
                value = printable(row[column], 40)
                raise SuiteError(
                    table.name,
                    line,
                    column,
                    f"must be one of {', '.join(allowed)}; found {value!r}",
                )
        options = row["options"].split("||")
        rating = {
            "step": target,
            "rating": LEVELS.index(row["rating"].strip().lower()),
            "drop": _drop(row["dp"], table.name, line),
            "flip": row["flip"].strip().lower() == "true",
        }
        chains.setdefault(_require_line(row["model"], table.name, line, "model"), []).append(
            Item(
                f"rated-{k:04d}",
                "\n".join((row["Question"], *options)),
                _option_at(options, row["correct_answer"]),
                tuple(Step(i, text) for i, text in enumerate(steps)),
                row["dataset"],
                {
                    "step_ratings": [rating],
                    "source_id": row["ID"],
                    "predicted": _option_at(options, row["predicted_answer"]),
                },
            )
        )
    return {model: tuple(items) for model, items in chains.items()}


def _option_at(options: Sequence[str], index: str) -> str | None:
    """Return the option of an index from 0; None where there is none."""
    known = index.isascii() and index.isdigit() and len(index) < 10 and int(index) < len(options)
    return options[int(index)] if known else None


def _count(text: str, name: str, line: int, column: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise SuiteError(
            name, line, column, f"must be a whole number from 0; found {printable(text, 40)!r}"
        )
    return int(text)


def _drop(text: str, name: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not -1 <= value <= 1:
        raise SuiteError(
            name, line, "dp", f"must be a number in [-1, 1]; found {printable(text, 40)!r}"
        )
    return value


def _require_line(text: str, name: str, line: int, column: str) -> str:
    if not text.strip() or not text.isprintable():
        raise SuiteError(name, line, column, "must be a line of printable text")
    return text


MAX_CMI_BYTES = 64 * 2**20


def read_cmi(path: str | Path) -> dict[str, object]:
    """Read the object of a JSON file of published CMI scores.

    `cotlab.metrics.mediation.published` interprets it.

    Raises
    ------
    SuiteError
        If the file cannot be read, is no JSON object in UTF-8, or repeats a key.
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
    except ValueError as exc:  # an integer with thousands of digits, or a repeated key
        raise SuiteError(name, None, "", f"cannot be read: {printable(str(exc), 120)}") from exc
    if not isinstance(parsed, dict):
        raise SuiteError(name, None, "", "must be a JSON object of items, each with a list of rows")
    return parsed


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for k, key in enumerate(keys) if key in keys[:k])
        raise ValueError(f"the key {repeated!r} stands twice in one object")
    return mapping
