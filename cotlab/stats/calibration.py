"""How far probabilities can be believed: Brier, log loss, calibration error with its band, and how well a score ranks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cotlab.stats.intervals import FEWEST, Interval, checked_level, no_interval, too_few, wilson
from cotlab.stats.resample import RESAMPLES

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
BINS, PER_BIN = 10, 10
"""Bins of the calibration error, and the predictions that each should hold: with fewer predictions
there are fewer bins."""
MIN_PROBABILITY = 1e-6
"""What a probability is kept away from 0 and 1 by in the log loss: one certain error costs 13.8
nats, not infinity."""
DRAWS = 1000
_CELLS, _GRID_POINTS = 4_000_000, 61
Measure = Callable[[Floats], Floats]
"""How often each group is drawn (n_draws, n_groups) -> one number a draw (NaN where the draw has
none)."""


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
    p, y = _checked(predicted, target)
    return float(np.mean((p - y) ** 2))


def log_loss(predicted: ArrayLike, target: ArrayLike) -> float:
    """Mean negative log likelihood in nats, at least 0, lower is better; probabilities are kept ``LEAST`` from 0 and 1."""
    p, y = _checked(predicted, target)
    return float(np.mean(_loss(p, y)))


def auroc(scores: ArrayLike, target: ArrayLike) -> float | None:
    """Chance that an acceptable one scores above one that is not, ties counting half: in [0, 1]; None on one class.

    References
    ----------
    Hanley and McNeil (1982), Radiology 143:29; sklearn.metrics.roc_auc_score.
    """
    from sklearn.metrics import roc_auc_score

    s, y = _checked(scores, target, unit=False)
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
    p, y = _checked(predicted, target)
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
    _checked(p, np.zeros(len(p)))
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
    p, y = _checked(predicted, target)
    where = equal_mass(p, bins or bin_count(len(p)))
    members = [where == k for k in range(int(where.max()) + 1)]
    shares = [wilson(int(y[member].sum()), int(member.sum()), level=level) for member in members]
    return tuple(
        Bin(float(p[member].min()), float(p[member].max()), float(p[member].mean()), share)
        for member, share in zip(members, shares, strict=True)
    )


def measure_interval(
    measure: str,
    predicted: ArrayLike,
    target: ArrayLike,
    groups: Sequence[Hashable],
    *,
    seed: int,
    level: float = 0.95,
) -> Interval:
    """A measure with its bootstrap interval over groups (questions).

    Parameters
    ----------
    measure : str
        ``brier``, ``log_loss``, ``ece`` or ``auroc``.
    predicted, target : array (n,)
        For ``auroc`` any score serves as prediction.
    groups : sequence of str or int, one a prediction
        A resample takes or leaves all predictions of a group together; ``n`` of the result counts
        them.
    seed : int
    level : float in (0, 1)

    Returns
    -------
    Interval
        Percentile bootstrap. Chance adds to an ECE and a resample adds once more, so its bounds are
        those of ``_ece_bounds``, widened to the point: 0 lies in them where a perfect forecaster
        could show as much. No bounds below ``FEWEST`` groups; AUROC is undefined on one class, and
        resamples of one class are left out and counted in ``note``.
    """
    p, y = _checked(predicted, target, unit=measure != "auroc")
    point = _POINTS[measure](p, y)
    if point is None:
        return no_interval(
            None, 0, "there is one class only: nothing can be ranked against it", level=level
        )
    where = _grouped(groups, len(p))
    n = int(where.max()) + 1
    if measure == "ece" and n >= FEWEST:
        lo, hi = _ece_bounds(p, y, where, point, seed, checked_level(level))
        method = f"bootstrap over questions (test inversion, {RESAMPLES} resamples)"
        return Interval(point, min(lo, point), max(hi, point), n, method, level)
    values, n_undefined = _draws(_value(measure, p, y, where), where, seed)
    if reason := (
        too_few(n, "questions", FEWEST)
        or ("no resample has both classes" if not len(values) else None)
    ):
        return no_interval(point, n, reason, level=level)
    lo, hi = (float(q) for q in np.quantile(values, [(1 - level) / 2, (1 + level) / 2]))
    note = (
        f"{n_undefined} of {RESAMPLES} resamples hold one class and are left out"
        if n_undefined
        else None
    )
    method = f"bootstrap over questions (percentile, {RESAMPLES} resamples)"
    return Interval(point, min(lo, point), max(hi, point), n, method, level, note=note)


def measure_difference(
    measure: str,
    first: ArrayLike,
    second: ArrayLike,
    target: ArrayLike,
    groups: Sequence[Hashable],
    *,
    seed: int,
    level: float = 0.95,
) -> Interval:
    """Measure of ``second`` minus that of ``first`` on the same targets, with a paired bootstrap interval over groups.

    Parameters as ``interval``. Undefined where the measure is; no bounds below ``FEWEST`` groups.
    """
    unit = measure != "auroc"
    (a, y), (b, _) = _checked(first, target, unit=unit), _checked(second, target, unit=unit)
    first_value, second_value = _POINTS[measure](a, y), _POINTS[measure](b, y)
    if first_value is None or second_value is None:
        return no_interval(
            None, 0, "there is one class only: nothing can be ranked against it", level=level
        )
    where = _grouped(groups, len(y))
    point, n = second_value - first_value, int(where.max()) + 1
    of_a, of_b = _value(measure, a, y, where), _value(measure, b, y, where)
    values, n_undefined = _draws(lambda counts: of_b(counts) - of_a(counts), where, seed)
    if reason := (
        too_few(n, "questions", FEWEST)
        or ("no resample has both classes" if not len(values) else None)
    ):
        return no_interval(point, n, reason, level=level)
    lo, hi = (float(q) for q in np.quantile(values, [(1 - level) / 2, (1 + level) / 2]))
    note = (
        f"{n_undefined} of {RESAMPLES} resamples hold one class and are left out"
        if n_undefined
        else None
    )
    method = f"paired bootstrap over questions (percentile, {RESAMPLES} resamples)"
    return Interval(point, min(lo, point), max(hi, point), n, method, level, note=note)


def weighted_auroc(weights: Floats, scores: Floats, target: Floats) -> Floats:
    """AUROC of each row of weights (n_draws, n), ties counting half; NaN where a row leaves one class only."""
    _, where = np.unique(scores, return_inverse=True)
    order = np.argsort(where, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(where[order]) > 0])
    good = np.add.reduceat((weights * target)[:, order], starts, axis=1)
    bad = np.add.reduceat((weights * (1 - target))[:, order], starts, axis=1)
    below = np.cumsum(bad, axis=1) - bad
    pairs = good.sum(axis=1) * bad.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((good * (below + bad / 2)).sum(axis=1) / pairs)


def _ece_bounds(
    p: Floats, y: Floats, where: Integers, point: float, seed: int, level: float
) -> tuple[float, float]:
    """The smallest and the largest true ECE under which the one that was found is no surprise.

    The gaps of the bins, scaled to each ECE that is tried, plus what resampling whole groups adds
    to them: it is kept where what was found lies in the middle ``level`` of such sums. Mirrored or
    plain percentiles hold the truth far less often than they say, since chance only ever adds to an
    absolute gap. Less than a perfect forecaster's median is taken for that above.
    """
    tops, sizes = _bin_gaps(p, y, where)
    mean_gaps = tops.sum(axis=0) / len(p)
    noise = (
        np.concatenate(
            [(counts @ tops) / (counts @ sizes)[:, None] for counts in _counts(where, seed)]
        )
        - mean_gaps
    )
    chance = np.quantile(np.abs(noise).sum(axis=1), [0.5, (1 + level) / 2])
    direction = mean_gaps / point if point > 0 else np.full(len(mean_gaps), 1 / len(mean_gaps))
    candidates = np.linspace(0.0, min(1.0, point + 2 * float(chance[1])), _GRID_POINTS)
    tails = [(1 - level) / 2, (1 + level) / 2]
    ends = np.array(
        [
            np.quantile(np.abs(candidate * direction + noise).sum(axis=1), tails)
            for candidate in candidates
        ]
    )
    small, large = (
        candidates[ends[:, 1] >= point - 1e-12],
        candidates[ends[:, 0] <= max(point, float(chance[0])) + 1e-12],
    )
    return float(small.min(initial=point)), float(large.max(initial=point))


def _bin_gaps(p: Floats, y: Floats, where: Integers) -> tuple[Floats, Floats]:
    """For each group the sum of p - y in each bin (n_groups, n_bins), and its size; the bins are those of all predictions."""
    sizes, bins = np.bincount(where).astype(float), equal_mass(p, bin_count(len(p)))
    tops = np.zeros((len(sizes), int(bins.max()) + 1))
    np.add.at(tops, (where, bins), p - y)
    return tops, sizes


def _value(measure: str, p: Floats, y: Floats, where: Integers) -> Measure:
    """A measure as a function of how often each group is drawn; ECE's bins stay those of the predictions as they are."""
    if measure == "auroc":
        return lambda counts: weighted_auroc(counts[:, where], p, y)
    tops, sizes = _bin_gaps(p, y, where)
    if measure == "ece":
        return lambda counts: np.asarray(np.abs(counts @ tops).sum(axis=1) / (counts @ sizes))
    top = np.bincount(where, (p - y) ** 2 if measure == "brier" else _loss(p, y))
    return lambda counts: np.asarray((counts @ top) / (counts @ sizes))


