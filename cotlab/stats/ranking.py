"""How well a score finds the faulty ones: ranking measures, and the place of a first mistake.

The bootstrap resamples whole groups (questions), so that several chains of one question count as
one unit.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cotlab.stats.calibration import Floats, Integers, checked_predictions, weighted_auroc
from cotlab.stats.intervals import Interval, no_interval, too_few, wilson
from cotlab.stats.resample import ONE_CLASS_REASON, GroupResamples, Measure, percentile_interval

NO_MISTAKE = -1
"""The place of the first mistake in a chain without one, as ProcessBench writes it."""
FPR_BY_MEASURE: Mapping[str, float] = {"tpr_at_1": 0.01, "tpr_at_5": 0.05}
"""Largest false positive rate of a threshold, by measure."""
RANK_MEASURES = ("auroc", "average_precision", *FPR_BY_MEASURE)
"""Measures of a ranking: the AUROC, and those of ``ResampledChains.rank_intervals``."""


@dataclass(frozen=True)
class ResampledChains:
    """The classes and questions of chains, whose scores are measured on the same resamples."""

    is_positive: NDArray[np.bool_]
    """Classes (n,)."""
    groups: Sequence[Hashable]
    """The question (n,) of each chain."""
    seed: int
    """Of the resamples of the questions."""

    def __post_init__(self) -> None:
        if len(self.groups) != len(self.is_positive):
            raise ValueError(
                f"one group for each row, got {len(self.groups)} for {len(self.is_positive)}"
            )

    @cached_property
    def refusal(self) -> str | None:
        """Why resampling says nothing of a class with very few questions; None where enough."""
        n_positive, n_others = (
            len(set(compress(self.groups, rows))) for rows in (self.is_positive, ~self.is_positive)
        )
        return too_few(n_positive, "questions to be found") or too_few(n_others, "other questions")

    @cached_property
    def _resamples(self) -> GroupResamples:
        return GroupResamples.of(self.groups, seed=self.seed)

    def aurocs(self, scores: ArrayLike) -> Floats:
        """Return the AUROC of scores in all chains, then in each resample.

        Parameters
        ----------
        scores : array (n,), finite
            Higher points at the positive class.

        Returns
        -------
        array (1 + RESAMPLES,)
            The probability that a positive scores above a negative, ties counting half; NaN where a
            resample holds one class.

        Raises
        ------
        ValueError
            If the lengths differ or are 0, or a score is not finite.

        References
        ----------
        Hanley and McNeil (1982), Radiology 143:29.
        """
        s, _ = checked_predictions(scores, self.is_positive, is_probability=False)
        return self._resamples.values(weighted_auroc(s, self.is_positive))

    def interval(self, aurocs: Floats) -> Interval:
        """Return the interval of an AUROC, from its values by ``aurocs``."""
        return percentile_interval(aurocs, self._resamples.n, refusal=self.refusal)

    def difference(self, first: Floats, second: Floats) -> Interval:
        """Return the paired interval of the second AUROC minus the first, both by ``aurocs``."""
        return percentile_interval(
            second - first, self._resamples.n, paired=True, refusal=self.refusal
        )

    def rank_intervals(self, scores: ArrayLike) -> dict[str, Interval]:
        """Return the average precision of scores, and the shares found at few false alarms.

        Parameters
        ----------
        scores : array (n,), finite

        Returns
        -------
        dict of str to Interval
            ``RANK_MEASURES`` but for the AUROC, each in [0, 1]; without a point where the chains
            are of one class.

        Raises
        ------
        ValueError
            As ``aurocs``.
        """
        s, y = checked_predictions(scores, self.is_positive, is_probability=False)
        names = RANK_MEASURES[1:]
        if y.min() == y.max():
            return {name: no_interval(None, 0, ONE_CLASS_REASON) for name in names}
        values = self._resamples.values(_rank_measure(s, y))
        return {
            name: percentile_interval(values[:, k], self._resamples.n, refusal=self.refusal)
            for k, name in enumerate(names)
        }


def auroc_difference(
    first: ResampledChains,
    first_scores: ArrayLike,
    second: ResampledChains,
    second_scores: ArrayLike,
) -> Interval:
    """Return the AUROC of the second scores minus that of the first, of other chains.

    Parameters
    ----------
    first, second : ResampledChains
        Where a question has chains in both, they are resampled together, by the seed of the first.
    first_scores, second_scores : array (n,), finite
        Of the first and of the second chains.

    Returns
    -------
    Interval
        In [-1, 1]; ``n`` counts the questions of both. Undefined where one has one class only.

    Raises
    ------
    ValueError
        As ``ResampledChains.aurocs``.
    """
    n_first = len(first.groups)
    resamples = GroupResamples.of([*first.groups, *second.groups], seed=first.seed)
    first_measure, second_measure = (
        weighted_auroc(
            checked_predictions(scores, chains.is_positive, is_probability=False)[0],
            chains.is_positive,
        )
        for chains, scores in ((first, first_scores), (second, second_scores))
    )
    values = resamples.values(
        lambda weights: second_measure(weights[:, n_first:]) - first_measure(weights[:, :n_first])
    )
    refusal = first.refusal or second.refusal
    return percentile_interval(values, resamples.n, paired=True, refusal=refusal)


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
    resamples = GroupResamples.of(groups, seed=seed)
    values = resamples.values(_location_measure(np.asarray(named, int), true_steps, set_of_row))
    exact, none_right, pb_f1 = (percentile_interval(values[:, k], resamples.n) for k in range(3))
    has_mistake = true_steps != NO_MISTAKE
    harmonic_means = dict(
        zip(sorted(set(set_of_row.tolist())), values[0, 3:].tolist(), strict=True)
    )
    return LocationMeasures(
        _share_interval(exact, groups, has_mistake),
        _share_interval(none_right, groups, ~has_mistake),
        pb_f1,
        {name: None if math.isnan(mean) else mean for name, mean in harmonic_means.items()},
    )


def location_difference(
    first: ArrayLike,
    second: ArrayLike,
    true: ArrayLike,
    groups: Sequence[Hashable],
    sets: Sequence[str],
    *,
    seed: int,
) -> Interval:
    """Return the PB-F1 of ``second`` minus that of ``first``; both are resampled together.

    Parameters
    ----------
    first, second, true : array (n,) of int
        As ``named`` and ``true`` of ``location_measures``.
    groups, sets : sequence (n,)
    seed : int

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
    return GroupResamples.of(groups, seed=seed).interval(
        lambda weights: (second_measure(weights) - first_measure(weights))[:, 2],
        paired=True,
    )


