"""Agreement of raters on the same items, beyond what chance alone would give."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from cotlab.stats.intervals import Interval, checked_level, no_interval, too_few, wilson

CountTable = Sequence[Sequence[int]]


def cohen_kappa(
    first: Sequence[Hashable], second: Sequence[Hashable], *, level: float = 0.95
) -> Interval:
    """Return Cohen's kappa of two raters: agreement beyond chance, unweighted.

    Parameters
    ----------
    first, second : sequence of labels (bool, str, int), of one length
        Labels of the first and the second rater, for the same items in the same order.
    level : float in (0, 1)
        Confidence level.

    Returns
    -------
    Interval
        In [-1, 1]: 0 is what the frequencies of the labels alone would give, 1 agreement on every
        item. Undefined (with the reason) without items, and where a rater gives one label to all:
        agreement cannot be told from chance then. No bounds below five items and where agreement is
        perfect, since the large-sample variance is 0 there.

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


def cohen_kappa_table(table: CountTable, *, level: float = 0.95) -> Interval:
    """Return Cohen's kappa from a square table of counts.

    Parameters
    ----------
    table : sequence of rows (n_labels, n_labels) of int, at least 0
        Rows are labels of the first rater, columns those of the second, in one order.
    level : float in (0, 1)

    Returns
    -------
    Interval
        As ``cohen_kappa``.

    Raises
    ------
    ValueError
        If the table is not square, or a count is negative or not whole.
    """
    from scipy.stats import norm
    from statsmodels.stats.inter_rater import cohens_kappa

    checked_level(level)
    counts = _checked_counts(table)
    n = int(counts.sum())
    if n == 0:
        return no_interval(None, 0, "no item was rated by both", level=level)
    constant_raters = [
        rater
        for rater, label_counts in (("first", counts.sum(axis=1)), ("second", counts.sum(axis=0)))
        if (label_counts > 0).sum() == 1
    ]
    if constant_raters:
        rater_text = (
            "both raters give"
            if len(constant_raters) == 2
            else f"the {constant_raters[0]} rater gives"
        )
        return no_interval(
            None,
            n,
            f"{rater_text} one label to all {n} items: kappa cannot tell that from chance",
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
    half_width = float(norm.ppf((1 + level) / 2) * result.std_kappa)
    lo, hi = max(-1.0, point - half_width), min(1.0, point + half_width)
    return Interval(
        point, min(lo, point), max(hi, point), n, "Cohen's kappa, large-sample variance", level
    )


def percent_agreement(
    first: Sequence[Hashable], second: Sequence[Hashable], *, level: float = 0.95
) -> Interval:
    """Return the share of items on which two raters agree, with Wilson's interval.

    Parameters
    ----------
    first, second : sequence of labels, of one length
        As ``cohen_kappa``.
    level : float in (0, 1)

    Returns
    -------
    Interval
        In [0, 1]; undefined without items. It is high for two raters who both nearly always give
        the same label: read it beside ``cohen_kappa``.

    Raises
    ------
    ValueError
        If the lengths differ.

    References
    ----------
    Wilson (1927), JASA 22:209.
    """
    return percent_agreement_table(agreement_table(first, second), level=level)


def percent_agreement_table(table: CountTable, *, level: float = 0.95) -> Interval:
    """Return the share of agreement from a square table of counts.

    Parameters
    ----------
    table : sequence of rows (n_labels, n_labels) of int, at least 0
    level : float in (0, 1)

    Returns
    -------
    Interval
        As ``percent_agreement``.

    Raises
    ------
    ValueError
        If the table is not square, or a count is negative or not whole.
    """
    counts = _checked_counts(table)
    n = int(counts.sum())
    if n == 0:
        return no_interval(None, 0, "no item was rated by both", level=level)
    return wilson(int(counts.trace()), n, level=level)


def agreement_table(first: Sequence[Hashable], second: Sequence[Hashable]) -> list[list[int]]:
    """Count the pairs of labels of two raters.

    Parameters
    ----------
    first, second : sequence of labels, of one length

    Returns
    -------
    list of list of int (n_labels, n_labels)
        Rows are labels of the first rater, columns those of the second; both sorted as text.

    Raises
    ------
    ValueError
        If the lengths differ.
    """
    if len(first) != len(second):
        raise ValueError(f"two raters of the same items, got {len(first)} and {len(second)} labels")
    labels = sorted({*first, *second}, key=str)
    index_by_label = {label: k for k, label in enumerate(labels)}
    counts = [[0] * len(labels) for _ in labels]
    for first_label, second_label in zip(first, second, strict=True):
        counts[index_by_label[first_label]][index_by_label[second_label]] += 1
    return counts


def _checked_counts(table: CountTable) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    if not all(len(row) == len(table) for row in table):
        raise ValueError(
            "a table of agreement is square: the same labels for both raters, in the same order"
        )
    counts = np.asarray(table, dtype=float).reshape(len(table), len(table))
    if not np.isfinite(counts).all() or (counts < 0).any() or (counts != np.floor(counts)).any():
        raise ValueError("counts are whole and at least 0")
    return counts


N_RESAMPLES = 1000
MAX_UNDEFINED_SHARE = 0.05
"""Share of resamples without a value, one label alone in them, from which on there is no interval.
"""


def nominal_alpha(
    ratings: Sequence[Sequence[Hashable | None]],
    *,
    seed: int,
    level: float = 0.95,
    groups: Sequence[Hashable] | None = None,
) -> Interval:
    """Return Krippendorff's alpha of nominal labels, with a bootstrap interval over items.

    Parameters
    ----------
    ratings : sequence of sequences of labels (bool, str, int) or None
        For each item the labels of its raters; None, or fewer entries, where a rater gave none.
        Which rater gave a label plays no part.
    seed : int
        Of the resampling; the same seed gives the same interval, in whichever order the items come.
    level : float in (0, 1)
    groups : sequence (n_items,), optional
        Items of one group are drawn together, as the steps of one chain; ``n`` and the reasons then
        count groups.

    Returns
    -------
    Interval
        At most 1, which is agreement on every item; 0 is what chance gives, and below 0 raters
        disagree systematically. ``n`` counts the items with two labels or more; items with one
        label say nothing about agreement, and ``note`` counts them. Undefined (with the reason)
        without such items and where only one label occurs: agreement cannot be told from chance
        then. No bounds below five items, where every item is agreed on (no resample shows a
        disagreement), and where more than ``MAX_UNDEFINED_SHARE`` of the resamples have no value;
        fewer are left out, and ``note`` counts them.

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability; the package ``krippendorff``.
    R: irr::kripp.alpha.
    """
    checked_level(level)
    item_labels = [[label for label in item if label is not None] for item in ratings]
    rated_items = [item for item in item_labels if len(item) > 1]
    group_of_item = range(len(item_labels)) if groups is None else groups
    rated_groups = [
        group for group, item in zip(group_of_item, item_labels, strict=True) if len(item) > 1
    ]
    n, n_single_rated = len(set(rated_groups)), sum(len(item) == 1 for item in item_labels)
    note = (
        f"{n_single_rated} {'item' if n_single_rated == 1 else 'items'} of one rater left out"
        if n_single_rated
        else None
    )
    if not n:
        return no_interval(None, 0, "no item was rated by two", level=level, note=note)
    labels = sorted({label for item in rated_items for label in item}, key=str)
    if len(labels) == 1:
        return no_interval(
            None,
            n,
            f"all raters give one label to all {n} items: alpha cannot tell that from chance",
            level=level,
            note=note,
        )
    counts = np.array(
        [[item.count(label) for label in labels] for item in rated_items], dtype=np.int64
    )
    point = _krippendorff_alpha(counts)
    reason = too_few(n, "items") or (
        "every item is agreed on: a resample has no spread to show" if point == 1.0 else None
    )
    if reason:
        return no_interval(point, n, reason, level=level, note=note)
    # items, or groups of items, with equal sums are drawn together
    sums = _alpha_sums(counts, rated_groups)
    distinct_sums, n_repeats = _distinct_rows(sums)
    alphas = _resampled_alphas(
        distinct_sums, np.random.default_rng(seed).multinomial(n, n_repeats / n, size=N_RESAMPLES)
    )
    n_undefined = N_RESAMPLES - len(alphas)
    if n_undefined > MAX_UNDEFINED_SHARE * N_RESAMPLES:
        return no_interval(
            point,
            n,
            f"{n_undefined} of {N_RESAMPLES} resamples hold one label alone",
            level=level,
            note=note,
        )
    lo, hi = (float(bound) for bound in np.quantile(alphas, [(1 - level) / 2, (1 + level) / 2]))
    notes = [
        *([note] if note else []),
        *(
            [f"{n_undefined} of {N_RESAMPLES} resamples hold one label alone"]
            if n_undefined
            else []
        ),
    ]
    method = f"bootstrap (percentile, {N_RESAMPLES} resamples)"
    if not lo <= point <= hi:
        lo, hi, method = (
            min(lo, point),
            max(hi, point),
            "bootstrap (percentile, widened to its point)",
        )
    return Interval(point, lo, hi, n, method, level, note="; ".join(notes) or None)


def _krippendorff_alpha(counts: NDArray[np.int64]) -> float:
    """Return alpha from counts (n_items, n_labels) with two ratings an item and two labels."""
    import krippendorff

    return min(1.0, float(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")))


def _alpha_sums(counts: NDArray[np.int64], groups: Sequence[Hashable]) -> NDArray[np.float64]:
    """Return the sums of each group that alpha is computed from.

    Parameters
    ----------
    counts : ndarray (n_items, n_labels) of int
        Counts of labels.
    groups : sequence (n_items,)
        Group of each item.

    Returns
    -------
    ndarray (n_groups, n_labels + 1)
        Counts of labels, then the observed agreement n (n - 1) / (m - 1), m the ratings of an item.
    """
    observed = (counts * (counts - 1)).sum(axis=1) / (counts.sum(axis=1) - 1)
    index_by_group: dict[Hashable, int] = {}
    indices = [index_by_group.setdefault(group, len(index_by_group)) for group in groups]
    sums = np.zeros((len(index_by_group), counts.shape[1] + 1))
    np.add.at(sums, indices, np.column_stack([counts, observed]))
    return sums


def _distinct_rows(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the distinct rows in ascending order, and how often each occurs.

    As ``np.unique`` over rows, which compares whole rows and takes ten times as long.
    """
    ordered = rows[np.lexsort(rows.T[::-1])]
    is_new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
    starts = np.flatnonzero(is_new)
    return ordered[starts], np.diff(starts, append=len(rows))


def _resampled_alphas(
    distinct_sums: NDArray[np.float64], draw_counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return alpha of each resample in which more than one label occurs.

    Parameters
    ----------
    distinct_sums : ndarray (n_kinds, n_labels + 1)
        ``_alpha_sums``, each distinct row once.
    draw_counts : ndarray (n_resamples, n_kinds) of int
        How often each kind of row was drawn.

    Notes
    -----
    Krippendorff (2011), section C: alpha = 1 - (N - 1) (N - sum o_cc) / (N^2 - sum n_c^2), where
    o_cc sums n (n - 1) / (m - 1) over the items, m the ratings of one. The coincidences of a
    resample are sums over its items, so all resamples are computed at once.
    """
    totals = draw_counts @ distinct_sums
    label_totals, observed_agreement = totals[:, :-1], totals[:, -1]
    n_ratings = label_totals.sum(axis=1)
    expected_disagreement = n_ratings**2 - (label_totals**2).sum(axis=1)
    is_defined = (label_totals > 0).sum(axis=1) > 1
    return np.asarray(
        1
        - (n_ratings[is_defined] - 1)
        * (n_ratings[is_defined] - observed_agreement[is_defined])
        / expected_disagreement[is_defined]
    )
