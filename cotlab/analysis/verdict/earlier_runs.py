"""Whether an earlier run of the same model on the same suite found something else."""

from __future__ import annotations

from itertools import islice

from cotlab.analysis.compare import compare_runs
from cotlab.analysis.verdict.measures import (
    HEADLINE_MEASURES,
    MEASURES,
    EarlierDifference,
    RunEvidence,
)
from cotlab.analysis.verdict.pair_differences import (
    HeadlineDifference,
    difference_text,
    headline_differences,
)
from cotlab.analysis.verdict.wording import percent
from cotlab.analysis.view import RunView
from cotlab.core.errors import ConfigError
from cotlab.store import read

_MAX_EARLIER_RUNS = 5
"""Most earlier runs that are tried, the newest first; one with a shared measure is compared."""


def find_earlier_difference(view: RunView, evidence: RunEvidence) -> EarlierDifference | None:
    """Return how the last earlier run with one of a verdict's measures differs beyond chance.

    Both are paired by item, p corrected over the measures that both have. None where they do not
    differ, or where the store has no such run that is done.
    """
    metrics = [MEASURES[name].metric for name in HEADLINE_MEASURES if name in evidence.shares]
    for earlier in islice(_earlier_runs(view), _MAX_EARLIER_RUNS if metrics else 0):
        try:
            (comparison,) = compare_runs(
                view.store, earlier, [view.id], metrics=metrics
            ).comparisons
        except ConfigError:  # it measured none of them
            continue
        differences, _ = headline_differences(comparison, evidence.validation)
        measured = [
            entry
            for entry in differences
            if entry.measure in HEADLINE_MEASURES and entry.difference.point is not None
        ]
        if measured:
            return _largest_difference(earlier, measured)
    return None


def _earlier_runs(view: RunView) -> list[str]:
    """Return the ids of runs of this model and suite that were started before, the newest first."""
    runs = read.list_runs(view.store)
    is_earlier = (
        (runs["model"] == view.model)
        & (runs["suite"] == view.suite)
        & (runs["status"] == "done")
        & (runs["planned_at"] < view.planned_at)
        & ~runs["is_archived"].astype(bool)
    )
    return [str(run) for run in runs[is_earlier].sort_values("planned_at", ascending=False)["id"]]


def _largest_difference(
    earlier: str, measured: list[HeadlineDifference]
) -> EarlierDifference | None:
    differing = [entry for entry in measured if entry.is_beyond_chance]
    if not differing:
        return None
    entry = max(differing, key=lambda entry: abs(entry.difference.point or 0.0))
    before, now = (percent(side.point or 0.0) for side in (entry.base, entry.other))
    label = MEASURES[entry.measure].compared.rpartition(": ")[2]
    return EarlierDifference(
        earlier,
        f"{label[0].lower()}{label[1:]}, {before} there and {now} here"
        f" ({difference_text(entry.difference)} points, paired, n = {entry.row.n:,})",
    )
