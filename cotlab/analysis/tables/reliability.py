"""Tables of reliability, from scores and estimates: parts by item, their pairs, reasons."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from cotlab.analysis.tables.chains import MODEL_CHAIN_SCORERS
from cotlab.analysis.tables.declare import count_reasons
from cotlab.core.types import Plan
from cotlab.figures.reliability import COMPONENT_ORDER
from cotlab.figures.robustness import scale_top
from cotlab.metrics.composite.scorer import FEATURES, PROFILES, SCORER_OF, composite
from cotlab.stats.correlation import DECIMALS, MIN_PAIRS, spearman

SCORERS = ("composite", *SCORER_OF.values())
"""Any of them gives the page something to show."""
_COMPOSITE_METRICS = {"r_raw": "r_raw", "correct": "answer_correct", "weight": "weight_defined"}
"""What the composite scores under a metric of its own, not as a feature."""
METRICS = tuple(
    sorted(
        {
            "feature",
            "diagnosis",
            *_COMPOSITE_METRICS.values(),
            *(metric for _, metric, _ in FEATURES.values()),
        }
    )
)
"""What the page reads of every item."""
COLUMNS = ["item_id", "part", "metric", "facet", "value", "status", "reason", "evidence"]


def composite_components(plan: Plan) -> str:
    """Return the parts that the composite of a plan measures, as letters; "" without one."""
    spec = next((spec for spec in plan.scorers if spec.name == "composite"), None)
    return (
        "" if spec is None else PROFILES[spec.params.get("profile", composite.options["profile"])]
    )


def chain_sources_text(plan: Plan) -> str:
    """Say whose chains the parts of a run are measured on."""
    options = {spec.name: spec.params for spec in plan.scorers}
    inner = options.get("composite", {}).get("parts", {})
    by_source: dict[str, list[str]] = {
        "the model's own chains": [],
        "the suite's reference chains": [],
    }
    for part, scorer in SCORER_OF.items():
        if scorer in options or part in composite_components(plan):
            chain = options.get(scorer, inner.get(scorer, {})).get("chain", "reference")
            from_model = scorer in MODEL_CHAIN_SCORERS or chain == "own"
            by_source[
                "the model's own chains" if from_model else "the suite's reference chains"
            ].append(part)
    return (
        "Measured on "
        + "; on ".join(
            f"{whose}: {', '.join(components)}"
            for whose, components in by_source.items()
            if components
        )
        + "."
    )


def component_scores(scores: pd.DataFrame, names: Sequence[str] = COMPONENT_ORDER) -> pd.DataFrame:
    """Return one row for each item and part.

    A part is the composite's feature where there is one, else the score of its own scorer.

    Parameters
    ----------
    scores : DataFrame
        As `cotlab.store.read.scores` gives it.
    names : sequence of str
        Features of the composite, ``r_raw``, ``correct`` and ``weight``.

    Returns
    -------
    DataFrame with ``COLUMNS``
        ``value`` is NaN where there is none; the columns metric and facet find the estimate of the
        same number.
    """
    facets = {text: json.loads(text) for text in scores["facet"].unique()}
    frames = [_component_rows(scores, facets, name).assign(part=name) for name in names]
    rows = pd.concat(frames) if frames else scores.assign(part="")
    return rows[COLUMNS].reset_index(drop=True)


def _component_rows(
    scores: pd.DataFrame, facets: dict[str, dict[str, str]], name: str
) -> pd.DataFrame:
    chain_scores = scores[scores["step"].isna()]
    if name in _COMPOSITE_METRICS:
        rows = chain_scores[chain_scores["metric"] == _COMPOSITE_METRICS[name]]
    else:
        features = chain_scores[chain_scores["metric"] == "feature"]
        rows = features[
            features["facet"].map(lambda text: facets[text].get("feature") == name).astype(bool)
        ]
    if rows.empty and name in FEATURES:
        scorer, metric, facet = FEATURES[name]
        scorer_rows = chain_scores[
            (chain_scores["scorer"] == scorer) & (chain_scores["metric"] == metric)
        ]
        rows = scorer_rows[
            scorer_rows["facet"]
            .map(lambda text: facet.items() <= facets[text].items())
            .astype(bool)
        ]
    return rows.drop_duplicates("item_id")


def component_means(rows: pd.DataFrame, estimates: pd.DataFrame) -> pd.DataFrame:
    """Return the run's estimate of each part with its values; no point has the commonest reason."""
    known = {(str(r["metric"]), str(r["facet"])): r for r in estimates.to_dict("records")}
    records = []
    for part, group in rows.groupby("part", sort=False):
        estimate = known.get((str(group["metric"].iloc[0]), str(group["facet"].iloc[0])))
        if estimate is not None:
            reason = (
                next(iter(count_reasons(group["reason"].dropna())), None)
                if pd.isna(estimate["point"])
                else None
            )
            records.append(
                {
                    **estimate,
                    "part": part,
                    "values": group["value"].tolist(),
                    "reason": reason or estimate["reason"],
                }
            )
    return pd.DataFrame(records)


