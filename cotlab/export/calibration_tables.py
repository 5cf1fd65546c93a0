"""The tables that figures of calibration are drawn from: of a calibrator's report, and of chains with their scores and labels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from cotlab.store.gate import Store

FEW, WIDE, NARROW = 200, 0.1, 0.05
"""Under so many scores a histogram's bars are wide."""
ACCEPTABLE, NOT_ACCEPTABLE, NO_LABEL = "acceptable", "not acceptable", "no label"
_LEVEL = 0.95


def histogram(scores: pd.Series, targets: pd.Series, name: str, thresholds: tuple[float, float] | None = None) -> pd.DataFrame:
    """Chains by score and by what people said of them.

    Parameters
    ----------
    scores : Series (n,) of float in [0, 1]
        NaN where a chain has none: those are counted in ``missing`` and not drawn.
    targets : Series (n,) of True, False or None
        None: nobody said, or people disagree.
    name : str
        Of the score.
    thresholds : (low, high), optional

    Returns
    -------
    DataFrame
        As the figure score_histogram wants it; without rows where no chain has a score.
    """
    values = scores.to_numpy(dtype=float)
    known = np.isfinite(values)
    width = WIDE if known.sum() < FEW else NARROW
    n_bins = round(1 / width)
    edges = [k / n_bins for k in range(n_bins + 1)]
    rows = []
    for group, said in ((ACCEPTABLE, True), (NOT_ACCEPTABLE, False), (NO_LABEL, None)):
        own = np.array([target is said if said is None else target is not None and bool(target) is said for target in targets])
        counts, _ = np.histogram(values[known & own], edges)
        rows += [
            {"group": group, "left": left, "right": right, "count": int(n)}
            for left, right, n in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
    table = pd.DataFrame(rows if known.any() else [], columns=["group", "left", "right", "count"])
    return with_thresholds(table.assign(score=name, missing=int((~known).sum())), thresholds)


def with_thresholds(table: pd.DataFrame, thresholds: tuple[float, float] | None) -> pd.DataFrame:
    """The table with columns low and high, where a policy has them."""
    return table if thresholds is None else table.assign(low=thresholds[0], high=thresholds[1])


def perfect_bins(predicted: float, n: int) -> tuple[float, float]:
    """Between which shares 95 % of bins lie whose n chains are each acceptable with the probability ``predicted``.

    References
    ----------
    The binomial's quantiles (scipy.stats.binom); a little too wide where the predictions within a bin differ.
    """
    from scipy.stats import binom

    lo, hi = binom.ppf([(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], n, predicted) / n
    return float(lo), float(hi)
