"""AUROCs on resamples of questions, of many scores at little cost, and their intervals."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cotlab.stats.calibration import Floats, checked_predictions
from cotlab.stats.group_bootstrap import ONE_CLASS_REASON, GroupResamples, percentile_interval
from cotlab.stats.intervals import FEWEST, Interval, no_interval, too_few

_BLOCK_CELLS = 1_000_000
_MAX_TABLE_CHAINS = 5_000
"""Chains up to which tables of some resamples each are faster than one resample after the other."""
_MAX_SINGLE_PAIRS = 2**22
"""Pairs, in halves, that are counted without rounding in single precision."""


class _Ranking(NamedTuple):
    """The chains of both classes, each in the order of their scores."""

    negatives: NDArray[np.int64]
    """The question (n_negative,) of each negative: its row of ``GroupResamples.counts``."""
    positives: NDArray[np.int64]
    """The question (n_positive,) of each positive."""
    n_below: NDArray[np.int64]
    """How many negatives score below each positive."""
    n_not_above: NDArray[np.int64]
    """How many negatives score at most what each positive does."""

    @property
    def has_ties(self) -> bool:
        """Whether a positive scores what a negative does."""
        return bool((self.n_below < self.n_not_above).any())


@dataclass(frozen=True)
class ResampledChains:
    """The classes and questions of chains, whose scores are measured on the same resamples.

    What does not depend on the scores is computed once for all of them.
    """

    is_positive: NDArray[np.bool_]
    """Classes (n,)."""
    groups: Sequence[Hashable]
    """The question (n,) of each chain."""
    resamples: GroupResamples
    """Resamples of these questions, and perhaps of others."""

    def __post_init__(self) -> None:
        n, n_groups = len(self.is_positive), len(self.groups)
        if n_groups != n:
            raise ValueError(f"one group for each row, got {n_groups} for {n}")

    @classmethod
    def draw(
        cls, is_positive: NDArray[np.bool_], groups: Sequence[Hashable], *, seed: int
    ) -> ResampledChains:
        """Return chains with resamples of their questions; ValueError if the lengths differ."""
        return cls(is_positive, groups, GroupResamples.draw(groups, seed=seed))

    @cached_property
    def refusal(self) -> str | None:
        """Why resampling says nothing of a class with very few questions; None where enough."""
        for is_class, what in (
            (self.is_positive, "questions to be found"),
            (~self.is_positive, "other questions"),
        ):
            pairs = zip(self.groups, is_class.tolist(), strict=True)
            n = len({group for group, is_member in pairs if is_member})
            if reason := too_few(n, what, FEWEST):
                return reason
        return None

    @cached_property
    def _group_rows(self) -> NDArray[np.int64]:
        return self.resamples.rows_of(self.groups)

    @cached_property
    def _n_pairs(self) -> Floats:
        """Pairs of a positive and a negative in all chains, then in each resample."""
        n_positive, n_negative = (
            # not a matrix product: its threads cost more than they save
            np.einsum(
                "i,ij->j",
                np.bincount(self._group_rows[is_class], minlength=self.resamples.n).astype(float),
                self.resamples.counts,
            )
            for is_class in (self.is_positive, ~self.is_positive)
        )
        return np.asarray(n_positive * n_negative)

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
        negative_rows, positive_rows = (
            rows[np.argsort(s[rows], kind="stable")]
            for rows in (np.flatnonzero(~self.is_positive), np.flatnonzero(self.is_positive))
        )
        n_below, n_not_above = (
            np.searchsorted(s[negative_rows], s[positive_rows], side) for side in ("left", "right")
        )
        order = _Ranking(
            self._group_rows[negative_rows], self._group_rows[positive_rows], n_below, n_not_above
        )
        rank = self._ranked_in_rows if len(s) > _MAX_TABLE_CHAINS else self._ranked_in_tables
        with np.errstate(invalid="ignore", divide="ignore"):
            return rank(order) / self._n_pairs

    def _ranked_in_tables(self, order: _Ranking) -> Floats:
        """Return the ranked pairs of each resample, from tables of some resamples each."""
        is_exact_in_single = self._n_pairs.max() <= _MAX_SINGLE_PAIRS
        number: type[np.floating[Any]] = np.float32 if is_exact_in_single else np.float64
        counts, n_columns = self.resamples.counts, self.resamples.counts.shape[1]
        n_ranked = np.empty(n_columns)
        width = min(n_columns, max(64, _BLOCK_CELLS // len(self.groups)))
        for start in range(0, n_columns, width):
            block = counts[:, start : start + width].astype(number, copy=False)
            sums = np.empty((len(order.negatives) + 1, block.shape[1]), number)
            sums[0] = 0
            # many times faster than a cumulative sum of a table
            for row, group_row in enumerate(order.negatives.tolist()):
                np.add(sums[row], block[group_row], out=sums[row + 1])
            ranked_below = sums[order.n_below]
            if order.has_ties:
                ranked_below += sums[order.n_not_above]
                ranked_below /= 2
            ranked_below *= block[order.positives]
            n_ranked[start : start + width] = ranked_below.sum(axis=0)
        return n_ranked

    def _ranked_in_rows(self, order: _Ranking) -> Floats:
        """Return the same of many chains, whose tables fit into no cache, one resample at a time.

        Whole and half pairs are summed without rounding, so that both ways give one number.
        """
        n_columns = self.resamples.counts.shape[1]
        n_ranked, sums = np.empty(n_columns), np.zeros(len(order.negatives) + 1)
        for column in range(n_columns):
            counts = self.resamples.counts[:, column].astype(float)
            np.cumsum(counts.take(order.negatives), out=sums[1:])
            ranked_below = sums.take(order.n_below)
            if order.has_ties:
                ranked_below += sums.take(order.n_not_above)
                ranked_below /= 2
            ranked_below *= counts.take(order.positives)
            n_ranked[column] = ranked_below.sum()
        return n_ranked

    def reversed_aurocs(self, aurocs: Floats) -> Floats:
        """Return the AUROCs of the negated scores, from those of the scores by ``aurocs``."""
        n_ranked = np.rint(2 * aurocs * self._n_pairs) / 2  # whole or half pairs, without rounding
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((self._n_pairs - n_ranked) / self._n_pairs)

    def interval(self, aurocs: Floats, *, level: float = 0.95) -> Interval:
        """Return the interval of an AUROC, from its values by ``aurocs``."""
        return percentile_interval(aurocs, self.resamples.n, level=level, refusal=self.refusal)

    def difference(self, first: Floats, second: Floats, *, level: float = 0.95) -> Interval:
        """Return the paired interval of the second AUROC minus the first, both by ``aurocs``."""
        return percentile_interval(
            second - first, self.resamples.n, level=level, paired=True, refusal=self.refusal
        )


@dataclass(frozen=True, slots=True)
class RankedChains:
    """Scores of chains with their classes."""

    scores: Floats
    """Scores (n,), finite; higher points at the positive class."""
    is_positive: NDArray[np.bool_]
    """Classes (n,)."""
    groups: Sequence[Hashable]
    """The question (n,) of each chain."""


def auroc_difference(
    first: RankedChains, second: RankedChains, *, seed: int, level: float = 0.95
) -> Interval:
    """Return the AUROC of ``second`` minus that of ``first``, of the same or of other chains.

    Parameters
    ----------
    first, second : RankedChains
        Where a question has chains in both, they are resampled together.
    seed : int
    level : float in (0, 1)

    Returns
    -------
    Interval
        In [-1, 1]; ``n`` counts the questions of both. Undefined where one has one class only.

    Raises
    ------
    ValueError
        If a score is not finite, or scores and classes differ in number.
    """
    resamples = GroupResamples.draw([*first.groups, *second.groups], seed=seed)
    (s, y), (t, z) = (
        checked_predictions(chains.scores, chains.is_positive, is_probability=False)
        for chains in (first, second)
    )
    if y.min() == y.max() or z.min() == z.max():
        return no_interval(None, 0, ONE_CLASS_REASON, level=level)
    first_chains = ResampledChains(y == 1, first.groups, resamples)
    second_chains = ResampledChains(z == 1, second.groups, resamples)
    return percentile_interval(
        second_chains.aurocs(t) - first_chains.aurocs(s),
        resamples.n,
        level=level,
        paired=True,
        refusal=first_chains.refusal or second_chains.refusal,
    )
