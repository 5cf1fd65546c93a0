"""The figure of what the page Compare opens with: two runs' differences in tested metrics."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cotlab.analysis.compare_verdict import judge_pair
from cotlab.analysis.tables.comparison import MAX_BARS, bar_row
from cotlab.analysis.tables.declare import FigureChoice, FigureData, FigureTable, MissingFigure
from cotlab.analysis.tables.several_runs import chosen_runs
from cotlab.analysis.verdict.pair_differences import HeadlineDifference
from cotlab.analysis.view import RunView
from cotlab.store.recorded_models import short_model_name

HEADLINE_FIGURE = "headline_differences"
"""Name of the figure among those of a run."""


def _named(view: RunView) -> str:
    return f"{view.model} (run {view.run_id})"


def _pair_text(base: RunView, other: RunView) -> str:
    """Name the pair by models, and by ids where these are the same."""
    names = [short_model_name(run.model) for run in (other, base)]
    if names[0] == names[1]:
        names = [other.run_id, base.run_id]
    return f"{names[0]} minus {names[1]}"


def _bar(entry: HeadlineDifference, label: str) -> dict[str, Any]:
    """Return one row of the figure of paired differences, with the interval of the page."""
    difference = entry.difference
    bar = bar_row(entry.row, label, "share")
    bar |= {"point": difference.point, "lo": difference.lo, "hi": difference.hi}
    bar |= {"method": difference.method, "reason": difference.reason or bar["reason"]}
    return {**bar, "base": entry.base.point, "other": entry.other.point}


def _headline_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    """Return the differences of other runs from this one, each in the tested metrics of both."""
    members = view.tagged_runs if choice.runs is None else chosen_runs(view, choice.runs)
    others = [member for member in members if member.run_id != view.run_id]
    if not others:
        return MissingFigure("it takes another run, chosen on the page Compare or by tags")
    bars, reasons = [], []
    for other in others:
        pair = judge_pair(view.store, view.run_id, other.run_id, (view.run_id, other.run_id))
        run_text = "" if len(others) == 1 else f" ({other.run_id})"
        bars += [_bar(entry, f"{entry.short_label}{run_text}") for entry in pair.differences]
        reasons += [] if pair.differences else [pair.reason or pair.headline.rstrip(".")]
    if not bars:
        return MissingFigure("; ".join(dict.fromkeys(reasons)).rstrip("."))
    if len(others) == 1:
        bars = [{**bar, "of": _pair_text(view, others[0])} for bar in bars]
    shown = bars[:MAX_BARS]
    notes = [
        f"Base: {_named(view)}; other: {', '.join(map(_named, others))}.",
        *([f"{len(shown)} of {len(bars)} differences."] if len(shown) < len(bars) else []),
        "A measure of faithfulness is here only where it tells models of known behaviour apart.",
    ]
    return FigureData(pd.DataFrame(shown), " ".join(notes), FigureChoice(runs=choice.runs))


HEADLINE_DIFFERENCES = FigureTable("paired_differences", "run", _headline_data)
