"""Drift between two samples: PSI, KL and KS by feature, and all features jointly.

PSI is positive even where nothing has moved, the more so the smaller the samples, so each statistic
is compared with a permutation null. The unit that is permuted is the question, not the item.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cotlab.stats.large_samples import row_blocks

Floats = NDArray[np.float64]
MIN_VALUES = 20
"""Fewest defined values in either sample."""
BINS, VALUES_PER_BIN, SMOOTHING = 10, 5, 0.5
"""Most bins; values of the smaller sample per bin; pseudocount of each bin in each sample."""
MAX_ROWS = 2000
"""Most rows of the joint test; of more, whole questions are drawn."""
_SAME, _DIGITS = 1e-9, 9
"""Tolerance within which numbers count as equal, since other batch shapes round otherwise."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One statistic of two samples and its permutation null."""

    value: float | None = None
    """The statistic; None where it is undefined."""
    null_hi: float | None = None
    """95 % point of the null, which chance exceeds one time in twenty."""
    p: float | None = None
    """(1 + permutations at least as large) / (1 + permutations), in (0, 1]."""


@dataclass(frozen=True, slots=True)
class FeatureDrift:
    """Drift of one feature."""

    n_reference: int
    """Defined values in the reference sample."""
    n_current: int
    """Defined values in the current sample."""
    psi: Measured = Measured()
    """Population stability index in nats, [0, inf): ``kl`` + ``kl_back``."""
    ks: Measured = Measured()
    """Largest distance of the two distribution functions, [0, 1]."""
    ks_p: float | None = None
    """Scipy's p-value of KS, for independent items without ties."""
    kl: Measured = Measured()
    """Divergence of the current sample from the reference, of binned shares, in nats."""
    kl_back: Measured = Measured()
    """Divergence of the reference from the current sample, in nats."""
    bins: int = 0
    """Bins of PSI and KL; 0 where they are undefined."""
    reason: str = ""
    """Why there is no value; "" where there is one."""


@dataclass(frozen=True, slots=True)
class JointDrift:
    """Drift of all features at once."""

    energy: Measured
    """Energy coefficient of inhomogeneity, [0, 1]; 0 for equal distributions."""
    n_reference: int
    """Rows of the reference sample that were compared."""
    n_current: int
    """Rows of the current sample that were compared."""
    method: str
    """How it was computed, and on how many questions."""
    reason: str = ""
    """Why there is no value; "" where there is one."""


class Shuffles:
    """Membership in the current sample, as observed and after each permutation.

    ``is_current`` is bool (1 + permutations, n), with the observed membership in row 0. The rows of
    a question that both samples asked are dealt out anew between the two, as many to each as it had
    of them. Of the other questions each sample gets as many as it had, and their rows move
    together.

    Parameters
    ----------
    reference, current : sequence of str or int
        The question of each row of each sample.
    permutations : int, at least 1
    seed : int

    Raises
    ------
    ValueError
        If ``permutations`` is below 1.
    """

    def __init__(
        self,
        reference: Sequence[Hashable],
        current: Sequence[Hashable],
        *,
        permutations: int,
        seed: int,
    ) -> None:
        if permutations < 1:
            raise ValueError(f"a null needs at least one permutation, got {permutations}")
        rng = np.random.default_rng(seed)
        names = {name: i for i, name in enumerate(dict.fromkeys((*reference, *current)))}
        unit = np.array([names[name] for name in (*reference, *current)], dtype=np.int64)
        start = np.arange(len(unit)) >= len(reference)
        current_counts = np.bincount(unit[start], minlength=len(names))
        shared = (current_counts > 0) & (current_counts < np.bincount(unit, minlength=len(names)))
        unshared, question_is_current = np.flatnonzero(~shared), current_counts > 0
        self.is_current = np.empty((permutations + 1, len(unit)), dtype=bool)
        self.is_current[0] = start
        for k in range(1, permutations + 1):
            side = question_is_current.copy()
            side[unshared] = question_is_current[unshared][rng.permutation(len(unshared))]
            self.is_current[k] = side[unit]
        rows = np.flatnonzero(shared[unit])
        if len(rows):
            within = np.sort(unit[rows])
            position = np.arange(len(rows)) - np.searchsorted(within, within)
            dealt = position < current_counts[within]
            for block in row_blocks(permutations, len(rows)):
                keys = unit[rows] + rng.random((block.stop - block.start, len(rows)))
                shuffled = rows[np.argsort(keys, axis=1)]
                at = np.arange(block.start, block.stop)[:, None] + 1
                self.is_current[at, shuffled] = dealt

    @property
    def permutations(self) -> int:
        """Return the number of permutations."""
        return len(self.is_current) - 1


