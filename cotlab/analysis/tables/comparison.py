"""Runs held against a base as the tables of their figures: a row a metric, in the metric's unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from cotlab.analysis.compare import Compared, Comparison
from cotlab.analysis.paired import RATE, PairedRow, corrected, directions, facet_label, missing_text
from cotlab.analysis.view import RunView
from cotlab.core.keys import canonical_json
from cotlab.core.types import MetricCard, Plan
from cotlab.figures.style import format_number, truncate_text

MAX_BARS = 20
"""Rows of one figure."""
NO_UNIT = "no unit"
Cards = Mapping[str, MetricCard]
Tags = Mapping[str, Mapping[str, str]]
"""The tags of each run, by its id."""


def shared_scorers(plans: Sequence[Plan]) -> list[str]:
    """Return the scorers that all plans have, by name."""
    scorer_names = [{spec.name for spec in plan.scorers} for plan in plans]
    return sorted(set.intersection(*scorer_names))


def default_base(runs: Sequence[RunView]) -> str:
    """Return the run that others are compared with where none is chosen; the newest comes first.

    It is a run tagged as base, else the one before the newest on the newest's suite, else the
    oldest.
    """
    tagged = [run.id for run in runs if "base" in run.plan.tags.values()]
    alike = [run.id for run in runs[1:] if run.suite == runs[0].suite]
    return (tagged or alike or [runs[-1].id])[0]


def short_name(tags: Tags, run: str) -> str:
    """Return a short name of a run among others: the tags in which they differ, else its id."""
    differing = [
        f"{k} {v}"
        for k, v in tags[run].items()
        if len({other_tags.get(k) for other_tags in tags.values()}) == len(tags)
    ]
    return truncate_text(", ".join(differing) if differing and len(tags) > 1 else run, 32)


def unit_of(cards: Cards, metric: str) -> str:
    """Return the unit of a metric's differences; metrics of a range up to 2 have none."""
    card = cards.get(metric)
    if card is None or card.hi - card.lo <= 2:
        return NO_UNIT
    return card.unit or f"{format_number(card.lo)} to {format_number(card.hi)}"


def row_label(row: PairedRow, rows: Sequence[PairedRow]) -> str:
    """Return the metric, with the part of the facet that distinguishes it from its other rows."""
    same = [other.facet for other in rows if other.metric == row.metric]
    if len(same) == 1:
        return row.metric
    alone = [name for name in row.facet if len({facet.get(name) for facet in same}) == len(same)]
    if alone:
        return f"{row.metric}: {row.facet[alone[0]]}"
    alike = [
        name for name in row.facet if all(facet.get(name) == row.facet[name] for facet in same)
    ]
    return f"{row.metric}: {facet_label(row.facet, alike)}"


def bar_row(row: PairedRow, label: str, unit: str) -> dict[str, Any]:
    """Return one row of the figure of paired differences."""
    gone = sum(row.missing_base.values()), sum(row.missing_other.values())
    return {
        "label": label,
        "unit": unit,
        "point": row.difference,
        "lo": row.lo,
        "hi": row.hi,
        "n": row.n,
        "n_undefined": max(gone),
        "method": row.method,
        "confidence": row.level,
        "values": list(row.values),
        "reason": row.reason if row.n else missing_text(row) or row.reason or "no matched item",
        "p": row.p,
        "bh_p": row.adjusted,
    }


def bars_by_unit(
    compared: Compared, cards: Cards, tags: Tags, metrics: Sequence[str] = ()
) -> dict[str, pd.DataFrame]:
    """Return the differences of all runs by unit: those without a unit first, rates before them."""
    by_unit: dict[str, list[dict[str, Any]]] = {}
    labelled_rows = [
        (row, c.other, row_label(row, c.rows)) for c in compared.comparisons for row in c.rows
    ]
    several = len(compared.comparisons) > 1
    for row, other, label in sorted(
        labelled_rows, key=lambda entry: (entry[0].metric != RATE, entry[2])
    ):
        if not metrics or row.metric in metrics:
            unit, named = (
                unit_of(cards, row.metric),
                label + (f" ({short_name(tags, other)})" if several else ""),
            )
            by_unit.setdefault(unit, []).append(bar_row(row, named, unit))
    return {
        unit: pd.DataFrame(by_unit[unit])
        for unit in sorted(by_unit, key=lambda unit: (unit != NO_UNIT, unit))
    }


def combine_comparisons(pairs: Sequence[Comparison]) -> Compared:
    """Combine comparisons with one base: correct p over all of their rows, add directions."""
    every = iter(corrected([row for pair in pairs for row in pair.rows]))
    comparisons = tuple(replace(pair, rows=tuple(next(every) for _ in pair.rows)) for pair in pairs)
    return Compared(
        comparisons[0].base, comparisons, directions([pair.rows for pair in comparisons])
    )


def with_rates(comparison: Comparison, rates: Comparison) -> Comparison:
    """Replace the rates of a comparison with those of another threshold."""
    rows = [row for row in comparison.rows if row.metric != RATE] + list(rates.rows)
    other_pairs = comparison.pairs[comparison.pairs["metric"] != RATE]
    pairs = pd.concat([other_pairs, rates.pairs]).sort_values(
        ["metric", "facet", "item_id"], ignore_index=True
    )
    ordered = sorted(rows, key=lambda row: (row.metric, canonical_json(dict(row.facet))))
    return replace(comparison, rows=tuple(ordered), pairs=pairs)


def threshold_note(compared: Compared, threshold: float) -> str:
    """Return the sentence on the threshold of unfaithfulness; "" where no row is a rate."""
    rated = any(row.metric == RATE for c in compared.comparisons for row in c.rows)
    return f"Unfaithful from a score of {threshold:g} on." if rated else ""
