"""Krippendorff's alpha: how far any number of raters agree beyond chance, where not everybody rated everything."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from cotlab.stats.intervals import Interval, checked_level, no_interval, too_few

RESAMPLES = 1000
MAX_UNDEFINED = 0.05
"""Share of resamples without a value, one label alone in them, from which on there is no interval.
"""


def nominal_alpha(
    ratings: Sequence[Sequence[Hashable | None]], *, seed: int, level: float = 0.95
) -> Interval:
    """Krippendorff's alpha of nominal labels, with a bootstrap interval over items.

    Parameters
    ----------
    ratings : sequence of sequences of labels (bool, str, int) or None
        For each item what its raters said; None, or fewer entries, where somebody did not rate it.
        Who said it plays no part.
    seed : int
        Of the resampling; the same seed gives the same interval, in whichever order the items come.
    level : float in (0, 1)

    Returns
    -------
    Interval
        At most 1, which is agreement on every item; 0 is what chance gives, below 0 raters disagree
        systematically. ``n`` counts the items that two raters or more labelled; those of one say
        nothing of agreement, and ``note`` counts them. Undefined (with the reason) without such
        items and where only one label occurs in them: nothing can then be told from chance. No
        bounds below five items, where every item is agreed on (no resample shows a disagreement),
        and where more than ``MOST_UNDEFINED`` of the resamples have no value; rarer ones are left
        out and ``note`` counts them.

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability; the package ``krippendorff``.
    R: irr::kripp.alpha.
    """
    checked_level(level)
    known = [[label for label in item if label is not None] for item in ratings]
    paired = [item for item in known if len(item) > 1]
    n, n_single = len(paired), sum(len(item) == 1 for item in known)
    note = (
        f"{n_single} {'item' if n_single == 1 else 'items'} of one rater left out"
        if n_single
        else None
    )
    if not n:
        return no_interval(None, 0, "no item was rated by two", level=level, note=note)
    labels = sorted({label for item in paired for label in item}, key=str)
    if len(labels) == 1:
        return no_interval(
            None,
            n,
            f"all raters give one label to all {n} items: alpha cannot tell that from chance",
            level=level,
            note=note,
        )
    counts = np.array([[item.count(label) for label in labels] for item in paired], dtype=np.int64)
    point = _alpha(counts)
    reason = too_few(n, "items") or (
        "every item is agreed on: a resample has no spread to show" if point == 1.0 else None
    )
    if reason:
        return no_interval(point, n, reason, level=level, note=note)
    kinds, often = np.unique(
        counts, axis=0, return_counts=True
    )  # items that were rated alike are drawn together
    alphas = _resampled(
        kinds, np.random.default_rng(seed).multinomial(n, often / n, size=RESAMPLES)
    )
    n_undefined = RESAMPLES - len(alphas)
    if n_undefined > MAX_UNDEFINED * RESAMPLES:
        return no_interval(
            point,
            n,
            f"{n_undefined} of {RESAMPLES} resamples hold one label alone",
            level=level,
            note=note,
        )
    lo, hi = (float(bound) for bound in np.quantile(alphas, [(1 - level) / 2, (1 + level) / 2]))
    notes = [
        *([note] if note else []),
        *([f"{n_undefined} of {RESAMPLES} resamples hold one label alone"] if n_undefined else []),
    ]
    method = f"bootstrap (percentile, {RESAMPLES} resamples)"
    if not lo <= point <= hi:
        lo, hi, method = (
            min(lo, point),
            max(hi, point),
            "bootstrap (percentile, widened to its point)",
        )
    return Interval(point, lo, hi, n, method, level, note="; ".join(notes) or None)


def _alpha(counts: NDArray[np.int64]) -> float:
    """Alpha from (n_items, n_labels) counts of ratings, two or more an item and two labels or more in all."""
    import krippendorff

    return min(1.0, float(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")))


def _resampled(kinds: NDArray[np.int64], often: NDArray[np.int64]) -> NDArray[np.float64]:
    """Alpha of each resample in which another label than one occurs.

    Parameters
    ----------
    kinds : ndarray (n_kinds, n_labels), counts of ratings
    often : ndarray (n_resamples, n_kinds), how often items rated so were drawn

    Notes
    -----
    Krippendorff (2011), section C: alpha = 1 - (N - 1) (N - sum o_cc) / (N^2 - sum n_c^2), where
    o_cc sums n (n - 1) / (m - 1) over the items, m the ratings of one. The coincidences of a
    resample are sums over its items, so all go at once.
    """
    m = kinds.sum(axis=1)
    same = often @ ((kinds * (kinds - 1)).sum(axis=1) / (m - 1))
    labels = (often @ kinds).astype(float)
    totals = labels.sum(axis=1)
    chance = totals**2 - (labels**2).sum(axis=1)
    known = (labels > 0).sum(axis=1) > 1
    return np.asarray(1 - (totals[known] - 1) * (totals[known] - same[known]) / chance[known])