def _grouped(groups: Sequence[Hashable], n: int) -> Integers:
    """The group of each prediction, counted from 0 in the order of their text: the order of the rows does not matter."""
    if len(groups) != n:
        raise ValueError(f"one group for each prediction, got {len(groups)} for {n}")
    names = {name: k for k, name in enumerate(sorted(set(groups), key=str))}
    return np.array([names[group] for group in groups], dtype=np.int64)


def _draws(value: Measure, where: Integers, seed: int) -> tuple[Floats, int]:
    """The values of ``RESAMPLES`` resamples of whole groups, and how many have none."""
    every = np.concatenate([value(counts) for counts in _counts(where, seed)])
    known = every[np.isfinite(every)]
    return known, len(every) - len(known)


def _counts(where: Integers, seed: int) -> Iterator[Floats]:
    """How often each group is drawn, ``RESAMPLES`` rows in parts that fit into memory."""
    n_groups = int(where.max()) + 1
    rng, step = np.random.default_rng(seed), max(1, _CELLS // len(where))
    for at in range(0, RESAMPLES, step):
        rows = min(step, RESAMPLES - at)
        samples = (
            rng.integers(0, n_groups, size=(rows, n_groups)) + n_groups * np.arange(rows)[:, None]
        )
        yield (
            np.bincount(samples.ravel(), minlength=rows * n_groups)
            .reshape(rows, n_groups)
            .astype(float)
        )


def _loss(p: Floats, y: Floats) -> Floats:
    clipped = np.clip(p, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    return np.asarray(-(y * np.log(clipped) + (1 - y) * np.log1p(-clipped)))


_POINTS: dict[str, Callable[[Floats, Floats], float | None]] = {
    "brier": brier,
    "log_loss": log_loss,
    "ece": ece,
    "auroc": auroc,
}


def _checked(
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
