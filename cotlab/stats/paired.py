"""Two measurements of the same items: Wilcoxon's test, paired bootstrap, Cohen's d of pairs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cotlab.stats.intervals import Interval, all_equal
from cotlab.stats.resample import bootstrap_mean, cluster_bootstrap

Floats = NDArray[np.float64]
MAX_EXACT_PAIRS, MAX_EXACT_TIED_PAIRS = 50, 13
"""Pairs up to which Wilcoxon's p is exact: by scipy's table without ties, over all 2**n signings
with them."""


@dataclass(frozen=True, slots=True)
class Wilcoxon:
    """Wilcoxon's signed-rank test of pairs.

    ``statistic``, ``p`` and ``rank_biserial`` are None, with the reason, where no pair differs.
    """

    n: int
    """Number of pairs."""
    zeros: int
    """Pairs that do not differ; they are left out."""
    statistic: float | None
    """The smaller rank sum."""
    p: float | None
    """Two-sided p-value."""
    rank_biserial: float | None
    """Share of the rank sum in favour of the second minus that of the first, [-1, 1]."""
    method: str
    """Exact or normal approximation, and how many pairs were left out."""
    reason: str | None = None
    """Why there is no statistic."""


def wilcoxon(first: Sequence[float], second: Sequence[float]) -> Wilcoxon:
    """Test whether the differences of pairs are symmetric about 0 (Wilcoxon's signed ranks).

    Parameters
    ----------
    first, second : sequence of float, finite, of one length
        Differences that only rounding tells apart (12 digits of the largest value) are tied.

    Returns
    -------
    Wilcoxon
        Exact up to 50 differing pairs without ties and up to 13 with them, else the normal
        approximation with tie correction and without continuity correction; ``method`` says which.

    Raises
    ------
    ValueError
        If the lengths differ or a value is not finite.

    References
    ----------
    Wilcoxon (1945), Biometrics 1:80; Kerby (2014), Comprehensive Psychology 3:1 (rank-biserial);
    scipy.stats.wilcoxon. R: wilcox.test(second, first, paired = TRUE, correct = FALSE).
    """
    from scipy import stats

    differences = np.round(_differences(first, second), 12)
    nonzero_differences = differences[differences != 0]
    n, n_zero = len(differences), len(differences) - len(nonzero_differences)
    if not len(nonzero_differences):
        return Wilcoxon(
            n,
            n_zero,
            None,
            None,
            None,
            "none",
            "no pair" if n == 0 else f"no pair differs: {n_zero} of {n} are 0",
        )
    has_ties = len(np.unique(np.abs(nonzero_differences))) < len(nonzero_differences)
    p_method: tuple[str, object] = ("normal approximation", "asymptotic")
    if not has_ties and len(nonzero_differences) <= MAX_EXACT_PAIRS:
        p_method = ("exact", "exact")
    elif has_ties and len(nonzero_differences) <= MAX_EXACT_TIED_PAIRS:
        p_method = ("exact, over all signings", stats.PermutationMethod(n_resamples=np.inf))
    result = stats.wilcoxon(nonzero_differences, method=p_method[1], correction=False)
    ranks = stats.rankdata(np.abs(nonzero_differences))
    rank_biserial = float((np.sign(nonzero_differences) * ranks).sum() / ranks.sum())
    method = f"Wilcoxon signed-rank, {p_method[0]}" + (
        f"; {n_zero} of {n} pairs do not differ and are left out" if n_zero else ""
    )
    return Wilcoxon(
        n, n_zero, float(result.statistic), min(1.0, float(result.pvalue)), rank_biserial, method
    )


def paired_bootstrap(
    first: Sequence[float],
    second: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    seed: int,
) -> Interval:
    """Return the mean difference of pairs, second minus first, with a bootstrap interval.

    Parameters
    ----------
    first, second : sequence of float, finite, of one length
    clusters : sequence of str or int, one a pair, or None
        Pairs of one cluster (the same prompt) are resampled together.
    seed : int

    Returns
    -------
    Interval
        In the unit of the values; as ``bootstrap_mean``, or ``cluster_bootstrap`` with clusters.

    Raises
    ------
    ValueError
        If the lengths differ or a value is not finite.

    References
    ----------
    Efron (1987), JASA 82:171 (BCa).
    """
    first_values, second_values = checked_pairs(first, second)
    differences = (second_values - first_values).tolist()
    interval = (
        bootstrap_mean(differences, seed=seed)
        if clusters is None
        else cluster_bootstrap(differences, clusters, seed=seed)
    )
    return (
        replace(interval, method=f"paired {interval.method}")
        if interval.lo is not None
        else interval
    )


def cohen_dz(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Cohen's d of pairs: the mean difference over the differences' standard deviation.

    Parameters
    ----------
    first, second : sequence of float, finite, of one length

    Returns
    -------
    float or None
        Unitless; positive where the second is larger. None below two pairs and where all
        differences are equal.

    Raises
    ------
    ValueError
        If the lengths differ or a value is not finite.

    References
    ----------
    Lakens (2013), Frontiers in Psychology 4:863 (d_z).
    """
    differences = _differences(first, second)
    if len(differences) < 2 or all_equal(np.round(differences, 12).tolist()):
        return None
    return float(differences.mean() / differences.std(ddof=1))


def checked_pairs(first: Sequence[float], second: Sequence[float]) -> tuple[Floats, Floats]:
    """Return both sides as arrays; ValueError where lengths differ or values are not finite."""
    first_values, second_values = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if first_values.shape != second_values.shape or not (
        np.isfinite(first_values).all() and np.isfinite(second_values).all()
    ):
        raise ValueError(
            "paired values must be finite and of the same length; leave out what is undefined and"
            " count it"
        )
    return first_values, second_values


def _differences(first: Sequence[float], second: Sequence[float]) -> Floats:
    """Return second minus first in units of the largest value, as 12 digits tell them apart."""
    first_values, second_values = checked_pairs(first, second)
    largest_value = max([1e-300, *np.abs(first_values), *np.abs(second_values)])
    return np.asarray(second_values / largest_value - first_values / largest_value)
