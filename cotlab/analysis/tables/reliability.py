"""Tables of reliability, from scores and estimates: parts by item, their pairs, reasons."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pandas as pd

from cotlab.analysis.tables.declare import count_reasons, with_common_reasons
from cotlab.analysis.view import facet_column, with_facet_columns
from cotlab.core.types import CHAIN_ORIGINS, Plan
from cotlab.figures.reliability import COMPONENT_ORDER
from cotlab.figures.robustness import colour_scale_maximum
from cotlab.metrics.composite import (
    COMPONENTS_BY_PROFILE,
    FEATURE_SOURCES,
    SCORER_BY_COMPONENT,
    composite,
)
from cotlab.run.scored_chain import MODEL_CHAIN_SCORERS
from cotlab.stats.correlation import MIN_PAIRS, TIE_DECIMALS, spearman

RELIABILITY_SCORERS = ("composite", *SCORER_BY_COMPONENT.values())
"""The page needs scores of any of these scorers."""
_COMPOSITE_METRICS = {
    "r_raw": "r_raw",
    "correct": "answer_correct",
    "weight": "weight_defined",
    "checked": "weight_checked",
}
"""What the composite scores under a metric of its own, not as a feature."""
RELIABILITY_METRICS = tuple(
    sorted(
        {
            "feature",
            "diagnosis",
            *_COMPOSITE_METRICS.values(),
            *(metric for _, metric, _ in FEATURE_SOURCES.values()),
        }
    )
)
"""What the page reads of every item."""
COMPONENT_COLUMNS = ["item_id", "part", "metric", "facet", "value", "status", "reason", "evidence"]


def composite_components(plan: Plan) -> str:
    """Return the parts that the composite of a plan measures, as letters; "" without one."""
    spec = next((spec for spec in plan.scorers if spec.name == "composite"), None)
    return (
        ""
        if spec is None
        else COMPONENTS_BY_PROFILE[spec.params.get("profile", composite.options["profile"])]
    )


def chain_sources_text(plan: Plan) -> str:
    """Return the sentence on which chains the parts of a run are measured on."""
    options = {spec.name: spec.params for spec in plan.scorers}
    composite_options = options.get("composite", {}).get("parts", {})
    model_chain_components: list[str] = []
    suite_chain_components: list[str] = []
    for component, scorer in SCORER_BY_COMPONENT.items():
        if scorer in options or component in composite_components(plan):
            chain = options.get(scorer, composite_options.get(scorer, {})).get("chain", "reference")
            from_model = scorer in MODEL_CHAIN_SCORERS or chain == "own"
            (model_chain_components if from_model else suite_chain_components).append(component)
    sources = (
        (CHAIN_ORIGINS["own"], model_chain_components),
        (CHAIN_ORIGINS["reference"], suite_chain_components),
    )
    sentences = [
        f"{source}: {', '.join(components)}" for source, components in sources if components
    ]
    return f"Measured on {'; on '.join(sentences)}."


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
    DataFrame with ``COMPONENT_COLUMNS``, without evidence where the scores have none
        ``value`` is NaN where there is none; the columns metric and facet find the estimate of the
        same number.
    """
    chain_scores = scores[scores["step"].isna()]
    chain_scores = chain_scores.assign(feature=facet_column(chain_scores, "feature"))
    frames = [_component_rows(chain_scores, name).assign(part=name) for name in names]
    rows = pd.concat(frames) if frames else scores.assign(part="")
    columns = [name for name in COMPONENT_COLUMNS if name in rows.columns]
    return rows[columns].reset_index(drop=True)


def _component_rows(scores: pd.DataFrame, name: str) -> pd.DataFrame:
    if name in _COMPOSITE_METRICS:
        rows = scores[scores["metric"] == _COMPOSITE_METRICS[name]]
    else:
        rows = scores[(scores["metric"] == "feature") & (scores["feature"] == name)]
    if rows.empty and name in FEATURE_SOURCES:
        scorer, metric, facet = FEATURE_SOURCES[name]
        rows = scores[(scores["scorer"] == scorer) & (scores["metric"] == metric)]
        for key, value in facet.items():
            rows = rows[facet_column(rows, key) == value]
    return rows.drop_duplicates("item_id")


def component_means(rows: pd.DataFrame, estimates: pd.DataFrame) -> pd.DataFrame:
    """Return the run's estimate of each part with its values; no point has the commonest reason."""
    estimate_by_key = {
        (str(row["metric"]), str(row["facet"])): row for row in estimates.to_dict("records")
    }
    records = []
    for component, group in rows.groupby("part", sort=False):
        estimate = estimate_by_key.get((str(group["metric"].iloc[0]), str(group["facet"].iloc[0])))
        if estimate is not None:
            reasons = count_reasons(group["reason"].dropna() if pd.isna(estimate["point"]) else ())
            reason = next(iter(reasons), None) or estimate["reason"]
            values = group["value"].tolist()
            records.append({**estimate, "part": component, "values": values, "reason": reason})
    return pd.DataFrame(records)


