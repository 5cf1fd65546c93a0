"""Reliability as tables, from those of scores and estimates: parts by item, their pairs, their reasons."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from cotlab.analysis.tables.chains import ALWAYS_OWN
from cotlab.analysis.tables.reasons import in_common
from cotlab.core.types import Plan
from cotlab.figures.reliability import PARTS
from cotlab.metrics.composite.scorer import FEATURES, OPTIONS, PROFILES, SCORER_OF
from cotlab.stats.ranks import DECIMALS, FEWEST, spearman

SCORERS = ("composite", *SCORER_OF.values())
"""Any of them gives the page something to show."""
_OWN_METRIC = {"r_raw": "r_raw", "correct": "answer_correct", "weight": "weight_defined"}
"""What the composite scores under a metric of its own, not as a feature."""
METRICS = tuple(sorted({"feature", "diagnosis", *_OWN_METRIC.values(), *(metric for _, metric, _ in FEATURES.values())}))
"""What the page reads of every item."""
COLUMNS = ["item_id", "part", "metric", "facet", "value", "status", "reason", "evidence"]


def parts_of(plan: Plan) -> str:
    """The parts that the composite of a plan measures, as letters; "" where it has none."""
    spec = next((spec for spec in plan.scorers if spec.name == "composite"), None)
    return "" if spec is None else PROFILES[spec.params.get("profile", OPTIONS["profile"])]


def whose_chains(plan: Plan) -> str:
    """Whose chains the parts of a run are measured on, in words."""
    options = {spec.name: spec.params for spec in plan.scorers}
    inner = options.get("composite", {}).get("parts", {})
    told: dict[str, list[str]] = {"the model's own chains": [], "the suite's reference chains": []}
    for part, scorer in SCORER_OF.items():
        if scorer in options or part in parts_of(plan):
            chain = options.get(scorer, inner.get(scorer, {})).get("chain", "reference")
            own = scorer in ALWAYS_OWN or chain == "own"
            told["the model's own chains" if own else "the suite's reference chains"].append(part)
    return "Measured on " + "; on ".join(f"{whose}: {', '.join(found)}" for whose, found in told.items() if found) + "."


def part_scores(scores: pd.DataFrame, names: Sequence[str] = PARTS) -> pd.DataFrame:
    """One row for each item and part: from the composite's features where there are any, else from the part's own scorer.

    Parameters
    ----------
    scores : DataFrame
        As `cotlab.store.read.scores` gives it.
    names : sequence of str
        Features of the composite, ``r_raw``, ``correct`` and ``weight``.

    Returns
    -------
    DataFrame with ``COLUMNS``
        ``value`` is NaN where there is none; the columns metric and facet find the estimate of the same number.
    """
    facets = {text: json.loads(text) for text in scores["facet"].unique()}
    found = [_of_part(scores, facets, name).assign(part=name) for name in names]
    rows = pd.concat(found) if found else scores.assign(part="")
    return rows[COLUMNS].reset_index(drop=True)


def _of_part(scores: pd.DataFrame, facets: dict[str, dict[str, str]], name: str) -> pd.DataFrame:
    whole = scores[scores["step"].isna()]
    if name in _OWN_METRIC:
        rows = whole[whole["metric"] == _OWN_METRIC[name]]
    else:
        features = whole[whole["metric"] == "feature"]
        rows = features[features["facet"].map(lambda text: facets[text].get("feature") == name).astype(bool)]
    if rows.empty and name in FEATURES:
        scorer, metric, facet = FEATURES[name]
        own = whole[(whole["scorer"] == scorer) & (whole["metric"] == metric)]
        rows = own[own["facet"].map(lambda text: facet.items() <= facets[text].items()).astype(bool)]
    return rows.drop_duplicates("item_id")


def part_means(rows: pd.DataFrame, estimates: pd.DataFrame) -> pd.DataFrame:
    """The run's estimate of each part with the values behind it; a missing point says the commonest reason of its items."""
    known = {(str(r["metric"]), str(r["facet"])): r for r in estimates.to_dict("records")}
    found = []
    for part, group in rows.groupby("part", sort=False):
        estimate = known.get((str(group["metric"].iloc[0]), str(group["facet"].iloc[0])))
        if estimate is not None:
            why = next(iter(in_common(group["reason"].dropna())), None) if pd.isna(estimate["point"]) else None
            found.append({**estimate, "part": part, "values": group["value"].tolist(), "reason": why or estimate["reason"]})
    return pd.DataFrame(found)


def correlations(rows: pd.DataFrame) -> pd.DataFrame:
    """Spearman's rho of each two parts that were measured, over the items where both are defined."""
    wide = by_item(rows)
    parts = [part for part in PARTS if part in wide.columns and part != "r_raw"]
    found = []
    for one, other in combinations(parts, 2):
        both = wide[[one, other]].dropna()
        told = spearman(both[one].tolist(), both[other].tolist())
        same = [part for part in (one, other) if both[part].round(DECIMALS).nunique() == 1]
        reason = f"{' and '.join(same)} the same in all items" if told.n >= FEWEST and same else told.reason
        found.append((one, other, told.point, told.lo, told.hi, told.n, reason))
    return pd.DataFrame(found, columns=["one", "other", "point", "lo", "hi", "n", "reason"])


def by_item(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each item, a column for each part that was measured; NaN where it is undefined."""
    if rows.empty:
        return pd.DataFrame(index=pd.Index([], name="item_id"))
    wide = rows.pivot(index="item_id", columns="part", values="value")
    return wide[[part for part in PARTS if part in wide.columns]]


def item_rows(rows: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Each item with its parts, its diagnoses in words, and why parts are undefined."""
    wide = by_item(rows)
    fired = diagnoses(scores)
    fired = fired[fired["value"] == 1].groupby("item_id")["rule"].apply(list).to_dict()
    gone = rows[rows["value"].isna()]
    why = gone.assign(said=gone["part"] + ": " + gone["reason"].fillna("")).groupby("item_id")["said"].apply("; ".join)
    table = wide.reset_index().rename(columns={"item_id": "item"})
    items = table["item"].tolist()
    table["diagnosis"] = [", ".join(rule.replace("_", " ") for rule in fired.get(item, ())) for item in items]
    table["why n/a"] = [str(why.get(item, "")) for item in items]
    return table


def item_part_rows(rows: pd.DataFrame, item_id: str) -> pd.DataFrame:
    """The parts of one item beside the suite's means: part, value, mean, status, reason."""
    own = rows[rows["item_id"] == item_id]
    means = rows.groupby("part")["value"].mean()
    return own.assign(mean=own["part"].map(means))[["part", "value", "mean", "status", "reason"]]


def diagnoses(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores of the metric ``diagnosis`` with a column for their rule."""
    return _with_rule(scores[scores["metric"] == "diagnosis"])


def diagnosis_means(scores: pd.DataFrame, estimates: pd.DataFrame) -> pd.DataFrame:
    """The rate of each rule as the run estimates it; one without a point says the commonest reason of its items."""
    found = _with_rule(estimates[estimates["metric"] == "diagnosis"])
    if found.empty:
        return found
    own = diagnoses(scores)
    why = {rule: next(iter(in_common(g)), "") for rule, g in own[own["value"].isna()].groupby("rule")["reason"]}
    told: list[Any] = [
        why.get(rule) or reason if pd.isna(point) else reason
        for rule, reason, point in zip(found["rule"], found["reason"], found["point"], strict=True)
    ]
    return found.assign(reason=told)


def _with_rule(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(rule=pd.Series([json.loads(text).get("rule", "") for text in table["facet"]], table.index, dtype="str"))