def feature_drift(
    reference: Sequence[float], current: Sequence[float], shuffles: Shuffles, *, bins: int = BINS
) -> FeatureDrift:
    """Return PSI, KL and KS of one feature, each with its permutation null.

    Parameters
    ----------
    reference, current : sequence of float
        In the order that ``shuffles`` was made for; NaN where undefined, which is left out.
    shuffles : Shuffles
    bins : int, at least 2
        Most bins. Their edges are quantiles of the (permuted) reference; equal values stay in one
        bin, and a value that has a whole bin's share of the reference is a bin by itself. No more
        bins than one for each 5 values of the smaller sample. 0.5 is added to each count.

    Returns
    -------
    FeatureDrift
        Without values, and with the reason, below 20 defined values in either sample and where all
        values are equal.

    Raises
    ------
    ValueError
        If ``shuffles`` was made for another number of rows.

    References
    ----------
    Siddiqi (2006), Credit Risk Scorecards, for PSI, which is Jeffreys' (1946) divergence of binned
    shares; Yurdakul (2018) on its bias, why a fixed cut of 0.1 or 0.25 says little at small n;
    scipy.stats.ks_2samp.
    """
    values = np.concatenate([np.asarray(reference, dtype=float), np.asarray(current, dtype=float)])
    if len(values) != shuffles.is_current.shape[1]:
        raise ValueError(f"{len(values)} values, but shuffles of {shuffles.is_current.shape[1]}")
    known = np.isfinite(values)
    is_current = shuffles.is_current[0, known]
    distinct, ranks = np.unique(np.round(values[known], _DIGITS), return_inverse=True)
    n_current = int(is_current.sum())
    n_reference = int(known.sum()) - n_current
    few = min(n_reference, n_current)
    if few < MIN_VALUES:
        reason = f"{n_reference} and {n_current} defined values: it takes {MIN_VALUES} in each"
        return FeatureDrift(n_reference, n_current, reason=reason)
    if len(distinct) < 2:
        return FeatureDrift(
            n_reference,
            n_current,
            reason=f"all values are {distinct[0]:.3g}: there is nothing to compare",
        )
    order = np.argsort(ranks, kind="stable")
    places, most = np.flatnonzero(known)[order], max(2, min(bins, few // VALUES_PER_BIN))
    blocks = [
        _ShuffledFeature(shuffles.is_current[block][:, places], ranks[order]).measured(most)
        for block in row_blocks(len(shuffles.is_current), len(places))
    ]
    forward, backward, distances = (
        np.concatenate([block[k] for block in blocks]) for k in range(3)
    )
    from scipy import stats

    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # it warns where it goes over from the exact p-value to the limit's
        scipys = float(stats.ks_2samp(values[known][~is_current], values[known][is_current]).pvalue)
    return FeatureDrift(
        n_reference,
        n_current,
        _against(forward + backward),
        _against(distances),
        scipys,
        _against(forward),
        _against(backward),
        blocks[0][3],
    )


def joint_drift(
    reference: Floats,
    current: Floats,
    reference_questions: Sequence[Hashable],
    current_questions: Sequence[Hashable],
    *,
    permutations: int,
    seed: int,
) -> JointDrift:
    """Return the energy distance of all features at once, with its permutation null.

    Parameters
    ----------
    reference, current : ndarray (n, n_features), float
        NaN where undefined; it is replaced by the median of both samples, and an indicator column
        is added.
    reference_questions, current_questions : sequence of str or int
        The question of each row.
    permutations : int, at least 1
    seed : int
        Of the permutations, and of the questions drawn where there are more than ``MAX_ROWS`` rows.

    Returns
    -------
    JointDrift
        Features count alike: each is divided by its standard deviation over both samples; constant
        features are left out.

    References
    ----------
    Szekely and Rizzo (2013), J. Stat. Plan. Inference 143:1249: E = 2 E|X-Y| - E|X-X'| - E|Y-Y'|,
    and E / (2 E|X-Y|) in [0, 1].
    """
    a, b, reference_names, current_names = (
        reference,
        current,
        list(reference_questions),
        list(current_questions),
    )
    method = "energy distance of standardised features"
    if len(a) + len(b) > MAX_ROWS:
        rng = np.random.default_rng(seed)
        names = sorted(set(reference_names) | set(current_names), key=str)
        sampled = {
            names[i]
            for i in rng.permutation(len(names))[: int(len(names) * MAX_ROWS / (len(a) + len(b)))]
        }
        a, reference_names = (
            a[[name in sampled for name in reference_names]],
            [name for name in reference_names if name in sampled],
        )
        b, current_names = (
            b[[name in sampled for name in current_names]],
            [name for name in current_names if name in sampled],
        )
        method += f", {len(sampled)} of {len(names)} questions drawn"
    n, m = len(a), len(b)
    if min(n, m) < MIN_VALUES:
        return JointDrift(
            Measured(), n, m, method, f"{n} and {m} items: it takes {MIN_VALUES} in each"
        )
    space = standardised(np.vstack([a, b]))
    if not space.shape[1]:
        return JointDrift(Measured(), n, m, method, "no feature varies")
    squares = (space**2).sum(axis=1)
    distances = np.sqrt(
        np.maximum(0.0, squares[:, None] + squares[None, :] - 2 * space @ space.T)
    ).astype(np.float32)
    np.fill_diagonal(distances, 0.0)
    later = Shuffles(
        reference_names, current_names, permutations=permutations, seed=seed
    ).is_current.astype(np.float32)
    sizes = later.sum(axis=1, dtype=np.float64)
    rows = later @ distances
    within_current = np.einsum("ij,ij->i", rows, later, dtype=np.float64)
    across = rows.sum(axis=1, dtype=np.float64) - within_current
    rest = float(distances.sum(dtype=np.float64)) - within_current - 2 * across
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = across / (sizes * (n + m - sizes))
        value = 1 - (rest / (n + m - sizes) ** 2 + within_current / sizes**2) / (2 * mean)
    return JointDrift(_against(np.clip(np.nan_to_num(value), 0.0, 1.0)), n, m, method)


def standardised(table: Floats) -> Floats:
    """Return columns of mean 0 and standard deviation 1.

    Parameters
    ----------
    table : ndarray (n, n_features), float
        NaN where undefined; it is replaced by the median, and an indicator column is added.

    Returns
    -------
    ndarray (n, at most 2 n_features)
        Constant columns and those without any value are left out.
    """
    columns = []
    for column in table.T:
        missing = ~np.isfinite(column)
        if missing.all():
            continue
        columns += [np.where(missing, np.median(column[~missing]), column), missing.astype(float)]
    if not columns:
        return np.empty((len(table), 0))
    matrix = np.column_stack(columns)
    spread = matrix.std(axis=0)
    varies = spread > _SAME
    return np.asarray((matrix[:, varies] - matrix[:, varies].mean(axis=0)) / spread[varies])


class _ShuffledFeature:
    """Values of one feature in ascending order, and their membership in a block of shuffles."""

    def __init__(self, now: NDArray[np.bool_], ranks: NDArray[np.int64]) -> None:
        """Take membership (n_rows, n) of the ascending values, and the rank of each value."""
        self._ranks, self._now = ranks, now
        self._last = np.flatnonzero(np.append(np.diff(ranks) > 0, True))
        self._later = np.cumsum(now, axis=1, dtype=np.int32)
        self._m = self._later[:, -1].astype(np.int64)
        self._n = now.shape[1] - self._m

    def measured(self, bins: int) -> tuple[Floats, Floats, Floats, int]:
        """Return KL of current from reference and back, KS, and the bins of the first row."""
        forward, backward, used = self.divergences(bins)
        return forward, backward, self.ks(), used

    def ks(self) -> Floats:
        """Return the largest distance of the distribution functions; 0 where a sample is empty."""
        n_values = self._now.shape[1]
        dtype = np.dtype(np.int64 if n_values > 30_000 else np.int32)
        later = self._later if len(self._last) == n_values else self._later[:, self._last]
        differences = later.astype(dtype) * n_values - (self._last + 1).astype(dtype) * self._m[
            :, None
        ].astype(dtype)
        return np.asarray(
            np.abs(differences, out=differences).max(axis=1) / np.maximum(1, self._m * self._n)
        )

    def divergences(self, bins: int) -> tuple[Floats, Floats, int]:
        """Return KL of current from reference and back, in nats, and the bins of row 0."""
        n, rows = self._n, np.arange(len(self._n))
        places = np.flatnonzero(~self._now) % self._now.shape[1]
        starts = np.cumsum(n) - n
        top = len(self._last) - 1
        edges = [np.full(len(n), -1, dtype=np.int64), np.full(len(n), top, dtype=np.int64)]
        for k in range(1, bins):
            nth = starts + np.maximum(-(-k * n // bins), 1) - 1
            at = self._ranks[places[np.minimum(nth, len(places) - 1)]]
            mass = self._before(rows, at) - self._before(rows, at - 1)
            edges += [at, np.where(mass * bins >= n, at - 1, at)]
        cuts = np.sort(np.stack(edges, axis=1), axis=1)
        real = np.diff(cuts, axis=1) > 0
        many = real.sum(axis=1)
        before = self._before(rows[:, None], cuts)
        total_before = np.where(cuts >= 0, self._last[cuts] + 1, 0)
        old, new = (
            (np.diff(counts, axis=1) + SMOOTHING) / (counts[:, -1] + SMOOTHING * many)[:, None]
            for counts in (before, total_before - before)
        )
        ratio = np.log(new / old)
        backward = np.where(real, -old * ratio, 0.0).sum(axis=1)
        return np.where(real, new * ratio, 0.0).sum(axis=1), backward, int(many[0])

    def _before(self, rows: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many reference values are at most the ``at``-th distinct one."""
        position = self._last[at]
        return np.where(at >= 0, position + 1 - self._later[rows, position], 0)


def _against(values: Floats) -> Measured:
    """Return the first of ``values`` with the others as its null."""
    observed, null = float(values[0]), values[1:]
    beyond = int((null >= observed - _SAME).sum())
    hi = float(np.quantile(null, 0.95, method="higher"))
    return Measured(max(0.0, observed), max(0.0, hi), (1 + beyond) / (1 + len(null)))