def _share_interval(
    interval: Interval, groups: Sequence[Hashable], rows: NDArray[np.bool_]
) -> Interval:
    """Return a share's interval; Wilson's where all or none are right, which has no spread."""
    if interval.point not in (0.0, 1.0):
        return interval
    n = len({group for group, is_counted in zip(groups, rows, strict=True) if is_counted})
    return wilson(int(interval.point) * n, n)


def _location_measure(named: Integers, true: Integers, set_of_row: NDArray[np.str_]) -> Measure:
    """Return what ``location_measures`` gives, in its order, as a function of weights."""
    if named.shape != true.shape or not len(true) or set_of_row.shape != true.shape:
        raise ValueError("one true place and one set for each named place, and at least one")
    has_mistake, is_right = true != NO_MISTAKE, named == true
    is_in_set = [set_of_row == name for name in sorted(set(set_of_row.tolist()))]
    has_both = [bool(has_mistake[rows].any() and (~has_mistake)[rows].any()) for rows in is_in_set]
    indicators = np.column_stack(
        [
            rows & kind & right
            for rows in is_in_set
            for kind in (has_mistake, ~has_mistake)
            for right in (True, is_right)
        ]
    ).astype(float)

    def measure(weights: Floats) -> Floats:
        sums = (weights @ indicators).reshape(len(weights), len(is_in_set), 4)
        totals = sums.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            exact, none_right = sums[..., 1] / sums[..., 0], sums[..., 3] / sums[..., 2]
            total = exact + none_right
            harmonic = np.where(total == 0, 0.0, 2 * exact * none_right / total)
            # a mean of no set is undefined
            pb_f1 = harmonic[:, has_both].sum(axis=1) / np.float64(sum(has_both))
            return np.column_stack(
                [totals[:, 1] / totals[:, 0], totals[:, 3] / totals[:, 2], pb_f1, harmonic]
            )

    return measure


def _rank_measure(scores: Floats, y: Floats) -> Measure:
    """Return ``rank_intervals``' measures as a function of weights; scores are sorted once."""
    _, descending_index = np.unique(-scores, return_inverse=True)
    order = np.argsort(descending_index, kind="stable")
    tie_starts = np.flatnonzero(np.r_[True, np.diff(descending_index[order]) > 0])
    positives, negatives = y[order], 1 - y[order]

    def measure(weights: Floats) -> Floats:
        sorted_weights = weights[:, order]
        positive = np.add.reduceat(sorted_weights * positives, tie_starts, axis=1)
        negative = np.add.reduceat(sorted_weights * negatives, tie_starts, axis=1)
        true_positives, false_positives = positive.cumsum(axis=1), negative.cumsum(axis=1)
        n_positive, n_negative = true_positives[:, -1], false_positives[:, -1:]
        with np.errstate(invalid="ignore", divide="ignore"):
            precision = true_positives / (true_positives + false_positives)
            found = [np.nansum(positive * precision, axis=1) / n_positive]
            for limit in FPR_BY_MEASURE.values():
                is_allowed = false_positives <= limit * n_negative + 1e-9
                share = (true_positives * is_allowed).max(axis=1) / n_positive
                found.append(np.where(n_negative[:, 0] > 0, share, np.nan))
        return np.column_stack(found)

    return measure
