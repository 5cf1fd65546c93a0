"""Resampling in time linear in n and in bounded memory, for samples too large for scipy's way.

Scipy builds an n x n jackknife for each BCa interval, and visits every pair of values in Python for
each block of sign flips. The jackknife of a ratio of sums has a closed form; and where few distinct
values occur, a resample is one multinomial (or binomial) draw over those.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_BLOCK_CELLS = 1_000_000
"""Array cells of one block: 8 MB, however many values there are."""
_TIE_BITS = 40
"""Differences below 2^-40 of the range of the values are rounding: 13 bits more than sums lose."""
_DRAWS_PER_COUNT = 16
"""One multinomial count costs about as much time as this many drawn indices."""


class BootstrapBounds(NamedTuple):
    """Bounds of a bootstrap interval."""

    lo: float
    """Lower bound, in the unit of the ratio."""
    hi: float
    """Upper bound, in the unit of the ratio."""
    method: str
    """``BCa``, or ``percentile`` where BCa fails or leaves out its own point."""


def ratio_bounds(
    numerators: Floats,
    denominators: Floats,
    *,
    seed: int,
    level: float,
    n_resamples: int,
    as_scipy: bool = False,
) -> BootstrapBounds:
    """Return the BCa bounds of sum(numerators) / sum(denominators), resampling whole units.

    Parameters
    ----------
    numerators, denominators : ndarray (n,), finite; ``denominators`` above 0
        One entry per independent unit, two units or more.
    seed : int
    level : float in (0, 1)
    n_resamples : int, at least 1
    as_scipy : bool
        Draw as scipy does for the seed, whatever the values.

    Returns
    -------
    Bounds
        Percentile bounds where BCa has none or excludes the point.

    Notes
    -----
    Where few distinct units occur, the draws are multinomial over those, so the bounds differ from
    scipy's for the same seed within the error of the resampling. Else the draws are scipy's own,
    and the bounds agree to rounding.

    References
    ----------
    Efron (1987), JASA 82:171; Efron and Tibshirani (1993), An Introduction to the Bootstrap, 14.3.
    """
    rng = np.random.default_rng(seed)
    point = float(numerators.sum() / denominators.sum())
    for method in ("BCa", "percentile"):
        if method == "BCa" or as_scipy:  # which draws anew for each method
            blocks = _ratio_resamples(numerators, denominators, rng, n_resamples, as_scipy)
            ratios = np.concatenate(list(blocks))
            resampled_ratios = merge_ties(ratios, point, numerators / denominators)
        quantile_levels = ((1 - level) / 2, (1 + level) / 2)
        if method == "BCa":
            quantile_levels = _bca_levels(numerators, denominators, resampled_ratios, level)
        if np.isfinite(quantile_levels).all():
            lo, hi = (float(bound) for bound in np.quantile(resampled_ratios, quantile_levels))
            if lo <= point <= hi or method == "percentile":
                break
    return BootstrapBounds(lo, hi, method)


def merge_ties(ratios: Floats, point: float, unit_ratios: Floats) -> Floats:
    """Return ratios of resamples, the point itself where they differ from it by rounding only.

    BCa counts the resamples below and at the point, and 1/3 + 1/3 + 1/3 need not be the float
    1 + 0 + 0: without this the counts, and so the bounds, of a share and of its complement differ.

    Parameters
    ----------
    ratios : ndarray, any shape
    point : float
        The ratio of the sample.
    unit_ratios : ndarray (n,), not all equal
        Those of the single units, whose range is the scale.

    Returns
    -------
    ndarray
        ``ratios``, with ``point`` in place of those within 2^-40 of the range.
    """
    tolerance = float(np.ptp(unit_ratios)) * 2.0**-_TIE_BITS
    return np.where(np.abs(ratios - point) <= tolerance, point, ratios)


def jackknife_ratio(numerators: Floats, denominators: Floats) -> Floats:
    """Return sum(numerators) / sum(denominators) without each unit in turn, in closed form.

    Parameters
    ----------
    numerators, denominators : ndarray (n,)
        For a mean all ``denominators`` are 1; for a weighted mean they are the weights, and
        ``numerators`` the weighted values; for clusters they are the sizes, and ``numerators`` the
        sums.

    Returns
    -------
    ndarray (n,)
        (sum(numerators) − numerator_i) / (sum(denominators) − denominator_i); not finite
        where the divisor is 0.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, 11.1. By hand: the means of
    1, 2, 6 without each in turn are 4, 3.5, 1.5.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((numerators.sum() - numerators) / (denominators.sum() - denominators))


