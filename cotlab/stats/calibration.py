"""Quality of probabilities: Brier score, log loss, calibration error, AUROC, diagram."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cotlab.stats.intervals import TAILS, Interval, wilson
from cotlab.stats.resample import row_blocks

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MAX_BINS, MIN_PREDICTIONS_PER_BIN = 10, 10
"""Bins of the calibration error, and the predictions that each should hold."""
MIN_PROBABILITY = 1e-6
"""Distance from 0 and 1 to which the log loss clips; a certain error costs 13.8 nats."""
N_DRAWS = 1000
"""Forecasts that ``perfect_band`` draws."""


@dataclass(frozen=True, slots=True)
class Bin:
    """One bin of a reliability diagram."""

    lo: float
    """Smallest prediction in the bin."""
    hi: float
    """Largest prediction in the bin."""
    predicted: float
    """Mean prediction, in [0, 1]."""
    observed: Interval
    """Share of positive outcomes with Wilson's interval; its ``n`` is the bin's count."""


def brier(predicted: ArrayLike, target: ArrayLike) -> float:
    """Return the mean squared difference of probabilities and outcomes.

    Parameters
    ----------
    predicted : array (n,), [0, 1]
        Probabilities; n at least 1.
    target : array (n,) of bool, 0 or 1
        Outcomes.

    Returns
    -------
    float
        In [0, 1], lower is better.

    Raises
    ------
    ValueError
        If the lengths differ or are 0, a probability lies outside [0, 1], or a target is neither 0
        nor 1.

    References
    ----------
    Brier (1950), Monthly Weather Review 78:1. By hand: (.9, 1), (.2, 0) -> (.01 + .04) / 2 = .025.
    """
    p, y = checked_predictions(predicted, target)
    return float(np.mean((p - y) ** 2))


def auroc(scores: ArrayLike, target: ArrayLike) -> float | None:
    """Return the probability that a positive scores above a negative, ties counting half.

    Parameters
    ----------
    scores : array (n,), finite
    target : array (n,) of bool, 0 or 1

    Returns
    -------
    float or None
        In [0, 1], higher is better; None where there is one class only.

    Raises
    ------
    ValueError
        If the lengths differ or are 0, a score is not finite, or a target is neither 0 nor 1.

    References
    ----------
    Hanley and McNeil (1982), Radiology 143:29; sklearn.metrics.roc_auc_score.
    """
    from sklearn.metrics import roc_auc_score

    s, y = checked_predictions(scores, target, is_probability=False)
    return None if y.min() == y.max() else float(roc_auc_score(y, s))


def weighted_auroc(scores: Floats, is_positive: NDArray[np.bool_]) -> Callable[[Floats], Floats]:
    """Return ``auroc`` as a function of the rows' weights; the scores are sorted only once.

    Pairs are counted whole and in halves, without rounding.
    """
    negatives, positives = np.flatnonzero(~is_positive), np.flatnonzero(is_positive)
    negatives = negatives[np.argsort(scores[negatives], kind="stable")]
    n_below, n_not_above = (
        np.searchsorted(scores[negatives], scores[positives], side) for side in ("left", "right")
    )

    def measure(weights: Floats) -> Floats:
        below = np.zeros((len(weights), len(negatives) + 1))
        np.cumsum(weights.take(negatives, axis=1), axis=1, out=below[:, 1:])
        positive = weights.take(positives, axis=1)
        ranked = below.take(n_below, axis=1) + below.take(n_not_above, axis=1)
        with np.errstate(invalid="ignore"):
            return np.asarray(
                (ranked * positive).sum(axis=1) / 2 / (positive.sum(axis=1) * below[:, -1])
            )

    return measure


def bin_count(n: int) -> int:
    """Return ``MAX_BINS``, or fewer so that each has ``MIN_PREDICTIONS_PER_BIN``."""
    return max(2, min(MAX_BINS, n // MIN_PREDICTIONS_PER_BIN))


def equal_mass_bins(predicted: ArrayLike, n_bins: int) -> Integers:
    """Return the bin of each prediction, equally many in each as far as ties allow.

    Equal predictions always share a bin, the one in which the middle of their ranks lies. A bin
    that gets nothing is left out, so there may be fewer than ``n_bins``.

    Parameters
    ----------
    predicted : array (n,)
    n_bins : int, at least 1

    Returns
    -------
    ndarray (n,) of int
        Counted from 0, by ascending prediction.

    Raises
    ------
    ValueError
        If ``n_bins`` is below 1.
    """
    if n_bins < 1:
        raise ValueError(f"at least one bin is needed, got {n_bins}")
    p = np.asarray(predicted, dtype=float)
    _, value_index, counts = np.unique(p, return_inverse=True, return_counts=True)
    middle_rank = np.cumsum(counts) - counts / 2
    bin_index = np.minimum((middle_rank * n_bins / len(p)).astype(int), n_bins - 1)
    return np.asarray(np.unique(bin_index, return_inverse=True)[1][value_index], dtype=np.int64)


def ece(predicted: ArrayLike, target: ArrayLike) -> float:
    """Return the expected calibration error over bins of equal mass.

    It is the mean distance of the observed rate and the mean prediction of a bin, weighted by
    count.

    Parameters
    ----------
    predicted : array (n,), [0, 1]
    target : array (n,) of bool, 0 or 1

    Returns
    -------
    float
        In [0, 1], lower is better. Chance alone keeps it above 0: read it beside ``perfect_band``.

    Raises
    ------
    ValueError
        As ``brier``.

    References
    ----------
    Naeini, Cooper and Hauskrecht (2015), AAAI; equal-mass bins: Nixon et al. (2019), CVPR
    workshops.
    """
    p, y = checked_predictions(predicted, target)
    bin_index = equal_mass_bins(p, bin_count(len(p)))
    return float(np.abs(np.bincount(bin_index, p - y)).sum() / len(p))


def perfect_band(predicted: ArrayLike, *, seed: int) -> tuple[float, float]:
    """Return the range of the ECE of a perfectly calibrated forecaster.

    Targets are drawn from the predictions themselves, independently, and the ECE is computed for
    each draw.

    Parameters
    ----------
    predicted : array (n,), [0, 1]
    seed : int

    Returns
    -------
    tuple of float
        Lower and upper end, each in [0, 1].

    Raises
    ------
    ValueError
        If there is no prediction, or one lies outside [0, 1].

    References
    ----------
    Bröcker and Smith (2007), Weather and Forecasting 22:651 (consistency resampling).
    """
    p = np.asarray(predicted, dtype=float)
    checked_predictions(p, np.zeros(len(p)))
    bin_index = equal_mass_bins(p, bin_count(len(p)))
    is_in_bin = np.eye(int(bin_index.max()) + 1)[bin_index]
    rng = np.random.default_rng(seed)
    simulated_eces = np.concatenate(
        [
            np.abs(((rng.random((block.stop - block.start, len(p))) < p) - p) @ is_in_bin).sum(
                axis=1
            )
            / len(p)
            for block in row_blocks(N_DRAWS, len(p))
        ]
    )
    lo, hi = np.quantile(simulated_eces, TAILS)
    return float(lo), float(hi)


def reliability_bins(predicted: ArrayLike, target: ArrayLike) -> tuple[Bin, ...]:
    """Return the points of a reliability diagram.

    Parameters
    ----------
    predicted : array (n,), [0, 1]
    target : array (n,) of bool, 0 or 1

    Returns
    -------
    tuple of Bin
        By ascending prediction.

    Raises
    ------
    ValueError
        As ``brier``.

    References
    ----------
    Bröcker and Smith (2007), Weather and Forecasting 22:651.
    """
    p, y = checked_predictions(predicted, target)
    bin_index = equal_mass_bins(p, bin_count(len(p)))
    bin_masks = [bin_index == k for k in range(int(bin_index.max()) + 1)]
    observed_shares = [
        wilson(int(y[bin_mask].sum()), int(bin_mask.sum())) for bin_mask in bin_masks
    ]
    return tuple(
        Bin(
            float(p[bin_mask].min()),
            float(p[bin_mask].max()),
            float(p[bin_mask].mean()),
            observed_share,
        )
        for bin_mask, observed_share in zip(bin_masks, observed_shares, strict=True)
    )


def log_losses(p: Floats, y: Floats) -> Floats:
    """Return the negative log-likelihood of each outcome, in nats."""
    clipped_p = np.clip(p, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    return np.asarray(-(y * np.log(clipped_p) + (1 - y) * np.log1p(-clipped_p)))


def checked_predictions(
    predicted: ArrayLike, target: ArrayLike, *, is_probability: bool = True
) -> tuple[Floats, Floats]:
    """Return predictions and targets as arrays; ValueError where invalid."""
    p, y = np.asarray(predicted, dtype=float), np.asarray(target, dtype=float)
    if p.ndim != 1 or p.shape != y.shape or not len(p):
        raise ValueError(
            f"one target for each prediction, and at least one: got {p.shape} and {y.shape}"
        )
    if not np.isfinite(p).all() or (is_probability and ((p < 0) | (p > 1)).any()):
        raise ValueError(
            "predictions are finite"
            + " and lie in [0, 1]" * is_probability
            + ": leave out what is undefined"
        )
    if not np.isin(y, (0.0, 1.0)).all():
        raise ValueError("targets are 0 or 1")
    return p, y