def component_correlations(rows: pd.DataFrame) -> pd.DataFrame:
    """Return Spearman's rho of each two parts, over the items where both are defined."""
    item_components = component_table(rows)
    components = [
        component
        for component in COMPONENT_ORDER
        if component in item_components.columns and component != "r_raw"
    ]
    pairs = []
    for first, second in combinations(components, 2):
        shared_items = item_components[[first, second]].dropna()
        result = spearman(shared_items[first].tolist(), shared_items[second].tolist())
        constant_components = [
            component
            for component in (first, second)
            if shared_items[component].round(TIE_DECIMALS).nunique() == 1
        ]
        reason = (
            f"{' and '.join(constant_components)} the same in all items"
            if result.n >= MIN_PAIRS and constant_components
            else result.reason
        )
        pairs.append((first, second, result.point, result.lo, result.hi, result.n, reason))
    return pd.DataFrame(pairs, columns=["one", "other", "point", "lo", "hi", "n", "reason"])


def component_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row an item and a column a part that was measured; NaN where undefined."""
    if rows.empty:
        return pd.DataFrame(index=pd.Index([], name="item_id"))
    item_components = rows.pivot(index="item_id", columns="part", values="value")
    return item_components[
        [component for component in COMPONENT_ORDER if component in item_components.columns]
    ]


def item_reliability_rows(rows: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return each item with its parts, its diagnoses as text, and why parts are undefined.

    Beside r_raw stands ``checked``, the share of its weight that could check the chain: NaN in runs
    of earlier versions.
    """
    item_components = component_table(rows)
    diagnoses = diagnosis_scores(scores)
    diagnoses = diagnoses[diagnoses["value"] == 1]
    rules_by_item = (
        diagnoses["rule"].str.replace("_", " ").groupby(diagnoses["item_id"]).apply(", ".join)
    )
    undefined_rows = rows[rows["value"].isna()]
    reasons_by_item = undefined_rows["part"] + ": " + undefined_rows["reason"].fillna("")
    reasons_by_item = reasons_by_item.groupby(undefined_rows["item_id"]).apply("; ".join)
    checked_share = component_scores(scores, ("checked",)).set_index("item_id")["value"]
    if "r_raw" in item_components.columns:
        item_components = item_components.assign(checked=checked_share.astype(float))
    table = item_components.reset_index().rename(columns={"item_id": "item"})
    for column, texts in (("diagnosis", rules_by_item), ("why n/a", reasons_by_item)):
        table[column] = [str(texts.get(item, "")) for item in table["item"]]
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
    return with_facet_columns(scores[scores["metric"] == "diagnosis"], "rule")


def diagnosis_means(scores: pd.DataFrame, estimates: pd.DataFrame) -> pd.DataFrame:
    """Return the run's rate of each rule; one without a point has the commonest reason."""
    return with_common_reasons(diagnosis_scores(estimates), diagnosis_scores(scores), ["rule"])


FLAG_METRICS = frozenset({"perturbed_answer_change"})
"""Measures that are yes or no for each draw."""
CHARTED_METRICS = ("robustness", "perturbed_answer_change")


def with_perturbation(table: pd.DataFrame) -> pd.DataFrame:
    """Add a column perturbation to scores or estimates, "" where they have none."""
    return with_facet_columns(table, "perturbation")


def perturbation_table(scores: pd.DataFrame, means: pd.DataFrame) -> pd.DataFrame:
    """Return R and answer changes of each perturbation; no point has the commonest reason."""
    item_scores, estimates = (
        with_perturbation(table[table["metric"].isin(CHARTED_METRICS)]) for table in (scores, means)
    )
    return with_common_reasons(estimates, item_scores, ["metric", "perturbation"])


def item_step_means(scores: pd.DataFrame, perturbation: str) -> pd.DataFrame:
    """Return each item's steps under a perturbation: item_id, step, mean value, draws, reason."""
    scores = scores[(scores["perturbation"] == perturbation) & scores["step"].notna()]
    means = scores.groupby(["item_id", "step"], sort=True).agg(
        value=("value", "mean"), draws=("value", "count"), reason=("reason", "first")
    )
    return means.reset_index()


def item_cell_table(means: pd.DataFrame, measure: str, items: list[str]) -> pd.DataFrame:
    """Return some items against positions, in that order, on the scale of all items."""
    item_order = {name: i for i, name in enumerate(items)}
    item_rows = means[means["item_id"].isin(items)].sort_values(
        "item_id", key=lambda ids: ids.map(item_order), kind="stable"
    )
    return item_rows.assign(
        metric=measure, top=colour_scale_maximum(measure, means["value"].dropna())
    )
