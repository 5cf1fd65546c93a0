"""How well a score finds the faulty ones: ranking measures, and the place of a first mistake.

The bootstrap resamples whole groups (questions), so that several chains of one question count as
one unit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cotlab.stats.auroc_draws import ResampledChains
from cotlab.stats.calibration import Floats, Integers, checked_predictions
from cotlab.stats.group_bootstrap import (
    ONE_CLASS_REASON,
    GroupResamples,
    Measures,
    bootstrap_intervals,
)
from cotlab.stats.intervals import Interval, no_interval, wilson

NO_MISTAKE = -1
"""The place of the first mistake in a chain without one, as ProcessBench writes it."""
RANK_MEASURES = ("auroc", "average_precision", "tpr_at_1", "tpr_at_5")
"""Measures of ``resampled_rank_intervals``."""
FPR_BY_MEASURE: Mapping[str, float] = {"tpr_at_1": 0.01, "tpr_at_5": 0.05}
"""Largest false positive rate of a threshold, by measure."""


def resampled_rank_intervals(
    chains: ResampledChains,
    scores: ArrayLike,
    *,
    level: float = 0.95,
    names: Sequence[str] = RANK_MEASURES,
) -> dict[str, Interval]:
    """Return ranking measures of one of several scores of the same chains.

    Parameters
    ----------
    chains : ResampledChains
    scores : array (n,), finite
    level : float in (0, 1)
    names : sequence of str
        Of ``RANK_MEASURES``.

    Returns
    -------
    dict of str to Interval
        Each in [0, 1]; without a point where the chains are of one class.

    Raises
    ------
    ValueError
        If scores and chains differ in number, or a score is not finite.
    """
    s, y = checked_predictions(scores, chains.is_positive, is_probability=False)
    if y.min() == y.max():
        return {name: no_interval(None, 0, ONE_CLASS_REASON, level=level) for name in names}
    by_sorting = [name for name in names if name != "auroc"]
    intervals = {}
    if "auroc" in names:
        intervals["auroc"] = chains.interval(chains.aurocs(s), level=level)
    if by_sorting:
        intervals |= bootstrap_intervals(
            _rank_measure(s, y, by_sorting),
            chains.groups,
            chains.resamples,
            level=level,
            refusal=chains.refusal,
        )
    return {name: intervals[name] for name in names}


@dataclass(frozen=True, slots=True)
class LocationMeasures:
    """How well a method finds the first mistake of chains."""

    exact: Interval
    """Share of the chains with a mistake whose first one is named exactly, in [0, 1]."""
    none_right: Interval
    """Share of the chains without a mistake for which none is named, in [0, 1]."""
    pb_f1: Interval
    """Harmonic mean of both, averaged over the sets that have both kinds of chain,
    in [0, 1]."""
    pb_f1_by_set: Mapping[str, float | None]
    """The harmonic mean of each set; None where a set lacks one kind of chain."""


def location_measures(
    named: ArrayLike,
    true: ArrayLike,
    groups: Sequence[Hashable],
    sets: Sequence[str] | None = None,
    *,
    seed: int,
    level: float = 0.95,
) -> LocationMeasures:
    """Return how well the first mistakes of chains are found, with intervals over groups.

    Parameters
    ----------
    named : array (n,) of int
        Index of the step that a method names first, ``NO_MISTAKE`` where it names none.
    true : array (n,) of int
        Index of the first wrong step, ``NO_MISTAKE`` in chains without one.
    groups : sequence (n,) of str or int
        The question of each chain.
    sets : sequence (n,) of str, optional
        The set (benchmark, domain) of each chain; by default all are of one.
    seed : int
    level : float in (0, 1)

    Returns
    -------
    LocationMeasures
        Undefined where no chain has a mistake, or none is without.

    Raises
    ------
    ValueError
        If the lengths differ or are 0.

    References
    ----------
    Zheng et al. (2024), ProcessBench, arXiv:2412.06559.
    """
    true_steps = np.asarray(true, dtype=int)
    set_of_row = np.asarray(list(sets) if sets is not None else ["all"] * len(true_steps))
    measure = _location_measure(np.asarray(named, dtype=int), true_steps, set_of_row)
    resamples = GroupResamples.draw(groups, seed=seed)
    intervals = bootstrap_intervals(measure, groups, resamples, level=level)
    has_mistake = true_steps != NO_MISTAKE
    return LocationMeasures(
        _share_interval(intervals["exact"], groups, has_mistake, level),
        _share_interval(intervals["none_right"], groups, ~has_mistake, level),
        intervals["pb_f1"],
        {name: intervals[f"set {name}"].point for name in sorted(set(set_of_row.tolist()))},
    )


def location_difference(
    first: ArrayLike,
    second: ArrayLike,
    true: ArrayLike,
    groups: Sequence[Hashable],
    sets: Sequence[str],
    *,
    seed: int,
    level: float = 0.95,
) -> Interval:
    """Return the PB-F1 of ``second`` minus that of ``first``; both are resampled together.

    Parameters
    ----------
    first, second, true : array (n,) of int
        As ``named`` and ``true`` of ``location_measures``.
    groups, sets : sequence (n,)
    seed : int
    level : float in (0, 1)

    Returns
    -------
    Interval
        In [-1, 1].
    """
    true_steps, set_of_row = np.asarray(true, dtype=int), np.asarray(list(sets))
    first_measure, second_measure = (
        _location_measure(np.asarray(named, dtype=int), true_steps, set_of_row)
        for named in (first, second)
    )
    return bootstrap_intervals(
        lambda weights: {
            "pb_f1": second_measure(weights)["pb_f1"] - first_measure(weights)["pb_f1"]
        },
        groups,
        GroupResamples.draw(groups, seed=seed),
        level=level,
        paired=True,
    )["pb_f1"]


def _share_interval(
    interval: Interval, groups: Sequence[Hashable], rows: NDArray[np.bool_], level: float
) -> Interval:
    """Return a share's interval; Wilson's where all or none are right, which has no spread."""
    if interval.point not in (0.0, 1.0):
        return interval
    n = len({group for group, is_counted in zip(groups, rows, strict=True) if is_counted})
    return wilson(int(interval.point) * n, n, level=level)


def _location_measure(
    named: Integers, true: Integers, set_of_row: NDArray[np.str_]
) -> Callable[[Floats], Measures]:
    """Return the measures of ``location_measures`` as a function of weights."""
    if named.shape != true.shape or not len(true) or set_of_row.shape != true.shape:
        raise ValueError("one true place and one set for each named place, and at least one")
    has_mistake, is_right = true != NO_MISTAKE, named == true
    set_names = sorted(set(set_of_row.tolist()))
    indicators = np.column_stack(
        [
            (set_of_row == name) & kind & (is_right if only_right else True)
            for name in set_names
            for kind in (has_mistake, ~has_mistake)
            for only_right in (False, True)
        ]
    ).astype(float)
    has_both = [
        bool(has_mistake[set_of_row == name].any() and (~has_mistake)[set_of_row == name].any())
        for name in set_names
    ]

    def measure(weights: Floats) -> Measures:
        sums = (weights @ indicators).reshape(len(weights), len(set_names), 4)
        with np.errstate(invalid="ignore", divide="ignore"):
            exact, none_right = sums[..., 1] / sums[..., 0], sums[..., 3] / sums[..., 2]
            total = exact + none_right
            harmonic = np.where(total == 0, 0.0, 2 * exact * none_right / total)
            totals = sums.sum(axis=1)
            measures = {
                "exact": totals[:, 1] / totals[:, 0],
                "none_right": totals[:, 3] / totals[:, 2],
                "pb_f1": (
                    harmonic[:, has_both].mean(axis=1)
                    if any(has_both)
                    else np.full(len(weights), np.nan)
                ),
            }
        return measures | {
            f"set {name}": harmonic[:, index] for index, name in enumerate(set_names)
        }

    return measure


def _rank_measure(scores: Floats, y: Floats, names: Sequence[str]) -> Callable[[Floats], Measures]:
    """Return measures of a ranking as one function of weights; scores are sorted only once."""
    _, descending_index = np.unique(-scores, return_inverse=True)
    order = np.argsort(descending_index, kind="stable")
    tie_starts = np.flatnonzero(np.r_[True, np.diff(descending_index[order]) > 0])
    positives, negatives = y[order], 1 - y[order]

    def measure(weights: Floats) -> Measures:
        sorted_weights = weights[:, order]
        positive = np.add.reduceat(sorted_weights * positives, tie_starts, axis=1)
        negative = np.add.reduceat(sorted_weights * negatives, tie_starts, axis=1)
        true_positives, false_positives = positive.cumsum(axis=1), negative.cumsum(axis=1)
        n_positive, n_negative = true_positives[:, -1:], false_positives[:, -1:]
        measures = {}
        with np.errstate(invalid="ignore", divide="ignore"):
            if "average_precision" in names:
                precision = true_positives / (true_positives + false_positives)
                measures["average_precision"] = (
                    np.nansum(positive * precision, axis=1) / n_positive[:, 0]
                )
            for name in names:
                if name not in FPR_BY_MEASURE:
                    continue
                is_allowed = false_positives <= FPR_BY_MEASURE[name] * n_negative + 1e-9
                share = (true_positives * is_allowed).max(axis=1) / n_positive[:, 0]
                measures[name] = np.where(n_negative[:, 0] > 0, share, np.nan)
        return measures

    return measure
