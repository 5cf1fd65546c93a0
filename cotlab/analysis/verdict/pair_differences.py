"""The differences of two runs in tested metrics, paired by item.

A faithfulness metric is among them only where it separates models of known behaviour
(``Validation.is_usable``). Whether answers are right is compared with the ground truth, which
claims nothing about a chain, so it needs no such test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import pandas as pd

from cotlab.analysis.compare import Comparison
from cotlab.analysis.paired import (
    PairedRow,
    adjust_p_values,
    missing_items_text,
    paired_rows,
)
from cotlab.analysis.verdict.measures import (
    COMPARED_MEASURES,
    MEASURES,
    MIN_ITEMS,
    MeasureName,
    Validation,
    is_measure_usable,
)
from cotlab.analysis.verdict.validated import UNTESTED
from cotlab.core.keys import canonical_json
from cotlab.metrics.estimates import mean_interval
from cotlab.stats.intervals import Interval, no_interval
from cotlab.stats.paired_rates import mcnemar

OTHER_ANSWER_METRIC = "answer_correct"
"""Whether answers are right, in runs without ``baseline_correct``."""
MAX_P = 0.05
"""A difference is beyond chance where its corrected p lies below this, and its interval off 0."""


@dataclass(frozen=True, slots=True)
class HeadlineDifference:
    """One tested metric of two runs on the items of both; shares in [0, 1]."""

    measure: MeasureName
    """The measure."""
    row: PairedRow
    """The metric, with p corrected over the headline metrics."""
    facet: str
    """Its facet, as the paired values have it."""
    base: Interval
    """The base's share over the items with a value in both."""
    other: Interval
    """The other run's share over the same items."""
    difference: Interval
    """Other less base, paired by item."""
    validation: str
    """What is known of the measure."""

    @property
    def label(self) -> str:
        """What is measured."""
        return MEASURES[self.measure].compared

    @property
    def short_label(self) -> str:
        """The same without the question that it answers, for the middle of a sentence."""
        text = self.label.rpartition(": ")[2]
        return text[:1].lower() + text[1:]

    def paired_values(self, comparison: Comparison) -> pd.DataFrame:
        """Return the rows of a comparison's pairs that it is made of."""
        pairs = comparison.pairs
        return pairs[(pairs["metric"] == self.row.metric) & (pairs["facet"] == self.facet)]

    @property
    def size(self) -> float:
        """Absolute difference over the width of its interval; 0 where there is no interval."""
        point, lo, hi = self.difference.point, self.difference.lo, self.difference.hi
        if point is None or lo is None or hi is None or hi <= lo:
            return 0.0
        return abs(point) / (hi - lo)

    @property
    def untestable_reason(self) -> str | None:
        """Why chance cannot be ruled in or out; None where it can."""
        if self.row.n < MIN_ITEMS:
            return f"{self.row.n:,} of {MIN_ITEMS} items that a test needs"
        if self.difference.lo is None or self.difference.hi is None:
            return f"no interval: {self.difference.reason}"
        return None if self.row.adjusted is not None else "it has no p"

    @property
    def is_beyond_chance(self) -> bool:
        """Whether the two runs differ in it beyond chance."""
        point, lo, hi = self.difference.point, self.difference.lo, self.difference.hi
        p = self.row.adjusted
        if point is None or lo is None or hi is None or p is None or self.row.n < MIN_ITEMS:
            return False
        return p < MAX_P and (lo > 0 or hi < 0)

    @property
    def is_worse(self) -> bool | None:
        """Whether the other run is worse in it; None where they do not differ beyond chance."""
        if not self.is_beyond_chance or self.difference.point is None:
            return None
        return (self.difference.point < 0) == MEASURES[self.measure].is_more_better


def with_sound_chains(comparison: Comparison) -> Comparison:
    """Return a comparison in which a model's own chain is sound, or has a false equation.

    As in a verdict: 1 where the share of true equations among the decided ones is 1, else 0.
    """
    measure, pairs = MEASURES["sound"], comparison.pairs
    metric = measure.metric
    is_sound = (pairs["metric"] == metric) & pairs["facet"].map(measure.has_facet).astype(bool)
    if not is_sound.any():
        return comparison
    chains = pairs[is_sound].assign(draws=1)
    for side in ("base", "other"):
        chains[side] = (chains[side] >= 1).astype(float).where(chains[side].notna())
    rows = paired_rows(chains, binary_metrics=frozenset({metric}), seed=comparison.seeds[0])
    others = (row for row in comparison.rows if not measure.has_row(row))
    return replace(
        comparison,
        pairs=pd.concat([pairs[~is_sound], chains], ignore_index=True),
        rows=(*others, *rows),
        binary_metrics=comparison.binary_metrics | {metric},
    )


