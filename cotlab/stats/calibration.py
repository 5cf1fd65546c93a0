"""How far probabilities can be believed: Brier, log loss, calibration error with its band, and how well a score ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cotlab.stats.intervals import Interval, checked_level, wilson

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
BINS, PER_BIN = 10, 10
"""Bins of the calibration error, and the predictions that each should hold: with fewer predictions
there are fewer bins."""
MIN_PROBABILITY = 1e-6
"""What a probability is kept away from 0 and 1 by in the log loss: one certain error costs 13.8
nats, not infinity."""
DRAWS = 1000
_CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class Bin:
    """One bin of a reliability diagram.

    Attributes
    ----------
    lo, hi : float
        Smallest and largest prediction in it.
    predicted : float in [0, 1]
        Mean prediction.
    observed : Interval
        Share of acceptable ones, with Wilson's interval; its ``n`` is the bin's count.
    """

    lo: float
    hi: float
    predicted: float
    observed: Interval


def brier(predicted: ArrayLike, target: ArrayLike) -> float:
    """Mean squared distance of probabilities from what happened (0 or 1): in [0, 1], lower is better.

    References
    ----------
    Brier (1950), Monthly Weather Review 78:1. By hand: (.9, 1), (.2, 0) -> (.01 + .04) / 2 = .025.
    """
    p, y = checked_predictions(predicted, target)
    return float(np.mean((p - y) ** 2))


def log_loss(predicted: ArrayLike, target: ArrayLike) -> float:
    """Mean negative log likelihood in nats, at least 0, lower is better; probabilities are kept ``LEAST`` from 0 and 1."""
    p, y = checked_predictions(predicted, target)
    return float(np.mean(log_losses(p, y)))


def auroc(scores: ArrayLike, target: ArrayLike) -> float | None:
    """Chance that an acceptable one scores above one that is not, ties counting half: in [0, 1]; None on one class.

    References
    ----------
    Hanley and McNeil (1982), Radiology 143:29; sklearn.metrics.roc_auc_score.
    """
    from sklearn.metrics import roc_auc_score

    s, y = checked_predictions(scores, target, unit=False)
    return None if y.min() == y.max() else float(roc_auc_score(y, s))


def bin_count(n: int) -> int:
    """Bins for ``n`` predictions: ``BINS``, fewer where a bin would hold less than ``PER_BIN``, at least two."""
    return max(2, min(BINS, n // PER_BIN))


def equal_mass(predicted: ArrayLike, bins: int) -> Integers:
    """The bin of each prediction (n,), counted from 0: equally many in each as far as ties allow.

    Equal predictions always share a bin, the one in which the middle of their ranks lies; a bin
    that gets nothing is left out, so there may be fewer than ``bins``.
    """
    if bins < 1:
        raise ValueError(f"at least one bin is needed, got {bins}")
    p = np.asarray(predicted, dtype=float)
    _, where, counts = np.unique(p, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - counts / 2
    bin_index = np.minimum((middle * bins / len(p)).astype(int), bins - 1)
    return np.asarray(np.unique(bin_index, return_inverse=True)[1][where], dtype=np.int64)


def ece(predicted: ArrayLike, target: ArrayLike, *, bins: int | None = None) -> float:
    """Expected calibration error over bins of equal mass: mean distance of observed rate and mean prediction, by count.

    Parameters
    ----------
    predicted, target : array (n,) of probabilities, and of 0 and 1 or bool
    bins : int, optional
        ``bin_count(n)`` unless told.

    Returns
    -------
    float
        In [0, 1]; 0 is perfect, but chance alone keeps it above 0: read it beside ``perfect_band``.

    References
    ----------
    Naeini, Cooper and Hauskrecht (2015), AAAI; equal-mass bins: Nixon et al. (2019), CVPR
    workshops.
    """
    p, y = checked_predictions(predicted, target)
    where = equal_mass(p, bins or bin_count(len(p)))
    return float(np.abs(np.bincount(where, p - y)).sum() / len(p))


def perfect_band(
    predicted: ArrayLike,
    *,
    seed: int,
    bins: int | None = None,
    level: float = 0.95,
    draws: int = DRAWS,
) -> tuple[float, float]:
    """Where the ECE of a perfectly calibrated forecaster of these predictions lies: the middle ``level`` of its values.

    Targets are drawn from the predictions themselves, each on its own, and the ECE is taken of each
    draw.

    References
    ----------
    Bröcker and Smith (2007), Weather and Forecasting 22:651 (consistency resampling).
    """
    checked_level(level)
    p = np.asarray(predicted, dtype=float)
    checked_predictions(p, np.zeros(len(p)))
    where = equal_mass(p, bins or bin_count(len(p)))
    member = np.eye(int(where.max()) + 1)[where]
    rng, step = np.random.default_rng(seed), max(1, _CELLS // len(p))
    values = np.concatenate(
        [
            np.abs(((rng.random((min(step, draws - at), len(p))) < p) - p) @ member).sum(axis=1)
            / len(p)
            for at in range(0, draws, step)
        ]
    )
    lo, hi = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(lo), float(hi)


def reliability_bins(
    predicted: ArrayLike, target: ArrayLike, *, bins: int | None = None, level: float = 0.95
) -> tuple[Bin, ...]:
    """The points of a reliability diagram, by ascending prediction; see ``equal_mass`` for the bins."""
    p, y = checked_predictions(predicted, target)
    where = equal_mass(p, bins or bin_count(len(p)))
    members = [where == k for k in range(int(where.max()) + 1)]
    shares = [wilson(int(y[member].sum()), int(member.sum()), level=level) for member in members]
    return tuple(
        Bin(float(p[member].min()), float(p[member].max()), float(p[member].mean()), share)
        for member, share in zip(members, shares, strict=True)
    )


def log_losses(p: Floats, y: Floats) -> Floats:
    clipped = np.clip(p, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    return np.asarray(-(y * np.log(clipped) + (1 - y) * np.log1p(-clipped)))


def checked_predictions(
    predicted: ArrayLike, target: ArrayLike, *, unit: bool = True
) -> tuple[Floats, Floats]:
    p, y = np.asarray(predicted, dtype=float), np.asarray(target, dtype=float)
    if p.ndim != 1 or p.shape != y.shape or not len(p):
        raise ValueError(
            f"one target for each prediction, and at least one: got {p.shape} and {y.shape}"
        )
    if not np.isfinite(p).all() or (unit and ((p < 0) | (p > 1)).any()):
        raise ValueError(
            "predictions are finite" + " and lie in [0, 1]" * unit + ": leave out what is undefined"
        )
    if not np.isin(y, (0.0, 1.0)).all():
        raise ValueError("targets are 0 or 1")
    return p, y
