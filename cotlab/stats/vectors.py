"""Similarity of vectors: cosines, clusters by a threshold, alignment of two chains of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cotlab.core.errors import UnknownName

Linkage = Literal["average", "single", "complete"]
LINKAGES: tuple[str, ...] = get_args(Linkage)
_ROUNDING_ERROR = 1e-9
"""Rounding error of a cosine."""
Floats = NDArray[np.float64]


def pooled(vectors: Sequence[Sequence[float]]) -> tuple[float, ...] | None:
    """Return the direction of the mean of several directions: a chain's vector from its steps'.

    Parameters
    ----------
    vectors : sequence of vectors of one length, any norm
        Each is scaled to unit length first, so that a long step weighs as much as a short one.

    Returns
    -------
    tuple of float or None
        Unit length. None where there is no vector, their lengths differ, a number is not finite,
        one of them is 0, or their mean is 0 (they point opposite ways).
    """
    try:
        mean = _unit_rows(vectors).mean(axis=0)
    except ValueError:
        return None
    norm = float(np.linalg.norm(mean))
    return tuple((mean / norm).tolist()) if norm > _ROUNDING_ERROR else None


def cosines(vectors: Sequence[Sequence[float]]) -> Floats:
    """Return the cosine of every pair of vectors.

    Parameters
    ----------
    vectors : sequence of n vectors of one length, none of them 0

    Returns
    -------
    ndarray (n, n), cosine, [-1, 1]
        Symmetric, with a diagonal of exactly 1.

    Raises
    ------
    ValueError
        If the lengths differ, or a vector is 0 or not finite.
    """
    unit_rows = _unit_rows(vectors) if len(vectors) else np.zeros((0, 1))
    similarity = np.clip(unit_rows @ unit_rows.T, -1.0, 1.0)
    similarity = (similarity + similarity.T) / 2
    np.fill_diagonal(similarity, 1.0)
    return similarity


def clusters(similarity: Floats, threshold: float, linkage: str = "average") -> tuple[int, ...]:
    """Return the cluster of each of n things, by agglomerative clustering cut at a threshold.

    Parameters
    ----------
    similarity : ndarray (n, n), cosine, [-1, 1]
        Symmetric, as from ``cosines``.
    threshold : float in [-1, 1]
        Two clusters are merged as long as their similarity is at least this, the most similar
        first.
    linkage : "average", "single" or "complete"
        The similarity of two clusters: the mean, the largest or the smallest over the pairs across
        them. ``single`` chains: a row of neighbours becomes one cluster however far apart its ends
        are.

    Returns
    -------
    tuple of int
        One number a thing, counted from 0 in the order in which the clusters first appear.

    Raises
    ------
    UnknownName
        For another linkage.
    ValueError
        If the matrix is not square, or the threshold lies outside [-1, 1].

    References
    ----------
    Sokal and Michener (1958), Univ. Kansas Sci. Bull. 38:1409 (average); scipy.cluster.hierarchy.
    """
    if linkage not in LINKAGES:
        raise UnknownName("linkage", linkage, LINKAGES)
    if similarity.ndim != 2 or similarity.shape[0] != similarity.shape[1]:
        raise ValueError(f"a square matrix of similarities is needed, got shape {similarity.shape}")
    if not -1 <= threshold <= 1:
        raise ValueError(f"threshold must lie in [-1, 1], got {threshold}")
    n = len(similarity)
    if n < 2:
        return (0,) * n
    from scipy.cluster import hierarchy  # a fifth of a second, which most runs do without
    from scipy.spatial.distance import squareform

    distance = np.clip(1.0 - similarity, 0.0, 2.0).round(9)  # so that rounding decides no tie
    np.fill_diagonal(distance, 0.0)
    tree = hierarchy.linkage(squareform(distance, checks=False), method=linkage)
    labels = hierarchy.fcluster(tree, t=1.0 - threshold + _ROUNDING_ERROR, criterion="distance")
    first_seen = list(dict.fromkeys(labels.tolist()))
    return tuple(map(first_seen.index, labels.tolist()))


def _unit_rows(vectors: Sequence[Sequence[float]]) -> Floats:
    """Return vectors at unit length, one a row; ValueError where one has no direction."""
    lengths = sorted({len(vector) for vector in vectors})
    if len(lengths) != 1:
        raise ValueError(f"vectors of different lengths: {lengths}")
    rows = np.asarray(vectors, dtype=np.float64)
    maxima = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    if not (np.isfinite(rows).all() and maxima.all()):
        raise ValueError("a vector is 0 or not finite, so it has no direction")
    rows = rows / maxima  # so that no square overflows or vanishes
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def dtw_similarity(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]
) -> float | None:
    """Return 1 − the normalised cost of the best alignment of two chains (dynamic time warping).

    The cost of two steps is 1 − their cosine.

    Parameters
    ----------
    first, second : sequence of n and of m vectors of one length, none of them 0
        One vector a step.

    Returns
    -------
    float or None
        In [-1, 1]: 1 for equal chains. Symmetric. None where a chain is empty.

    Raises
    ------
    ValueError
        As ``cosines``.

    Notes
    -----
    A move along one chain costs d, a diagonal move 2 d, the first pair 2 d, so every path has the
    weight n + m, and the total is divided by that.

    References
    ----------
    Sakoe and Chiba (1978), IEEE Trans. ASSP 26:43, symmetric form without slope constraint.
    """
    n, m = len(first), len(second)
    if not n or not m:
        return None
    cost = 1.0 - cosines([*first, *second])[:n, n:]
    total_cost = np.full((n + 1, m + 1), np.inf)
    total_cost[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            step_cost = cost[i - 1, j - 1]
            total_cost[i, j] = min(
                total_cost[i - 1, j - 1] + 2 * step_cost,
                total_cost[i - 1, j] + step_cost,
                total_cost[i, j - 1] + step_cost,
            )
    return float(min(1.0, max(-1.0, 1.0 - total_cost[n, m] / (n + m))))
