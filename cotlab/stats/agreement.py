"""Agreement of two raters on the same items: how often, and how much more often than their habits alone would make them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from cotlab.stats.intervals import Interval, checked_level, no_interval, too_few, wilson

Table = Sequence[Sequence[int]]


def cohen_kappa(
    first: Sequence[Hashable], second: Sequence[Hashable], *, level: float = 0.95
) -> Interval:
    """Cohen's kappa of two raters: agreement beyond chance, unweighted.

    Parameters
    ----------
    first, second : sequences of labels (bool, str, int), of one length
        What each rater said of the same items, in the same order.
    level : float in (0, 1)

    Returns
    -------
    Interval
        In [-1, 1]; 0 is what the two raters' habits alone would give, 1 agreement on every item.
        Undefined (with the reason) without items and where a rater gives one label to all: nothing
        can then be told from chance. No bounds below five items and where the agreement is perfect:
        the large-sample variance is 0 there.

    Raises
    ------
    ValueError
        If the lengths differ.

    References
    ----------
    Cohen (1960), Educ. Psych. Meas. 20:37; Fleiss, Cohen and Everitt (1969), Psych. Bull. 72:323
    (variance); statsmodels ``inter_rater.cohens_kappa``. R: psych::cohen.kappa(table).
    """
    return cohen_kappa_table(agreement_table(first, second), level=level)


def cohen_kappa_table(table: Table, *, level: float = 0.95) -> Interval:
    """``cohen_kappa`` from a square table of counts: a row for each label of the first rater, a column for the second's."""
    from scipy.stats import norm
    from statsmodels.stats.inter_rater import cohens_kappa

    checked_level(level)
    counts = _checked(table)
    n = int(counts.sum())
    if n == 0:
        return no_interval(None, 0, "no item was rated by both", level=level)
    constant_raters = [
        who
        for who, sums in (("first", counts.sum(axis=1)), ("second", counts.sum(axis=0)))
        if (sums > 0).sum() == 1
    ]
    if constant_raters:
        who = (
            "both raters give"
            if len(constant_raters) == 2
            else f"the {constant_raters[0]} rater gives"
        )
        return no_interval(
            None,
            n,
            f"{who} one label to all {n} items: kappa cannot tell that from chance",
            level=level,
        )
    result = cohens_kappa(counts)
    point = min(1.0, max(-1.0, float(result.kappa)))
    reason = too_few(n, "items") or (
        "the agreement is perfect: its variance is 0" if counts.trace() == n else None
    )
    if reason is None and not float(result.var_kappa) > 0:
        reason = "the large-sample variance is 0"
    if reason:
        return no_interval(point, n, reason, level=level)
    half = float(norm.ppf((1 + level) / 2) * result.std_kappa)
    lo, hi = max(-1.0, point - half), min(1.0, point + half)
    return Interval(
        point, min(lo, point), max(hi, point), n, "Cohen's kappa, large-sample variance", level
    )


def percent_agreement(
    first: Sequence[Hashable], second: Sequence[Hashable], *, level: float = 0.95
) -> Interval:
    """Share of items on which two raters say the same, in [0, 1], with Wilson's interval; undefined without items.

    It is high for two raters who both nearly always give the same label: read it beside
    ``cohen_kappa``.
    """
    return percent_agreement_table(agreement_table(first, second), level=level)


def percent_agreement_table(table: Table, *, level: float = 0.95) -> Interval:
    """``percent_agreement`` from a square table of counts."""
    counts = _checked(table)
    n = int(counts.sum())
    if n == 0:
        return no_interval(None, 0, "no item was rated by both", level=level)
    return wilson(int(counts.trace()), n, level=level)


def agreement_table(first: Sequence[Hashable], second: Sequence[Hashable]) -> list[list[int]]:
    """Counts of label pairs (n_labels, n_labels), rows of the first rater; labels in the order of their text."""
    if len(first) != len(second):
        raise ValueError(f"two raters of the same items, got {len(first)} and {len(second)} labels")
    labels = sorted({*first, *second}, key=str)
    at = {label: k for k, label in enumerate(labels)}
    counts = [[0] * len(labels) for _ in labels]
    for first_label, second_label in zip(first, second, strict=True):
        counts[at[first_label]][at[second_label]] += 1
    return counts


def _checked(table: Table) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    if not all(len(row) == len(table) for row in table):
        raise ValueError(
            "a table of agreement is square: the same labels for both raters, in the same order"
        )
    counts = np.asarray(table, dtype=float).reshape(len(table), len(table))
    if not np.isfinite(counts).all() or (counts < 0).any() or (counts != np.floor(counts)).any():
        raise ValueError("counts are whole and at least 0")
    return counts
