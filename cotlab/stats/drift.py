"""Whether two samples are still alike: PSI, KL and KS of each feature, all features jointly, each against a permutation null.

PSI is positive even where nothing has moved, the more so the smaller the samples: a value says
nothing without what the same items give when the samples' names are shuffled. The unit that is
shuffled is the question, not the item.
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
"""Defined values that either sample needs."""
BINS, VALUES_PER_BIN, SMOOTHING = 10, 5, 0.5
"""Most bins; values of the smaller sample that each bin stands for; what is added to each bin's
count in each sample."""
MAX_ROWS = 2000
"""Rows of the joint test; of more, whole questions are drawn."""
_SAME, _DIGITS = 1e-9, 9
"""What two numbers may differ by and count as equal: what batches of another shape give is not
drift."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One statistic of two samples against its null.

    Attributes
    ----------
    value : float or None
        None where it is undefined.
    null_hi : float or None
        The 95 % point of the null: what no drift exceeds one time in twenty.
    p : float in (0, 1] or None
        (1 + permutations at least as large) / (1 + permutations).
    """

    value: float | None = None
    null_hi: float | None = None
    p: float | None = None


@dataclass(frozen=True, slots=True)
class FeatureDrift:
    """One feature in two samples.

    Attributes
    ----------
    psi : Measured
        Population stability index in nats, [0, inf): ``kl`` + ``kl_back``.
    ks : Measured
        Largest distance of the two distribution functions, [0, 1].
    ks_p : float or None
        Scipy's p-value of it, for values without ties and independent items; the permutation's
        holds without.
    kl, kl_back : Measured
        Divergence of the current sample from the reference and back, of binned shares, in nats, [0,
        inf).
    bins : int
        Bins that PSI and KL rest on; 0 where they are undefined.
    reason : str
        Why there is no value; "" where there is.
    """

    n_reference: int
    n_current: int
    psi: Measured = Measured()
    ks: Measured = Measured()
    ks_p: float | None = None
    kl: Measured = Measured()
    kl_back: Measured = Measured()
    bins: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JointDrift:
    """All features at once.

    Attributes
    ----------
    energy : Measured
        Energy coefficient of inhomogeneity, [0, 1]: 0 where the distributions are the same.
    n_reference, n_current : int
        Rows that were compared.
    method, reason : str
        How, and why there is no value.
    """

    energy: Measured
    n_reference: int
    n_current: int
    method: str
    reason: str = ""


class Shuffles:
    """Who is in the current sample, as observed (row 0) and after each shuffle: bool (1 + permutations, n).

    The rows of a question that both samples asked are dealt out anew between the two, as many to
    each as it had of them: two rows are swapped or not. Of the other questions each sample gets as
    many as it had, and their rows move together.

    Parameters
    ----------
    reference, current : sequence of str or int
        The question of each row of each sample.
    permutations : int, at least 1
    seed : int

    Raises
    ------
    ValueError
        If there is no permutation to make.
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
        return len(self.is_current) - 1


def feature_drift(
    reference: Sequence[float], current: Sequence[float], shuffles: Shuffles, *, bins: int = BINS
) -> FeatureDrift:
    """PSI, KL and KS of one feature, each with its permutation null.

    Parameters
    ----------
    reference, current : sequence of float
        In the order that ``shuffles`` was made for; NaN where undefined, which is left out.
    shuffles : Shuffles
    bins : int, at least 2
        Most bins. Their edges are quantiles of the (shuffled) reference; equal values stay in one
        bin, and a value that a whole bin's share of the reference has is a bin of its own, so that
        discrete features keep their values apart. No more bins than one for each 5 values of the
        smaller sample. 0.5 is added to each count.

    Returns
    -------
    FeatureDrift
        Without values, and with the reason, below 20 defined values in either sample or where all
        are equal.

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
    """Energy distance of all features at once, against its permutation null.

    Parameters
    ----------
    reference, current : ndarray (n, n_features), float
        NaN where undefined: the median of both samples takes its place, and a column says where it
        did.
    reference_questions, current_questions : sequence of str or int, one a row
    permutations, seed : int

    Returns
    -------
    JointDrift
        Features count alike: each is divided by its standard deviation over both samples; constant
        ones are left out.

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
    """Columns of mean 0 and standard deviation 1, medians for what is missing, and a column for where it is.

    Parameters
    ----------
    table : ndarray (n, n_features), float
        NaN where undefined.

    Returns
    -------
    ndarray (n, at most 2 n_features)
        Constant columns and those without any value are gone.
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
    """The values of one feature in ascending order, and who has them: as observed, and in each shuffle."""

    def __init__(self, now: NDArray[np.bool_], ranks: NDArray[np.int64]) -> None:
        """``now`` (1 + permutations, n): whether the i-th smallest value is current; ``ranks``: which distinct value it is."""
        self._ranks, self._now = ranks, now
        self._last = np.flatnonzero(np.append(np.diff(ranks) > 0, True))
        self._later = np.cumsum(now, axis=1, dtype=np.int32)
        self._m = self._later[:, -1].astype(np.int64)
        self._n = now.shape[1] - self._m

    def measured(self, bins: int) -> tuple[Floats, Floats, Floats, int]:
        """KL of current from reference and back, KS, and the bins of the first row."""
        forward, backward, used = self.divergences(bins)
        return forward, backward, self.ks(), used

    def ks(self) -> Floats:
        """The largest distance of the distribution functions; 0 where a shuffle left one sample without values."""
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
        """KL of current from reference and back, of binned shares, in nats; and the bins of what was observed."""
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
        """How many reference values are at most the ``at``-th distinct one."""
        position = self._last[at]
        return np.where(at >= 0, position + 1 - self._later[rows, position], 0)


def _against(values: Floats) -> Measured:
    """The first of ``values`` against the others."""
    observed, null = float(values[0]), values[1:]
    beyond = int((null >= observed - _SAME).sum())
    hi = float(np.quantile(null, 0.95, method="higher"))
    return Measured(max(0.0, observed), max(0.0, hi), (1 + beyond) / (1 + len(null)))
