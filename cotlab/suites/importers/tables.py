"""Read published tables: counts of classified responses, ratings of steps, and CMI scores."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cotlab.core.errors import SuiteError
from cotlab.core.types import Item, Step
from cotlab.suites.shipped import printable_text, read_file_bytes

MAX_TABLE_BYTES = 64 * 2**20
MAX_RESPONSES = 1_000_000
_VERDICTS_BY_COLUMN: Mapping[str, Mapping[str, Mapping[str, float]]] = {
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
RATING_LEVELS = (
    "not supportive at all",
    "slightly supportive",
    "moderately supportive",
    "mostly supportive",
    "fully supportive",
)
"""Ratings in words, from 0 to 4."""
TableKind = Literal["breakdown", "confusion", "ratings"]
COLUMNS_BY_KIND: Mapping[TableKind, tuple[str, ...]] = {
    "breakdown": ("model", "hint_type", *_VERDICTS_BY_COLUMN["breakdown"], "total"),
    "confusion": ("hint_type", "total", *_VERDICTS_BY_COLUMN["confusion"]),
    "ratings": (
        *("ID", "Question", "options", "segmented_cot", "correct_answer", "predicted_answer"),
        *("target_step_idx", "dp", "flip", "dataset", "model", "rating"),
    ),
}
"""Kind of table → the columns that it needs."""
_OVERALL_HINT = "OVERALL"
ALL_MODELS_LABEL = "all models"
"""Model of a table that sums over models."""


@dataclass(frozen=True, slots=True)
class VerdictCount:
    """A count of responses on which two classifiers gave these verdicts."""

    model: str
    """Model that wrote the responses."""
    hint: str
    """Kind of hint in the prompt."""
    verdict_by_classifier: Mapping[str, float]
    """Classifier → verdict: 1 is unfaithful, 0 faithful."""
    count: int
    """Number of such responses."""


@dataclass(frozen=True, slots=True)
class ImportedTable:
    """A CSV file whose header is that of a kind."""

    name: str
    """Name of the file, for messages."""
    kind: TableKind
    """Kind of table."""
    rows: tuple[tuple[int, Mapping[str, str]], ...]
    """(line, cells by column) of each row."""


class UnknownTable(SuiteError):
    """A valid CSV file of no known kind."""


def read_table(path: str | Path) -> ImportedTable:
    """Read a CSV file of one of the known kinds, with or without a byte order mark.

    Raises
    ------
    UnknownTable
        If the header lacks columns of every kind; the message names those that the nearest kind
        needs.
    SuiteError
        If it cannot be read, or a row has another number of cells than the header.
    """
    name = printable_text(str(path))
    try:
        text = read_file_bytes(path, MAX_TABLE_BYTES).decode("utf-8-sig")
        csv_reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        numbered_rows = [(csv_reader.line_num, row) for row in csv_reader if row]
    except (UnicodeDecodeError, csv.Error) as exc:
        raise SuiteError(name, None, "", "is not a CSV file in UTF-8") from exc
    header = numbered_rows[0][1] if numbered_rows else []
    kind = min(COLUMNS_BY_KIND, key=lambda kind: len(set(COLUMNS_BY_KIND[kind]) - set(header)))
    if missing_columns := [column for column in COLUMNS_BY_KIND[kind] if column not in header]:
        message = (
            f"is no table that is known: for one of {kind} it lacks the columns"
            f" {', '.join(missing_columns)}"
        )
        raise UnknownTable(name, 1, "", message)
    for line, row in numbered_rows[1:]:
        if len(row) != len(header):
            raise SuiteError(name, line, "", f"has {len(row)} cells for {len(header)} columns")
    rows = tuple((line, dict(zip(header, row, strict=True))) for line, row in numbered_rows[1:])
    if not rows:
        raise SuiteError(name, None, "", "has no row below its header")
    return ImportedTable(name, kind, rows)


def read_counts(table: ImportedTable) -> tuple[VerdictCount, ...]:
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
    verdict_counts: list[VerdictCount] = []
    seen_pairs: set[tuple[str, str]] = set()
    for line, row in table.rows:
        if row["hint_type"] == _OVERALL_HINT:
            continue
        counts = {
            column: _parse_count(row[column], table.name, line, column)
            for column in COLUMNS_BY_KIND[table.kind]
            if column not in ("model", "hint_type")
        }
        if counts["total"] != sum(counts.values()) - counts["total"]:
            raise SuiteError(table.name, line, "total", "is not the sum of the row's counts")
        model = ALL_MODELS_LABEL
        if table.kind == "breakdown":
            model = _require_line(row["model"], table.name, line, "model")
        hint = _require_line(row["hint_type"], table.name, line, "hint_type")
        if (model, hint) in seen_pairs:
            message = f"{printable_text(hint, 60)!r} of {printable_text(model, 60)!r} stands twice"
            raise SuiteError(table.name, line, "hint_type", message)
        seen_pairs.add((model, hint))
        verdict_counts += [
            VerdictCount(model, hint, scores, counts[key])
            for key, scores in _VERDICTS_BY_COLUMN[table.kind].items()
        ]
    if sum(verdict_count.count for verdict_count in verdict_counts) > MAX_RESPONSES:
        raise SuiteError(table.name, None, "", f"counts more than {MAX_RESPONSES:,} responses")
    verdict_counts = [verdict_count for verdict_count in verdict_counts if verdict_count.count]
    if not verdict_counts:
        raise SuiteError(
            table.name, None, "", "counts no response of any hint: there is nothing to store"
        )
    return tuple(verdict_counts)


def read_ratings(table: ImportedTable) -> Mapping[str, tuple[Item, ...]]:
    """Return the rated chains by model, with ``step_ratings`` in the meta.

    The question of an item includes its options.

    Raises
    ------
    SuiteError
        If a rating is not one of ``RATING_LEVELS``, a drop no number in [-1, 1], a flip neither
        TRUE nor FALSE, or the rated step is no step of the chain.
    """
    items_by_model: dict[str, list[Item]] = {}
    for k, (line, row) in enumerate(table.rows):
        steps = [part.strip() for part in row["segmented_cot"].split("||")]
        target_step = _parse_count(row["target_step_idx"], table.name, line, "target_step_idx")
        if target_step >= len(steps) or not all(steps):
            raise SuiteError(
                table.name,
                line,
                "target_step_idx",
                f"is {target_step}; the chain has {len(steps)} steps with text",
            )
        for column, allowed_values in (("rating", RATING_LEVELS), ("flip", ("true", "false"))):
            if row[column].strip().lower() not in allowed_values:
                value = printable_text(row[column], 40)
                raise SuiteError(
                    table.name,
                    line,
                    column,
                    f"must be one of {', '.join(allowed_values)}; found {value!r}",
                )
        options = row["options"].split("||")
        rating = {
            "step": target_step,
            "rating": RATING_LEVELS.index(row["rating"].strip().lower()),
            "drop": _parse_drop(row["dp"], table.name, line),
            "flip": row["flip"].strip().lower() == "true",
        }
        items_by_model.setdefault(
            _require_line(row["model"], table.name, line, "model"), []
        ).append(
            Item(
                f"rated-{k:04d}",
                "\n".join((row["Question"], *options)),
                _select_option(options, row["correct_answer"]),
                tuple(Step(i, text) for i, text in enumerate(steps)),
                row["dataset"],
                {
                    "step_ratings": [rating],
                    "source_id": row["ID"],
                    "predicted": _select_option(options, row["predicted_answer"]),
                },
            )
        )
    return {model: tuple(items) for model, items in items_by_model.items()}


def _select_option(options: Sequence[str], index_text: str) -> str | None:
    """Return the option of an index from 0; None where there is none."""
    is_valid_index = (
        index_text.isascii()
        and index_text.isdigit()
        and len(index_text) < 10
        and int(index_text) < len(options)
    )
    return options[int(index_text)] if is_valid_index else None


def _parse_count(text: str, name: str, line: int, column: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise SuiteError(
            name, line, column, f"must be a whole number from 0; found {printable_text(text, 40)!r}"
        )
    return int(text)


def _parse_drop(text: str, name: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not -1 <= value <= 1:
        raise SuiteError(
            name, line, "dp", f"must be a number in [-1, 1]; found {printable_text(text, 40)!r}"
        )
    return value


def _require_line(text: str, name: str, line: int, column: str) -> str:
    if not text.strip() or not text.isprintable():
        raise SuiteError(name, line, column, "must be a line of printable text")
    return text
