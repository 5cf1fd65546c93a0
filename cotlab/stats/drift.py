"""Drift between two samples: PSI, KL and KS by feature, and all features jointly.

PSI is positive even where nothing has moved, the more so the smaller the samples, so each statistic
is compared with a permutation null. The unit that is permuted is the question, not the item.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from cotlab.stats.resample import row_blocks
from cotlab.stats.shuffles import Shuffles

Floats = NDArray[np.float64]
MIN_VALUES = 20
"""Fewest defined values in either sample."""
MAX_BINS, MIN_VALUES_PER_BIN = 10, 5
"""Most bins; values of the smaller sample per bin."""
MAX_ROWS = 2000
"""Most rows of the joint test; of more, whole questions are drawn."""
PSEUDOCOUNT = 0.5
"""Added to the count of each bin in each sample."""
_CONSTANT = "all values are"
"""Start of the reason of a feature that has one value only."""
_TOLERANCE, _ROUNDING_DIGITS = 1e-9, 9
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

    @property
    def is_constant(self) -> bool:
        """Return whether all values of both samples are equal, so that nothing can have moved."""
        return self.reason.startswith(_CONSTANT)


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


def feature_drift(
    reference: Sequence[float],
    current: Sequence[float],
    shuffles: Shuffles,
) -> FeatureDrift:
    """Return PSI, KL and KS of one feature, each with its permutation null.

    Parameters
    ----------
    reference, current : sequence of float
        In the order that ``shuffles`` was made for; NaN where undefined, which is left out.
    shuffles : Shuffles

    Returns
    -------
    FeatureDrift
        Without values, and with the reason, below 20 defined values in either sample and where all
        values are equal. The edges of the bins are quantiles of the (permuted) reference; equal
        values stay in one bin, and a value that has a whole bin's share of the reference is a bin
        by itself. No more bins than one for each 5 values of the smaller sample. 0.5 is added to
        each count.

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
    n_rows = shuffles.is_current.shape[1]
    if len(values) != n_rows:
        raise ValueError(f"{len(values)} values, but shuffles of {n_rows}")
    is_defined = np.isfinite(values)
    is_current = shuffles.is_current[0, is_defined]
    distinct_values, ranks = np.unique(
        np.round(values[is_defined], _ROUNDING_DIGITS), return_inverse=True
    )
    n_current = int(is_current.sum())
    n_reference = int(is_defined.sum()) - n_current
    n_smaller_sample = min(n_reference, n_current)
    if n_smaller_sample < MIN_VALUES:
        reason = f"{n_reference} and {n_current} defined values: it takes {MIN_VALUES} in each"
        return FeatureDrift(n_reference, n_current, reason=reason)
    if len(distinct_values) < 2:
        return FeatureDrift(
            n_reference,
            n_current,
            reason=f"{_CONSTANT} {distinct_values[0]:.3g}: there is nothing to compare",
        )
    max_bins = max(2, min(MAX_BINS, n_smaller_sample // MIN_VALUES_PER_BIN))
    n_up_to = np.cumsum(np.bincount(ranks))
    sorted_rows = np.flatnonzero(is_defined)[np.argsort(ranks, kind="stable")]
    blocks = []
    for rows in row_blocks(len(shuffles.is_current), len(sorted_rows)):
        is_current_sorted = shuffles.is_current[rows][:, sorted_rows]
        n_current_up_to = np.cumsum(is_current_sorted, axis=1, dtype=np.int64)
        blocks.append(_distances(n_current_up_to[:, n_up_to - 1], n_up_to, max_bins))
    forward_kl, backward_kl, ks_distances, n_bins = map(np.concatenate, zip(*blocks, strict=True))
    from scipy import stats

    with warnings.catch_warnings():
        # scipy warns where it changes from the exact p-value to the asymptotic one
        warnings.simplefilter("ignore")
        scipy_p = float(
            stats.ks_2samp(values[is_defined][~is_current], values[is_defined][is_current]).pvalue
        )
    return FeatureDrift(
        n_reference,
        n_current,
        _measure_against_null(forward_kl + backward_kl),
        _measure_against_null(ks_distances),
        scipy_p,
        _measure_against_null(forward_kl),
        _measure_against_null(backward_kl),
        int(n_bins[0]),
    )


def _distances(
    current_up_to: NDArray[np.int64], n_up_to: NDArray[np.int64], max_bins: int
) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
    """Return KL of current from reference and back, KS, and the bins of each membership.

    ``n_up_to`` counts the values that are at most each distinct one, ``current_up_to`` (n_rows,
    n_distinct) the current ones among them.
    """
    # a column of 0 in front: values below the smallest
    current, both = (np.insert(counts, 0, 0, axis=-1) for counts in (current_up_to, n_up_to))
    reference = both - current
    n = reference[:, -1:]
    distances = np.abs(current / np.maximum(1, current[:, -1:]) - reference / np.maximum(1, n))
    quantiles = np.maximum(-(-n * np.arange(1, max_bins) // max_bins), 1)
    edges = np.stack(
        [np.searchsorted(up_to, wanted) for up_to, wanted in zip(reference, quantiles, strict=True)]
    ).clip(max=len(both) - 1)
    n_at_edge = np.take_along_axis(reference, edges, 1) - np.take_along_axis(
        reference, edges - 1, 1
    )
    # a value that has a whole bin's share is a bin by itself
    lower_edges = np.where(n_at_edge * max_bins >= n, edges - 1, edges)
    ends = np.zeros_like(n), np.full_like(n, len(both) - 1)
    edges = np.sort(np.concatenate([ends[0], edges, lower_edges, ends[1]], axis=1), axis=1)
    is_bin = np.diff(edges, axis=1) > 0
    n_bins = is_bin.sum(axis=1, keepdims=True)
    reference_shares, current_shares = (
        (np.diff(np.take_along_axis(up_to, edges, 1), axis=1) + PSEUDOCOUNT)
        / (up_to[:, -1:] + PSEUDOCOUNT * n_bins)
        for up_to in (reference, current)
    )
    log_ratio = np.where(is_bin, np.log(current_shares / reference_shares), 0.0)
    return (
        (current_shares * log_ratio).sum(axis=1),
        -(reference_shares * log_ratio).sum(axis=1),
        distances.max(axis=1),
        n_bins[:, 0],
    )


def joint_drift(
    reference: Floats,
    current: Floats,
    reference_questions: Sequence[Hashable],
    current_questions: Sequence[Hashable],
    *,
    permutations: int,
    seed: int,
    shuffles: Shuffles | None = None,
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
    shuffles : Shuffles, optional
        Those of these questions, permutations and seed, where they have been made already.

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
    rows = np.vstack([reference, current])
    names = [*reference_questions, *current_questions]
    is_second = np.arange(len(rows)) >= len(reference)
    method = "energy distance of standardised features"
    if len(rows) > MAX_ROWS:
        distinct_names = sorted(set(names), key=str)
        order = np.random.default_rng(seed).permutation(len(distinct_names))
        n_kept = int(len(order) * MAX_ROWS / len(rows))
        kept_names = {distinct_names[i] for i in order[:n_kept]}
        is_kept = np.array([name in kept_names for name in names])
        rows, is_second, shuffles = rows[is_kept], is_second[is_kept], None
        names = list(compress(names, is_kept))
        method += f", {n_kept} of {len(order)} questions drawn"
    n, m = int((~is_second).sum()), int(is_second.sum())
    if min(n, m) < MIN_VALUES:
        return JointDrift(
            Measured(), n, m, method, f"{n} and {m} items: it takes {MIN_VALUES} in each"
        )
    features = standardise_columns(rows)
    if not features.shape[1]:
        return JointDrift(Measured(), n, m, method, "no feature varies")
    norms = (features**2).sum(axis=1)
    squares = norms[:, None] + norms[None, :] - 2 * features @ features.T
    distances = np.sqrt(np.maximum(0.0, squares)).astype(np.float32)
    np.fill_diagonal(distances, 0.0)
    if shuffles is None:
        samples = (list(compress(names, of_sample)) for of_sample in (~is_second, is_second))
        shuffles = Shuffles(*samples, permutations=permutations, seed=seed)
    is_current = shuffles.is_current.astype(np.float32)
    n_current = is_current.sum(axis=1, dtype=np.float64)
    n_reference = n + m - n_current
    sums = is_current @ distances
    within_current = np.einsum("ij,ij->i", sums, is_current, dtype=np.float64)
    across = sums.sum(axis=1, dtype=np.float64) - within_current
    within_reference = float(distances.sum(dtype=np.float64)) - within_current - 2 * across
    with np.errstate(divide="ignore", invalid="ignore"):
        within = within_reference / n_reference**2 + within_current / n_current**2
        coefficients = 1 - within / (2 * across / (n_current * n_reference))
    return JointDrift(
        _measure_against_null(np.clip(np.nan_to_num(coefficients), 0.0, 1.0)), n, m, method
    )


def standardise_columns(table: Floats) -> Floats:
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
        is_missing = ~np.isfinite(column)
        if is_missing.all():
            continue
        columns += [
            np.where(is_missing, np.median(column[~is_missing]), column),
            is_missing.astype(float),
        ]
    if not columns:
        return np.empty((len(table), 0))
    matrix = np.column_stack(columns)
    deviations = matrix.std(axis=0)
    is_varying = deviations > _TOLERANCE
    return np.asarray(
        (matrix[:, is_varying] - matrix[:, is_varying].mean(axis=0)) / deviations[is_varying]
    )


def _measure_against_null(values: Floats) -> Measured:
    """Return the first of ``values`` with the others as its null."""
    observed_value, null_values = float(values[0]), values[1:]
    n_exceedances = int((null_values >= observed_value - _TOLERANCE).sum())
    null_hi = float(np.quantile(null_values, 0.95, method="higher"))
    return Measured(
        max(0.0, observed_value), max(0.0, null_hi), (1 + n_exceedances) / (1 + len(null_values))
    )
