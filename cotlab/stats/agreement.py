"""Agreement of raters on the same items, beyond what chance alone would give."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cotlab.stats.intervals import Interval, checked_level, no_interval, too_few, wilson
from cotlab.stats.resample import Floats, GroupResamples, percentile_interval


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
    from scipy.stats import norm
    from statsmodels.stats.inter_rater import cohens_kappa

    checked_level(level)
    counts = np.array(agreement_table(first, second))
    n = int(counts.sum())
    if n == 0:
        return no_interval(None, 0, "no item was rated by both", level=level)
    constant_raters = [
        rater for rater, labels in (("first", first), ("second", second)) if len(set(labels)) == 1
    ]
    if constant_raters:
        who = f"the {constant_raters[0]} rater gives"
        reason = (
            f"{'both raters give' if len(constant_raters) == 2 else who} one label to all {n}"
            " items: kappa cannot tell that from chance"
        )
        return no_interval(None, n, reason, level=level)
    result = cohens_kappa(counts)
    point = min(1.0, max(-1.0, float(result.kappa)))
    no_bounds = too_few(n, "items") or (
        "the agreement is perfect: its variance is 0" if counts.trace() == n else None
    )
    if no_bounds is None and not float(result.var_kappa) > 0:
        no_bounds = "the large-sample variance is 0"
    if no_bounds:
        return no_interval(point, n, no_bounds, level=level)
    half_width = float(norm.ppf((1 + level) / 2) * result.std_kappa)
    lo, hi = max(-1.0, point - half_width), min(1.0, point + half_width)
    method = "Cohen's kappa, large-sample variance"
    return Interval(point, min(lo, point), max(hi, point), n, method, level)


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
    counts = np.array(agreement_table(first, second))
    if not counts.size:
        return no_interval(None, 0, "no item was rated by both", level=level)
    return wilson(int(counts.trace()), int(counts.sum()), level=level)


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
        then. No bounds where ``percentile_interval`` has none, and where every item is agreed on
        (no resample shows a disagreement).

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability; the package ``krippendorff``.
    R: irr::kripp.alpha.
    """
    import krippendorff

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
    point = min(1.0, float(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")))
    index_by_group = {group: k for k, group in enumerate(dict.fromkeys(rated_groups))}
    sums = np.zeros((n, len(labels) + 1))
    np.add.at(sums, [index_by_group[group] for group in rated_groups], _alpha_parts(counts))
    sums = sums[np.lexsort(sums.T)]  # in whichever order the items come
    alphas = GroupResamples(n, seed).values(lambda weights: _alphas(weights @ sums))
    agreed = "every item is agreed on: a resample has no spread to show" if point == 1.0 else None
    interval = percentile_interval(
        np.append(point, alphas[1:]),
        n,
        level=level,
        refusal=too_few(n, "items") or agreed,
        over="items",
        undefined="hold one label alone",
    )
    notes = [text for text in (note, interval.note) if text]
    return replace(interval, note="; ".join(notes) or None)


def _alpha_parts(counts: NDArray[np.int64]) -> Floats:
    """Return each item's counts of labels, then its observed agreement n (n - 1) / (m - 1)."""
    observed = (counts * (counts - 1)).sum(axis=1) / (counts.sum(axis=1) - 1)
    return np.column_stack([counts, observed])


def _alphas(totals: Floats) -> Floats:
    """Return alpha of each row of sums of ``_alpha_parts``; NaN of one label alone.

    Krippendorff (2011), section C: alpha = 1 - (N - 1) (N - sum o_cc) / (N^2 - sum n_c^2), where
    o_cc sums n (n - 1) / (m - 1) over the items, m the ratings of one. The coincidences of a
    resample are sums over its items, so all resamples are computed at once.
    """
    label_totals, observed_agreement = totals[:, :-1], totals[:, -1]
    n = label_totals.sum(axis=1)
    expected_disagreement = n**2 - (label_totals**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        alphas = 1 - (n - 1) * (n - observed_agreement) / expected_disagreement
    return np.where((label_totals > 0).sum(axis=1) > 1, alphas, np.nan)
