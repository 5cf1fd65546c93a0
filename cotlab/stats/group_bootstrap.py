"""Intervals by resampling whole groups, of any measure that is a function of the rows' weights."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cotlab.stats.calibration import Floats, Integers
from cotlab.stats.intervals import FEWEST, Interval, checked_level, no_interval, too_few
from cotlab.stats.resample import RESAMPLES

ONE_CLASS_REASON = "there is one class only: nothing can be ranked against it"
_BLOCK_CELLS = 100_000
"""Weights computed with at a time: few enough for a processor's cache."""
_MAX_SINGLE_GROUPS = 2000
"""Groups up to which counts are held as the numbers that they are computed with: 16 MB."""
_N_BLOCK_DRAWS = 250
Measures = dict[str, Floats]
"""Measure -> one value a resample (n_draws,), NaN where undefined."""


@dataclass(frozen=True, slots=True)
class GroupResamples:
    """Resamples of groups with replacement, for any number of measures of the same groups."""

    index_by_group: Mapping[Hashable, int]
    """Row of ``counts`` by group."""
    counts: NDArray[Any]
    """How often each group (n_groups, 1 + RESAMPLES) is drawn: once in column 0, which is no
    resample but gives the measure's point; then in each resample."""

    @classmethod
    def draw(cls, groups: Sequence[Hashable], *, seed: int) -> GroupResamples:
        """Return the resamples of the distinct groups, the same for the same groups and seed."""
        index_by_group = {name: k for k, name in enumerate(sorted(set(groups), key=str))}
        n, rng = len(index_by_group), np.random.default_rng(seed)
        if n > _MAX_SINGLE_GROUPS:
            return cls(index_by_group, _counts_by_resample(n, rng).T)
        counts = np.empty((n, 1 + RESAMPLES), np.float32)
        counts[:, 0] = 1
        for start in range(0, RESAMPLES, _N_BLOCK_DRAWS):
            n_draws = min(_N_BLOCK_DRAWS, RESAMPLES - start)
            block = rng.integers(0, n, (n_draws, n), dtype=np.int32).astype(np.int64)
            cells = (block * n_draws + np.arange(n_draws)[:, None]).ravel()
            counts[:, 1 + start : 1 + start + n_draws] = np.bincount(
                cells, minlength=n * n_draws
            ).reshape(n, n_draws)
        return cls(index_by_group, counts)

    @property
    def n(self) -> int:
        """Number of groups."""
        return len(self.index_by_group)

    def rows_of(self, groups: Sequence[Hashable]) -> Integers:
        """Return the row of ``counts`` of each group."""
        return np.array([self.index_by_group[group] for group in groups], dtype=np.int64)


def _counts_by_resample(n: int, rng: np.random.Generator) -> NDArray[np.uint16]:
    """Return how often each of many groups is drawn (1 + RESAMPLES, n).

    A resample is a row, which fits into a processor's cache; the draws are those of blocks of rows.
    """
    counts = np.ones((1 + RESAMPLES, n), np.uint16)
    for row in counts[1:]:
        row[:] = np.bincount(rng.integers(0, n, n, dtype=np.int32), minlength=n)
    return counts


class ResamplePool:
    """Resamples by set of groups, so that measures of the same groups share theirs."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._resamples: dict[frozenset[Hashable], GroupResamples] = {}

    def resamples_of(self, groups: Sequence[Hashable]) -> GroupResamples:
        """Return the resamples of these groups, as ``GroupResamples.draw`` makes them."""
        key = frozenset(groups)
        if key not in self._resamples:
            self._resamples[key] = GroupResamples.draw(groups, seed=self._seed)
        return self._resamples[key]


def bootstrap_intervals(
    measure: Callable[[Floats], Measures],
    groups: Sequence[Hashable],
    resamples: GroupResamples,
    *,
    level: float,
    paired: bool = False,
    refusal: str | None = None,
) -> dict[str, Interval]:
    """Return percentile intervals over resamples of whole groups, widened to their points.

    Parameters
    ----------
    measure : callable
        Measures as a function of the rows' weights (n_draws, n_rows).
    groups : sequence (n_rows,) of str or int
        The group of each row.
    resamples : GroupResamples
        Of these groups; ``n`` of the results counts them.
    level : float in (0, 1)
    paired : bool
        Whether the measures are differences, which the name of the method then says.
    refusal : str, optional
        Why there can be no bounds.

    Returns
    -------
    dict of str to Interval
        No bounds below ``FEWEST`` groups; undefined where the measure of all rows is NaN.

    References
    ----------
    Davison and Hinkley (1997), Bootstrap Methods and their Application, 3.8.
    """
    group_rows = resamples.rows_of(groups)
    n_columns = 1 if refusal or resamples.n < FEWEST else 1 + RESAMPLES
    values: dict[str, list[Floats]] = {}
    block_size = max(1, _BLOCK_CELLS // len(groups))
    for start in range(0, n_columns, block_size):
        counts = resamples.counts[:, start : min(start + block_size, n_columns)]
        weights = np.ascontiguousarray(counts.T[:, group_rows], dtype=float)
        for name, block in measure(weights).items():
            values.setdefault(name, []).append(block)
    return {
        name: percentile_interval(
            np.concatenate(blocks), resamples.n, level=level, paired=paired, refusal=refusal
        )
        for name, blocks in values.items()
    }


def percentile_interval(
    values: Floats, n: int, *, level: float, paired: bool = False, refusal: str | None = None
) -> Interval:
    """Return the interval of a measure that was computed on each resample of ``GroupResamples``.

    Parameters
    ----------
    values : array (1 + RESAMPLES,)
        The point first, then its resamples, NaN where undefined; without bounds the point alone
        suffices.
    n : int
        Number of groups.
    level : float in (0, 1)
    paired : bool
        Whether the measure is a difference.
    refusal : str, optional
        Why there can be no bounds.

    Returns
    -------
    Interval
        As those of ``bootstrap_intervals``.
    """
    checked_level(level)
    refusal = refusal or too_few(n, "questions", FEWEST)
    point, draws = float(values[0]), values[1:]
    draws = draws[np.isfinite(draws)]
    if not np.isfinite(point):
        return no_interval(None, 0, ONE_CLASS_REASON, level=level)
    if refusal or not len(draws):
        return no_interval(point, n, refusal or "no resample has both classes", level=level)
    lo, hi = (float(q) for q in np.quantile(draws, [(1 - level) / 2, (1 + level) / 2]))
    method = f"bootstrap over questions (percentile, {RESAMPLES} resamples)"
    note = (
        f"{RESAMPLES - len(draws)} of {RESAMPLES} resamples hold one class and are left out"
        if len(draws) < RESAMPLES
        else None
    )
    lo, hi = min(lo, point), max(hi, point)
    return Interval(point, lo, hi, n, "paired " * paired + method, level, note=note)