def sign_flip_p(differences: Floats, *, seed: int, n_resamples: int) -> float:
    """Return the two-sided p-value that a mean difference is 0, by random flips of signs.

    Parameters
    ----------
    differences : ndarray (n,), finite
        One difference per independent pair.
    seed : int
    n_resamples : int, at least 1

    Returns
    -------
    float in (0, 1]
        Twice the smaller of both tails, each (1 + flips as extreme) / (1 + n_resamples).

    References
    ----------
    Fisher (1935), The Design of Experiments, 21; Phipson and Smyth (2010), Stat. Appl. Genet. Mol.
    Biol. 9:39 (the added 1).
    """
    flipped_sums = np.concatenate(
        list(_flipped_sums(differences, np.random.default_rng(seed), n_resamples))
    )
    observed_sum = differences.sum()
    rounding_tolerance = (
        100 * np.finfo(float).eps * abs(observed_sum)
    )  # equal but for the order of the sum
    tail_counts = (
        (flipped_sums <= observed_sum + rounding_tolerance).sum(),
        (flipped_sums >= observed_sum - rounding_tolerance).sum(),
    )
    return min(1.0, 2 * (1 + int(min(tail_counts))) / (1 + n_resamples))


def row_blocks(n_rows: int, n_columns: int, n_cells: int | None = None) -> Iterator[slice]:
    """Yield slices of ``n_rows`` whose blocks of ``n_columns`` have at most ``n_cells`` cells.

    By default they fit into a few megabytes.
    """
    block_size = max(1, (n_cells or _BLOCK_CELLS) // max(1, n_columns))
    for start in range(0, n_rows, block_size):
        yield slice(start, min(n_rows, start + block_size))


def _ratio_resamples(
    numerators: Floats,
    denominators: Floats,
    rng: np.random.Generator,
    n_resamples: int,
    as_scipy: bool,
) -> Iterator[Floats]:
    """Yield the ratios of resamples of whole units, a block at a time."""
    n = len(numerators)
    distinct_units, first_index, counts = np.unique(
        numerators + 1j * denominators, return_index=True, return_counts=True
    )
    order = np.argsort(first_index)  # by value, a share and its complement would be drawn apart
    distinct_units, counts = distinct_units[order], counts[order]
    if not as_scipy and _DRAWS_PER_COUNT * len(distinct_units) <= n:
        for rows in row_blocks(n_resamples, len(distinct_units)):
            unit_counts = rng.multinomial(n, counts / n, size=rows.stop - rows.start).astype(float)
            yield (unit_counts @ distinct_units.real) / (unit_counts @ distinct_units.imag)
        return
    has_equal_weights = bool((denominators == denominators[0]).all())
    for rows in row_blocks(n_resamples, n):
        unit_index = rng.integers(0, n, size=(rows.stop - rows.start, n))
        denominator_sum = (
            denominators[0] * n if has_equal_weights else denominators[unit_index].sum(axis=1)
        )
        yield numerators[unit_index].sum(axis=1) / denominator_sum


def _bca_levels(
    numerators: Floats, denominators: Floats, resampled_ratios: Floats, level: float
) -> tuple[float, float]:
    """Return the two quantiles that BCa reads from the resamples; NaN where it has none."""
    from scipy.special import ndtr, ndtri

    point = numerators.sum() / denominators.sum()
    share_below = ((resampled_ratios < point).mean() + (resampled_ratios <= point).mean()) / 2
    jackknife_ratios = jackknife_ratio(numerators, denominators)
    influence = jackknife_ratios.mean() - jackknife_ratios
    with np.errstate(divide="ignore", invalid="ignore"):
        # scaled by the largest influence, so that no third power overflows
        scaled_influence = influence / np.abs(influence).max()
        acceleration = (scaled_influence**3).sum() / (6 * (scaled_influence**2).sum() ** 1.5)
        bias = ndtri(share_below)
        shifted_quantiles = bias + ndtri([(1 - level) / 2, (1 + level) / 2])
        lo, hi = ndtr(bias + shifted_quantiles / (1 - acceleration * shifted_quantiles))
    return float(lo), float(hi)


def _flipped_sums(
    differences: Floats, rng: np.random.Generator, n_resamples: int
) -> Iterator[Floats]:
    """Yield the sums of the differences after random flips of their signs, a block at a time."""
    n = len(differences)
    distinct_sizes, counts = np.unique(np.abs(differences), return_counts=True)
    if _DRAWS_PER_COUNT * len(distinct_sizes) <= n:
        for rows in row_blocks(n_resamples, len(distinct_sizes)):
            n_positive = rng.binomial(
                counts, 0.5, size=(rows.stop - rows.start, len(distinct_sizes))
            )
            yield (2 * n_positive - counts) @ distinct_sizes
        return
    n_bytes = -(-n // 8)
    for rows in row_blocks(n_resamples, n):
        n_rows = rows.stop - rows.start
        packed_signs = np.frombuffer(rng.bytes(n_rows * n_bytes), dtype=np.uint8).reshape(
            n_rows, n_bytes
        )
        signs = np.unpackbits(packed_signs, axis=1, count=n) * 2.0 - 1.0
        yield signs @ differences
