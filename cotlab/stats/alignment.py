"""Dynamic time warping: how well two rows of vectors match when they are aligned in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cotlab.stats.clusters import cosines


def dtw_similarity(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]
) -> float | None:
    """1 − the normalised cost of the best alignment of two chains, by 1 − cosine of their steps.

    Parameters
    ----------
    first, second : sequences of n and m vectors of one length, none of them 0
        One vector a step.

    Returns
    -------
    float or None
        In [-1, 1]: 1 for equal chains. Symmetric. None where one of them is empty.

    Raises
    ------
    ValueError
        As ``cosines``.

    Notes
    -----
    A move along one chain costs d, a diagonal move 2 d, the first pair 2 d, so every path has the
    weight n + m and the total is divided by that.

    References
    ----------
    Sakoe and Chiba (1978), IEEE Trans. ASSP 26:43, symmetric form without slope constraint.
    """
    n, m = len(first), len(second)
    if not n or not m:
        return None
    cost = 1.0 - cosines([*first, *second])[:n, n:]
    total = np.full((n + 1, m + 1), np.inf)
    total[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            d = cost[i - 1, j - 1]
            total[i, j] = min(total[i - 1, j - 1] + 2 * d, total[i - 1, j] + d, total[i, j - 1] + d)
    return float(min(1.0, max(-1.0, 1.0 - total[n, m] / (n + m))))
