"""Choose what to label next: diverse items whose score lies near a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
EPSILON = 0.1
"""Distance from a threshold within which items count, unless too few lie there."""
UNSCORED_SHARE = 0.1
"""Share of labels for items without r_cal, of which a calibrator would otherwise never learn."""
_WIDENING_FACTOR = 1.5


class LabelChoice(NamedTuple):
    """One item to label."""

    row: int
    """Index of the item in the input."""
    reason: str
    """Why it was chosen, as text."""


class LabelSelection(NamedTuple):
    """Items to label next."""

    choices: tuple[LabelChoice, ...]
    """In the best order of labelling: the first of them are as diverse as so few can be."""
    epsilon: float
    """Distance from a threshold within which items counted; widened where too few did."""
    n_near: int
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
    unscored_share: float = UNSCORED_SHARE,
    is_labelled: Sequence[bool] | None = None,
    item_thresholds: Sequence[Sequence[float]] | None = None,
    seed: int = 0,
) -> LabelSelection:
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
    unscored_share : float in [0, 1]
        Share of items without r_cal, rounded up to one where there are any; drawn at random.
    is_labelled : sequence of bool, or None
        Which items have a label: they are not chosen, and chosen items keep away from them.
    item_thresholds : sequence of sequences of float, one an item, or None
        Thresholds of each item, where domains have their own; ``thresholds`` for an item without
        any.
    seed : int
        Of the draw among items without r_cal, and of ties.

    Returns
    -------
    LabelSelection
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
    from cotlab.stats.drift import standardise_columns

    scores = np.asarray(r_cal, dtype=float)
    n = len(scores)
    labelled = np.zeros(n, dtype=bool) if is_labelled is None else np.asarray(is_labelled, bool)
    bounds = [tuple(own) or tuple(thresholds) for own in item_thresholds or [()] * n]
    if not n == len(features) == len(labelled) == len(bounds):
        raise ValueError(
            f"{n} scores, {len(features)} rows of features, {len(labelled)} marks of labels and"
            f" {len(bounds)} sets of thresholds"
        )
    if k < 1 or not epsilon > 0 or not 0 <= unscored_share <= 1:
        raise ValueError(
            f"k {k} must be at least 1, epsilon {epsilon} above 0, the share {unscored_share} in"
            " [0, 1]"
        )
    all_thresholds = {*thresholds, *(bound for own in bounds for bound in own)}
    if not len(thresholds) or not all(0 <= bound <= 1 for bound in all_thresholds):
        raise ValueError(
            f"thresholds lie in [0, 1], and there is at least one: got {sorted(all_thresholds)}"
        )
    rng = np.random.default_rng(seed)
    scored_rows = np.flatnonzero(np.isfinite(scores) & ~labelled)
    unscored_rows = np.flatnonzero(~np.isfinite(scores) & ~labelled)
    n_unscored = min(len(unscored_rows), int(np.ceil(unscored_share * k - 1e-9)))
    n_scored = min(k - n_unscored, len(scored_rows))
    n_unscored = min(len(unscored_rows), k - n_scored)
    notes = []
    nearest = np.array(
        [min(bounds[i], key=lambda bound: abs(scores[i] - bound)) for i in scored_rows]
    )
    distance = np.abs(scores[scored_rows] - nearest)
    max_distance = epsilon
    while n_scored and (distance <= max_distance).sum() < n_scored and max_distance < 1:
        max_distance = min(1.0, max_distance * _WIDENING_FACTOR)
    if max_distance > epsilon:
        notes.append(
            f"only {int((distance <= epsilon).sum())} unlabelled items lie within {epsilon:g} of a"
            f" threshold, so those within {max_distance:.2g} count"
        )
    near_rows = np.flatnonzero(distance <= max_distance)
    points = standardise_columns(np.asarray(features, dtype=float))
    near_order = _farthest_points(
        points[scored_rows[near_rows]], points[labelled], distance[near_rows], n_scored, rng
    )
    choices = [
        LabelChoice(
            int(scored_rows[i]),
            f"r_cal is {distance[i]:.2f} from the threshold {nearest[i]:g}, unlike those before it",
        )
        for i in near_rows[near_order]
    ]
    for i in rng.choice(unscored_rows, n_unscored, replace=False) if n_unscored else ():
        choices.append(LabelChoice(int(i), "no r_cal: drawn at random among those"))
    if not len(scored_rows) and len(unscored_rows):
        notes.append("no unlabelled item has r_cal, so all are drawn at random")
    if len(choices) < k:
        notes.append(f"only {len(choices)} items are unlabelled")
    return LabelSelection(tuple(choices), max_distance, len(near_rows), "; ".join(notes))


def _farthest_points(
    points: Floats, covered_points: Floats, distance: Floats, k: int, rng: np.random.Generator
) -> list[int]:
    """Return rows of ``points``, each farthest from those before and ``covered_points``."""
    if not k or not len(points):
        return []
    tie_order = rng.permutation(len(points))
    nearest_distance = np.full(len(points), np.inf)
    for centre in covered_points:
        nearest_distance = np.minimum(nearest_distance, ((points - centre) ** 2).sum(axis=1))
    chosen_rows: list[int] = []
    is_unchosen = np.ones(len(points), dtype=bool)
    while len(chosen_rows) < min(k, len(points)):
        is_start = np.isinf(
            nearest_distance
        ).all()  # nothing is covered: begin nearest to a threshold
        sort_key = distance if is_start else -np.where(is_unchosen, nearest_distance, -1.0)
        best_row = int(np.lexsort((tie_order, sort_key))[0])
        chosen_rows.append(best_row)
        is_unchosen[best_row] = False
        nearest_distance = np.minimum(
            nearest_distance, ((points - points[best_row]) ** 2).sum(axis=1)
        )
    return chosen_rows
