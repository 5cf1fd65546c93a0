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
_DRAWS_PER_COUNT = 16
"""One multinomial count costs about as much time as this many drawn indices."""


class Bounds(NamedTuple):
    """Bounds of a bootstrap interval."""

    lo: float
    """Lower bound, in the unit of the ratio."""
    hi: float
    """Upper bound, in the unit of the ratio."""
    method: str
    """``BCa``, or ``percentile`` where BCa fails or leaves out its own point."""


def ratio_bounds(
    top: Floats, bottom: Floats, *, seed: int, level: float, n_resamples: int
) -> Bounds:
    """Return the BCa bounds of sum(top) / sum(bottom), resampling whole units.

    Parameters
    ----------
    top, bottom : ndarray (n,), finite; ``bottom`` above 0
        One entry per independent unit, two units or more.
    seed : int
    level : float in (0, 1)
    n_resamples : int, at least 1

    Returns
    -------
    Bounds
        The percentile bounds of the same resamples where BCa has none or excludes the point.

    Notes
    -----
    Where few distinct units occur, the draws are multinomial over those, so the bounds differ from
    scipy's for the same seed within the error of the resampling. Else the draws are scipy's own,
    and the bounds agree to rounding.

    References
    ----------
    Efron (1987), JASA 82:171; Efron and Tibshirani (1993), An Introduction to the Bootstrap, 14.3.
    """
    resampled = np.concatenate(
        list(_ratio_resamples(top, bottom, np.random.default_rng(seed), n_resamples))
    )
    point = float(top.sum() / bottom.sum())
    for method, levels in (
        ("BCa", _bca_levels(top, bottom, resampled, level)),
        ("percentile", ((1 - level) / 2, (1 + level) / 2)),
    ):
        if np.isfinite(levels).all():
            lo, hi = (float(bound) for bound in np.quantile(resampled, levels))
            if lo <= point <= hi or method == "percentile":
                break
    return Bounds(lo, hi, method)


def jackknife_ratio(top: Floats, bottom: Floats) -> Floats:
    """Return sum(top) / sum(bottom) without each unit in turn, in closed form.

    Parameters
    ----------
    top, bottom : ndarray (n,)
        For a mean ``bottom`` is 1 throughout; for a weighted mean it holds the weights and ``top``
        the weighted values; for clusters ``top`` holds their sums and ``bottom`` their sizes.

    Returns
    -------
    ndarray (n,)
        (sum(top) − top_i) / (sum(bottom) − bottom_i); not finite where the divisor is 0.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, 11.1. By hand: the means of
    1, 2, 6 without each in turn are 4, 3.5, 1.5.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((top.sum() - top) / (bottom.sum() - bottom))


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
    sums = np.concatenate(
        list(_flipped_sums(differences, np.random.default_rng(seed), n_resamples))
    )
    observed = differences.sum()
    rounding = 100 * np.finfo(float).eps * abs(observed)  # equal but for the order of the sum
    tails = (sums <= observed + rounding).sum(), (sums >= observed - rounding).sum()
    return min(1.0, 2 * (1 + int(min(tails))) / (1 + n_resamples))


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Yield consecutive slices of ``rows`` whose blocks of ``columns`` fit into a few megabytes."""
    step = max(1, _BLOCK_CELLS // max(1, columns))
    for start in range(0, rows, step):
        yield slice(start, min(rows, start + step))


def _ratio_resamples(
    top: Floats, bottom: Floats, rng: np.random.Generator, n_resamples: int
) -> Iterator[Floats]:
    """Yield the ratios of resamples of whole units, a block at a time."""
    n = len(top)
    distinct, counts = np.unique(top + 1j * bottom, return_counts=True)
    if _DRAWS_PER_COUNT * len(distinct) <= n:
        for rows in row_blocks(n_resamples, len(distinct)):
            drawn = rng.multinomial(n, counts / n, size=rows.stop - rows.start).astype(float)
            yield (drawn @ distinct.real) / (drawn @ distinct.imag)
        return
    equal_weights = bool((bottom == bottom[0]).all())
    for rows in row_blocks(n_resamples, n):
        units = rng.integers(0, n, size=(rows.stop - rows.start, n))
        weight = bottom[0] * n if equal_weights else bottom[units].sum(axis=1)
        yield top[units].sum(axis=1) / weight


def _bca_levels(
    top: Floats, bottom: Floats, resampled: Floats, level: float
) -> tuple[float, float]:
    """Return the two quantiles that BCa reads from the resamples; NaN where it has none."""
    from scipy.special import ndtr, ndtri

    point = top.sum() / bottom.sum()
    below = ((resampled < point).mean() + (resampled <= point).mean()) / 2
    left_out = jackknife_ratio(top, bottom)
    influence = left_out.mean() - left_out
    with np.errstate(divide="ignore", invalid="ignore"):
        # scaled by the largest influence, so that no third power overflows
        scaled = influence / np.abs(influence).max()
        acceleration = (scaled**3).sum() / (6 * (scaled**2).sum() ** 1.5)
        bias = ndtri(below)
        shifted = bias + ndtri([(1 - level) / 2, (1 + level) / 2])
        lo, hi = ndtr(bias + shifted / (1 - acceleration * shifted))
    return float(lo), float(hi)


def _flipped_sums(
    differences: Floats, rng: np.random.Generator, n_resamples: int
) -> Iterator[Floats]:
    """Yield the sums of the differences after random flips of their signs, a block at a time."""
    n = len(differences)
    sizes, counts = np.unique(np.abs(differences), return_counts=True)
    if _DRAWS_PER_COUNT * len(sizes) <= n:
        for rows in row_blocks(n_resamples, len(sizes)):
            positive = rng.binomial(counts, 0.5, size=(rows.stop - rows.start, len(sizes)))
            yield (2 * positive - counts) @ sizes
        return
    width = -(-n // 8)
    for rows in row_blocks(n_resamples, n):
        n_rows = rows.stop - rows.start
        packed = np.frombuffer(rng.bytes(n_rows * width), dtype=np.uint8).reshape(n_rows, width)
        signs = np.unpackbits(packed, axis=1, count=n) * 2.0 - 1.0
        yield signs @ differences