def headline_differences(
    comparison: Comparison, validation: Mapping[MeasureName, Validation]
) -> tuple[tuple[HeadlineDifference, ...], tuple[str, ...]]:
    """Return the differences that may stand in a headline, and why others may not.

    The largest in units of its standard error comes first.
    """
    chosen_rows: dict[MeasureName, PairedRow] = {}
    left_out = []
    for measure in COMPARED_MEASURES:
        record = MEASURES[measure]
        rows = [row for row in comparison.rows if record.has_row(row)]
        if measure == "wrong" and not rows:
            rows = [row for row in comparison.rows if row.metric == OTHER_ANSWER_METRIC]
        if not rows:
            continue
        if not is_measure_usable(measure, validation):
            left_out.append(f"{record.compared} ({validation.get(measure, UNTESTED).text})")
            continue
        chosen_rows[measure] = max(rows, key=lambda row: row.n)
    shares = {measure: _paired_shares(comparison, row) for measure, row in chosen_rows.items()}
    p_rows = [
        row if row.p is not None or shares[measure].p is None else replace(row, p=shares[measure].p)
        for measure, row in chosen_rows.items()
    ]
    adjusted_rows = adjust_p_values(p_rows)
    untested = "to the questions as they stand, against the ground truth"
    differences = [
        HeadlineDifference(
            measure,
            row,
            canonical_json(dict(row.facet)),
            *shares[measure][:3],
            validation[measure].text if measure in validation else untested,
        )
        for measure, row in zip(chosen_rows, adjusted_rows, strict=True)
    ]
    differences.sort(key=lambda entry: -entry.size)
    return tuple(differences), tuple(left_out)


class _PairedShares(NamedTuple):
    """Both sides of one metric, and their difference."""

    base: Interval
    other: Interval
    difference: Interval
    p: float | None


def _paired_shares(comparison: Comparison, row: PairedRow) -> _PairedShares:
    facet, pairs = canonical_json(dict(row.facet)), comparison.pairs
    group = pairs[(pairs["metric"] == row.metric) & (pairs["facet"] == facet)]
    group = group.dropna(subset=["base", "other"])
    if group.empty:
        reason = missing_items_text(row) or row.reason or "no item has a value in both runs"
        missing = no_interval(None, 0, reason)
        return _PairedShares(missing, missing, missing, None)
    difference = Interval(row.difference, row.lo, row.hi, row.n, row.method, row.level, row.reason)
    base_values, other_values = group["base"].tolist(), group["other"].tolist()
    if row.prompts != row.n:
        reason = "items repeat prompts, so there is no interval of one side"
        sides = [
            no_interval(sum(values) / row.n, row.n, reason)
            for values in (base_values, other_values)
        ]
        return _PairedShares(sides[0], sides[1], difference, row.p)
    p = row.p
    is_yes_or_no = {*base_values, *other_values} <= {0.0, 1.0}
    if is_yes_or_no and row.discordant is None:  # a mean of draws that agree is one yes or no
        test = mcnemar(base_values, other_values)
        p = test.p if p is None else p
    sides = [
        mean_interval(values, seed=seed, is_binary=row.metric in comparison.binary_metrics)
        for values, seed in zip((base_values, other_values), comparison.seeds, strict=True)
    ]
    return _PairedShares(sides[0], sides[1], difference, p)


def points_text(share: float) -> str:
    """Return a difference of shares in points with its sign: "−25.0", "+100", "0"."""
    if share == 0:
        return "0"
    sign, points = "−" if share < 0 else "+", abs(share) * 100
    return f"{sign}100" if points >= 100 else f"{sign}{min(max(points, 0.1), 99.9):.1f}"


def difference_text(interval: Interval) -> str:
    """Return a difference in points with its interval: "−25.0 [−37.2, −14.0]"."""
    if interval.point is None:
        return f"n/a: {interval.reason}"
    if interval.lo is None or interval.hi is None:
        return f"{points_text(interval.point)} (no interval: {interval.reason})"
    return f"{points_text(interval.point)} [{points_text(interval.lo)}, {points_text(interval.hi)}]"
