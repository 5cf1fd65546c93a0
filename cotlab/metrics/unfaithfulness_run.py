"""What unfaithfulness says of a run: rates with their intervals, and how far the classifiers agree with one another."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.program import over_run
from cotlab.core.types import Estimate, Facet
from cotlab.metrics import cards_unfaithfulness as cards
from cotlab.stats.intervals import Interval, no_interval, wilson

_NAME = cards.UNFAITHFULNESS.name
_NO_PAIR = "no item has a score by both classifiers"


class Agreement(NamedTuple):
    """Two classifiers on the same items: Cohen's kappa, McNemar's exact p, and the items that only one calls unfaithful."""

    kappa: Interval
    p: float
    only_first: int
    only_second: int


def item_scores(table: pd.DataFrame) -> pd.DataFrame:
    """One row a classifier and item: classifier, item_id, value (mean of the defined draws, NaN where none is), category.

    ``table`` holds scores as the store reads them; rows of other metrics are left out. Without a category column, or where
    an item has none, the category is "".
    """
    own = table[table["metric"] == _NAME]
    category = own["category"].fillna("") if "category" in own.columns else ""
    own = own.assign(classifier=own["facet"].map(_classifier), category=category)
    keys = ["classifier", "item_id", "category"]
    return own.groupby(keys, sort=True).agg(value=("value", "mean")).reset_index()


def rate(values: pd.Series, threshold: float) -> tuple[Interval, int]:
    """The share of the defined values that are at least ``threshold``, with its Wilson interval; and how many are undefined."""
    known = values.dropna()
    if known.empty:
        return no_interval(None, 0, "no item has a score by this classifier"), len(values)
    return wilson(int((known >= threshold).sum()), len(known)), len(values) - len(known)


def agree(first: Sequence[bool], second: Sequence[bool]) -> Agreement:
    """Cohen's kappa and McNemar's exact test of two classifiers' verdicts on the same items, in the same order.

    Raises
    ------
    ValueError
        If there is no item.

    References
    ----------
    statsmodels.stats.inter_rater.cohens_kappa; statsmodels.stats.contingency_tables.mcnemar.
    """
    from statsmodels.stats.contingency_tables import mcnemar
    from statsmodels.stats.inter_rater import cohens_kappa

    pairs = list(zip(first, second, strict=True))
    if not pairs:
        raise ValueError("two classifiers are compared on at least one item")
    cells = [[sum(pair == (a, b) for pair in pairs) for b in (True, False)] for a in (True, False)]
    p = float(mcnemar(cells, exact=True).pvalue)
    return Agreement(_kappa(cells, len(pairs), cohens_kappa), min(1.0, p), cells[0][1], cells[1][0])


def _kappa(cells: Sequence[Sequence[int]], n: int, cohens_kappa: Any) -> Interval:
    if max(cells[0][0], cells[1][1]) == n:
        return no_interval(None, n, "both classifiers give every item the same verdict: agreement by chance is 1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a standard error may not exist: then there is no interval
        found = cohens_kappa(cells)
    kappa, lo, hi = (float(value) for value in (found.kappa, found.kappa_low, found.kappa_upp))
    if not (math.isfinite(lo) and math.isfinite(hi)) or lo == hi:
        return no_interval(kappa, n, "one classifier gives every item the same verdict: kappa has no standard error")
    return Interval(kappa, max(-1.0, min(lo, kappa)), min(1.0, max(hi, kappa)), n, "asymptotic (Fleiss, Cohen, Everitt 1969)")


@over_run(cards.RATE, reads=(_NAME,))
def unfaithful_rate(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """The rate of each classifier at the run's threshold and over the sweep; by category at the run's threshold."""
    out = []
    shared = _shared_facets(table)
    scores = item_scores(table)
    own = float(options.get("threshold", cards.THRESHOLD))
    sweep = sorted({own, *(float(told) for told in options.get("thresholds", ()))})
    for classifier, group in scores.groupby("classifier", sort=True):
        place = shared[classifier]
        for threshold in sweep:
            out.append(_estimate(cards.RATE.name, place | {"threshold": f"{threshold:g}"}, *rate(group["value"], threshold)))
        named = group[group["category"] != ""]
        for category, part in named.groupby("category", sort=True):
            more = {"threshold": f"{own:g}", "category": str(category)}
            out.append(_estimate(cards.RATE.name, place | more, *rate(part["value"], own)))
    return out


@over_run(cards.KAPPA, reads=(_NAME,))
def classifier_kappa(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Cohen's kappa of each two classifiers at the run's threshold."""
    out = []
    for place, found, undefined in _pairs(table, options):
        kappa = no_interval(None, 0, _NO_PAIR) if found is None else found.kappa
        out.append(_estimate(cards.KAPPA.name, place, kappa, undefined))
    return out


@over_run(cards.MCNEMAR, reads=(_NAME,))
def classifier_mcnemar(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """McNemar's exact p of each two classifiers at the run's threshold."""
    out = []
    for place, found, undefined in _pairs(table, options):
        p = no_interval(None, 0, _NO_PAIR)
        if found is not None:
            one, other = (f"{k} only by {place[by]}" for k, by in ((found.only_first, "classifier"), (found.only_second, "other")))
            p = Interval(found.p, None, None, found.kappa.n, f"McNemar exact: {one}, {other}", reason="a p-value has no interval")
        out.append(_estimate(cards.MCNEMAR.name, place, p, undefined))
    return out


STATISTICS = (unfaithful_rate, classifier_kappa, classifier_mcnemar)


def _pairs(
    table: pd.DataFrame, options: Mapping[str, Any]
) -> list[tuple[dict[str, str], Agreement | None, int]]:
    """Each two classifiers: the facet, how they agree (None without a common item), and the items that lack a score."""
    threshold = float(options.get("threshold", cards.THRESHOLD))
    scores = item_scores(table)
    wide = scores.pivot(index="item_id", columns="classifier", values="value")
    out = []
    for first, second in combinations(sorted(wide.columns), 2):
        both = wide[[first, second]].dropna()
        verdicts = [(both[name] >= threshold).tolist() for name in (first, second)]
        place = {"classifier": str(first), "other": str(second), "threshold": f"{threshold:g}"}
        out.append((place, agree(*verdicts) if len(both) else None, len(wide) - len(both)))
    return out


def _classifier(facet: str) -> str:
    return str(json.loads(facet).get("classifier", ""))


def _shared_facets(table: pd.DataFrame) -> dict[str, dict[str, str]]:
    """For each classifier the pairs that all its facets hold."""
    found: dict[str, dict[str, str]] = {}
    for text in table.loc[table["metric"] == _NAME, "facet"].unique():
        told = json.loads(text)
        name = str(told.get("classifier", ""))
        found[name] = dict(found[name].items() & told.items()) if name in found else dict(told)
    return found


def _estimate(metric: str, place: Mapping[str, str], found: Interval, undefined: int) -> Estimate:
    group: Facet = tuple(sorted(place.items()))
    return Estimate(metric, group, found.point, found.lo, found.hi, found.level, found.n, undefined, found.method, "items",
                    found.reason)  # fmt: skip