def component_correlations(rows: pd.DataFrame) -> pd.DataFrame:
    """Return Spearman's rho of each two parts, over the items where both are defined."""
    wide = component_table(rows)
    components = [part for part in COMPONENT_ORDER if part in wide.columns and part != "r_raw"]
    pairs = []
    for first, second in combinations(components, 2):
        both = wide[[first, second]].dropna()
        result = spearman(both[first].tolist(), both[second].tolist())
        same = [part for part in (first, second) if both[part].round(DECIMALS).nunique() == 1]
        reason = (
            f"{' and '.join(same)} the same in all items"
            if result.n >= MIN_PAIRS and same
            else result.reason
        )
        pairs.append((first, second, result.point, result.lo, result.hi, result.n, reason))
    return pd.DataFrame(pairs, columns=["one", "other", "point", "lo", "hi", "n", "reason"])


def component_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row an item and a column a part that was measured; NaN where undefined."""
    if rows.empty:
        return pd.DataFrame(index=pd.Index([], name="item_id"))
    wide = rows.pivot(index="item_id", columns="part", values="value")
    return wide[[part for part in COMPONENT_ORDER if part in wide.columns]]


def item_reliability_rows(rows: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return each item with its parts, its diagnoses in words, and why parts are undefined."""
    wide = component_table(rows)
    fired = diagnosis_scores(scores)
    fired = fired[fired["value"] == 1].groupby("item_id")["rule"].apply(list).to_dict()
    gone = rows[rows["value"].isna()]
    reasons = (
        gone.assign(said=gone["part"] + ": " + gone["reason"].fillna(""))
        .groupby("item_id")["said"]
        .apply("; ".join)
    )
    table = wide.reset_index().rename(columns={"item_id": "item"})
    items = table["item"].tolist()
    table["diagnosis"] = [
        ", ".join(rule.replace("_", " ") for rule in fired.get(item, ())) for item in items
    ]
    table["why n/a"] = [str(reasons.get(item, "")) for item in items]
    return table


def item_component_rows(rows: pd.DataFrame, item_id: str) -> pd.DataFrame:
    """Return the parts of one item with the suite's means: part, value, mean, status, reason."""
    item_scores = rows[rows["item_id"] == item_id]
    means = rows.groupby("part")["value"].mean()
    return item_scores.assign(mean=item_scores["part"].map(means))[
        ["part", "value", "mean", "status", "reason"]
    ]


def diagnosis_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of the metric ``diagnosis`` with a column for their rule."""
    return _with_rule(scores[scores["metric"] == "diagnosis"])


def diagnosis_means(scores: pd.DataFrame, estimates: pd.DataFrame) -> pd.DataFrame:
    """Return the run's rate of each rule; one without a point has the commonest reason."""
    rates = _with_rule(estimates[estimates["metric"] == "diagnosis"])
    if rates.empty:
        return rates
    item_scores = diagnosis_scores(scores)
    common_reasons = {
        rule: next(iter(count_reasons(g)), "")
        for rule, g in item_scores[item_scores["value"].isna()].groupby("rule")["reason"]
    }
    reasons: list[Any] = [
        common_reasons.get(rule) or reason if pd.isna(point) else reason
        for rule, reason, point in zip(rates["rule"], rates["reason"], rates["point"], strict=True)
    ]
    return rates.assign(reason=reasons)


def _with_rule(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(
        rule=pd.Series(
            [json.loads(text).get("rule", "") for text in table["facet"]], table.index, dtype="str"
        )
    )


FLAGS = frozenset({"perturbed_answer_change"})
"""Measures that are yes or no for each draw."""
CHARTED_METRICS = ("robustness", "perturbed_answer_change")


def with_perturbation(table: pd.DataFrame) -> pd.DataFrame:
    """Add a column perturbation to scores or estimates, "" where they have none."""
    names = {text: json.loads(text).get("perturbation", "") for text in table["facet"].unique()}
    return table.assign(perturbation=[names[text] for text in table["facet"]])


def perturbation_table(scores: pd.DataFrame, means: pd.DataFrame) -> pd.DataFrame:
    """Return R and answer changes of each perturbation; no point has the commonest reason."""
    scored = with_perturbation(scores[scores["metric"].isin(CHARTED_METRICS)])
    gone = scored[scored["value"].isna()].groupby(["metric", "perturbation"])["reason"]
    common_reasons = {
        (str(metric), str(name)): next(iter(count_reasons(reasons)), None)
        for (metric, name), reasons in gone
    }
    estimates = with_perturbation(means[means["metric"].isin(CHARTED_METRICS)])
    rows = zip(
        estimates["metric"],
        estimates["perturbation"],
        estimates["reason"],
        estimates["point"],
        strict=True,
    )
    return estimates.assign(
        reason=[common_reasons.get((m, p)) or r if pd.isna(point) else r for m, p, r, point in rows]
    )


def item_step_means(scores: pd.DataFrame, perturbation: str) -> pd.DataFrame:
    """Return each item's steps under a perturbation: item_id, step, mean value, draws, reason."""
    scores = scores[(scores["perturbation"] == perturbation) & scores["step"].notna()]
    means = scores.groupby(["item_id", "step"], sort=True).agg(
        value=("value", "mean"), draws=("value", "count"), reason=("reason", "first")
    )
    return means.reset_index()


def item_cell_table(means: pd.DataFrame, measure: str, items: list[str]) -> pd.DataFrame:
    """Return some items against positions, in that order, on the scale of all items."""
    order = {name: i for i, name in enumerate(items)}
    part = means[means["item_id"].isin(items)].sort_values(
        "item_id", key=lambda ids: ids.map(order), kind="stable"
    )
    return part.assign(metric=measure, top=scale_top(measure, means["value"].dropna()))
