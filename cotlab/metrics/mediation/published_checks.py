"""Check files of published CMI: warnings within each, between them, and of their summaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from statistics import fmean

from cotlab.core.errors import SuiteError
from cotlab.metrics.mediation.published import (
    CMI_TOLERANCE,
    ZERO_DROP_REASON,
    PublishedFile,
    row_contents,
    short_item_name,
)

_SUMMARY_TOLERANCE = 0.0015
"""Difference of a mean that is published with three digits."""


def published_warnings(files: Sequence[PublishedFile]) -> tuple[str, ...]:
    """Return warnings as plain sentences: within each file first, then between files."""
    pairs = combinations(files, 2)
    return (
        *(warning for file in files for warning in _file_warnings(file)),
        *(
            warning
            for first_file, second_file in pairs
            for warning in _pair_warnings(first_file, second_file)
        ),
    )


def first_warnings_by_kind(warnings: Sequence[str]) -> tuple[str, ...]:
    """Return the first warning of each kind, with how many more there are."""
    warnings_by_kind: dict[str, list[str]] = {}
    for warning in warnings:
        warnings_by_kind.setdefault(warning.partition(":")[0], []).append(warning)
    return tuple(
        first + (f" {len(others)} more like this." if others else "")
        for first, *others in warnings_by_kind.values()
    )


def check_published_means(
    name: str, mean_by_item: Mapping[str, float], files: Sequence[PublishedFile]
) -> str:
    """Return what a summary without rows says, against the rows of the other files.

    A published mean counts every row, those in which nothing dropped as 0.

    Raises
    ------
    SuiteError
        If none of the files has rows of its items.
    """
    rows_by_file = {
        file.name: [row for row in file.rows if row.item in mean_by_item] for file in files
    }
    best_file = max(rows_by_file, key=lambda file: len(rows_by_file[file]), default="")
    rows = rows_by_file.get(best_file, [])
    if not rows:
        message = "holds means without drops: import it together with the file of its rows"
        raise SuiteError(name, None, "", message)
    published_by_item: dict[str, list[float]] = {}
    for row in rows:
        published_by_item.setdefault(row.item, []).append(row.published_cmi)
    n_same = sum(
        abs(fmean(values) - mean_by_item[item]) <= _SUMMARY_TOLERANCE
        for item, values in published_by_item.items()
    )
    n_undefined = sum(row.cmi is None for row in rows)
    return (
        f"Summary: {name} has the means of {len(mean_by_item)} items; {n_same} are those of"
        f" {best_file} if its {n_undefined} of {len(rows)} undefined rows count as 0. They are not"
        " stored."
    )


def _file_warnings(file: PublishedFile) -> Iterator[str]:
    row_counts = sorted(set(file.n_rows_by_item.values()))
    if len(row_counts) > 1:
        yield (
            f"Layer count: the items of {file.name} have between {row_counts[0]} and"
            f" {row_counts[-1]} layer rows."
        )
    deviating_rows = [
        row
        for row in file.rows
        if row.difference is not None and abs(row.difference) > CMI_TOLERANCE
    ]
    if deviating_rows:
        yield (
            f"Published CMI: {len(deviating_rows)} of {len(file.rows)} rows of {file.name} differ"
            f" by more than {CMI_TOLERANCE} from their own drops, first item"
            f" {short_item_name(deviating_rows[0].item)} row {deviating_rows[0].row} by"
            f" {deviating_rows[0].difference:+.3f}."
        )
    contradictory_rows = [
        row for row in file.rows if row.reason == ZERO_DROP_REASON and row.published_bypass > 0
    ]
    if contradictory_rows:
        yield (
            f"Undefined: {len(contradictory_rows)} of {len(file.rows)} rows of {file.name} publish"
            " a bypass score although nothing dropped at all; that is no measurement of bypass."
        )


def _pair_warnings(first_file: PublishedFile, second_file: PublishedFile) -> Iterator[str]:
    if first_file.rows and set(first_file.rows) == set(second_file.rows):
        yield (
            f"Duplicate file: {first_file.name} and {second_file.name} hold the same rows; count"
            " them once."
        )
        return
    if first_file.rows and row_contents(first_file) == row_contents(second_file):
        yield (
            f"Duplicate file: {first_file.name} and {second_file.name} hold the same rows under"
            " other names; count them once."
        )
        return
    differing_items = [
        item
        for item in first_file.n_rows_by_item
        if second_file.n_rows_by_item.get(item, first_file.n_rows_by_item[item])
        != first_file.n_rows_by_item[item]
    ]
    if differing_items:
        first_item = differing_items[0]
        yield (
            f"Layer count: {len(differing_items)} items have another number of layer rows in"
            f" {first_file.name} than in {second_file.name}, first {short_item_name(first_item)}"
            f" ({first_file.n_rows_by_item[first_item]} and"
            f" {second_file.n_rows_by_item[first_item]}): the models or the spans differ."
        )
