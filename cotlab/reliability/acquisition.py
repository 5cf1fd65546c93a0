"""Choose what to label next: diverse items whose score lies near a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
EPSILON = 0.1
"""Distance from a threshold within which items count, unless too few lie there."""
UNSCORED = 0.1
"""Share of labels for items without r_cal, of which a calibrator would otherwise never learn."""
_STEP = 1.5


class Choice(NamedTuple):
    """One item to label."""

    row: int
    """Index of the item in the input."""
    reason: str
    """Why it was chosen, as text."""


class Chosen(NamedTuple):
    """Items to label next."""

    choices: tuple[Choice, ...]
    """In the best order of labelling: the first of them are as diverse as so few can be."""
    epsilon: float
    """Distance from a threshold within which items counted; widened where too few did."""
    near: int
    """Number of items within ``epsilon``."""
    note: str
    """What was done otherwise than requested; "" where nothing was."""


def choose_next_labels(
    r_cal: Sequence[float],
    features: Floats,
    thresholds: Sequence[float],
    k: int,
    *,
    epsilon: float = EPSILON,
    unscored: float = UNSCORED,
    taken: Sequence[bool] | None = None,
    item_thresholds: Sequence[Sequence[float]] | None = None,
    seed: int = 0,
) -> Chosen:
    """Choose ``k`` diverse unlabelled items near a threshold.

    Parameters
    ----------
    r_cal : sequence of float in [0, 1], one an item
        NaN where there is none.
    features : ndarray (n, n_features)
        NaN where undefined; only distances between items matter.
    thresholds : sequence of float in [0, 1], at least one
        An item is near where it is within ``epsilon`` of any of them.
    k : int, at least 1
    epsilon : float, > 0
        Widened by half, repeatedly, while fewer than ``k`` items are near.
    unscored : float in [0, 1]
        Share of items without r_cal, rounded up to one where there are any; drawn at random.
    taken : sequence of bool, or None
        Which items have a label: they are not chosen, and chosen items keep away from them.
    item_thresholds : sequence of sequences of float, one an item, or None
        Thresholds of each item, where domains have their own; ``thresholds`` for an item without
        any.
    seed : int
        Of the draw among items without r_cal, and of ties.

    Returns
    -------
    Chosen
        Fewer than ``k`` where fewer are unlabelled; none twice.

    Raises
    ------
    ValueError
        If the lengths differ, ``k`` < 1, ``epsilon`` <= 0, or a threshold or the share lies outside
        [0, 1].

    Notes
    -----
    Choosing is no gain everywhere: see benchmarks/active_learning.py. For a map of one score
    (Platt) no gain was seen over random items; a fit on all features gained in some settings. So
    keep some random items.

    References
    ----------
    Lewis and Gale (1994), SIGIR, for uncertainty sampling; Sener and Savarese (2018), ICLR, for the
    k-centre greedy choice (Gonzalez 1985), whose covering radius is at most twice the least.
    """
    score = np.asarray(r_cal, dtype=float)
    labelled_mask = (
        np.zeros(len(score), dtype=bool) if taken is None else np.asarray(taken, dtype=bool)
    )
    bounds = (
        [thresholds] * len(score)
        if item_thresholds is None
        else [tuple(candidate) or tuple(thresholds) for candidate in item_thresholds]
    )
    _checked(
        score,
        features,
        [*thresholds, *(v for candidate in bounds for v in candidate)],
        k,
        epsilon,
        unscored,
        labelled_mask,
    )
    if not len(thresholds) or len(bounds) != len(score):
        raise ValueError(
            "there is at least one threshold, and thresholds of each item's own are as many as the"
            " items"
        )
    rng = np.random.default_rng(seed)
    known = np.isfinite(score)
    scored, blind = np.flatnonzero(known & ~labelled_mask), np.flatnonzero(~known & ~labelled_mask)
    n_unscored = min(len(blind), int(np.ceil(unscored * k - 1e-9)))
    n_scored = min(k - n_unscored, len(scored))
    n_unscored = min(len(blind), k - n_scored)
    notes = []
    theta = np.array(
        [min(bounds[i], key=lambda candidate: abs(score[i] - candidate)) for i in scored],
        dtype=float,
    )
    distance = np.abs(score[scored] - theta)
    reach = epsilon
    while n_scored and (distance <= reach).sum() < n_scored and reach < 1:
        reach = min(1.0, reach * _STEP)
    if reach > epsilon:
        fewer = int((distance <= epsilon).sum())
        notes.append(
            f"only {fewer} unlabelled items lie within {epsilon:g} of a threshold, so those within"
            f" {reach:.2g} count"
        )
    near = np.flatnonzero(distance <= reach)
    space = feature_space(features)
    order = _farthest(
        space[scored[near]], space[np.flatnonzero(labelled_mask)], distance[near], n_scored, rng
    )
    choices = [
        Choice(
            int(scored[i]),
            f"r_cal is {distance[i]:.2f} from the threshold {theta[i]:g}, unlike those before it",
        )
        for i in near[order]
    ]
    if n_unscored:
        choices += [
            Choice(int(i), "no r_cal: drawn at random among those")
            for i in rng.choice(blind, n_unscored, replace=False)
        ]
    if not len(scored) and len(blind):
        notes.append("no unlabelled item has r_cal, so all are drawn at random")
    if len(choices) < k:
        notes.append(f"only {len(choices)} items are unlabelled")
    return Chosen(tuple(choices), reach, len(near), "; ".join(notes))


def feature_space(features: Floats) -> Floats:
    """Return standardised features, with the median and an indicator where one is missing."""
    from cotlab.stats.drift import standardised

    return standardised(np.asarray(features, dtype=float))


def _farthest(
    points: Floats, covered: Floats, distance: Floats, k: int, rng: np.random.Generator
) -> list[int]:
    """Return rows of ``points``, each the farthest from all before it and from ``covered``."""
    if not k or not len(points):
        return []
    tie = rng.permutation(len(points))
    nearest = np.full(len(points), np.inf)
    for centre in covered:
        nearest = np.minimum(nearest, ((points - centre) ** 2).sum(axis=1))
    chosen: list[int] = []
    left = np.ones(len(points), dtype=bool)
    while len(chosen) < min(k, len(points)):
        if np.isinf(nearest).all():  # nothing is covered yet: begin at the boundary itself
            best = int(np.lexsort((tie, distance))[0])
        else:
            best = int(np.lexsort((tie, -np.where(left, nearest, -1.0)))[0])
        chosen.append(best)
        left[best] = False
        nearest = np.minimum(nearest, ((points - points[best]) ** 2).sum(axis=1))
    return chosen


def _checked(
    score: Floats,
    features: Floats,
    thresholds: Sequence[float],
    k: int,
    epsilon: float,
    unscored: float,
    labelled_mask: NDArray[np.bool_],
) -> None:
    if not len(score) == len(features) == len(labelled_mask):
        raise ValueError(
            f"{len(score)} scores, {len(features)} rows of features and {len(labelled_mask)} marks"
            " of labels"
        )
    if k < 1 or not epsilon > 0 or not 0 <= unscored <= 1:
        raise ValueError(
            f"k {k} must be at least 1, epsilon {epsilon} above 0, the share {unscored} in [0, 1]"
        )
    if not thresholds or not all(0 <= theta <= 1 for theta in thresholds):
        raise ValueError(
            f"thresholds lie in [0, 1], and there is at least one: got {list(thresholds)}"
        )
