"""Compare stored runs with a base, item by item, from the store alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

import pandas as pd

from cotlab.analysis.paired import (
    RATE_METRIC,
    SCORE_METRIC,
    UNFAITHFUL_THRESHOLD,
    DirectionRow,
    PairedRow,
    adjust_p_values,
    direction_rows,
    mean_item_values,
    pair_runs,
    paired_rows,
)
from cotlab.analysis.plan_changes import Change, no_shared_metric_text, plan_changes
from cotlab.analysis.view import run_view
from cotlab.core.errors import ConfigError
from cotlab.core.keys import digest, to_json_value
from cotlab.core.registry import SCORERS
from cotlab.core.types import MetricCard, Plan
from cotlab.store import read
from cotlab.store.database import Store

_ITEM_VALUE_COLUMNS = ["metric", "facet", "item_id", "value", "n", "why"]
CORRECTION_NOTE = "Benjamini–Hochberg over all rows of this table"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One run against the base."""

    base: str
    """Id of the base run."""
    other: str
    """Id of the other run."""
    n_shared: int
    """Items that both runs scored."""
    n_only_base: int
    """Items that only the base scored."""
    n_only_other: int
    """Items that only the other run scored."""
    n_prompts: int
    """Distinct questions among the items that are matched."""
    n_changed_questions: int
    """Shared ids with another question in each run; they are never matched."""
    pairs: pd.DataFrame
    """The paired values, as ``cotlab.analysis.paired`` describes them."""
    rows: tuple[PairedRow, ...]
    """Over all items, a row a metric and facet."""
    metrics_only_base: tuple[str, ...]
    """Metrics of which only the base has some facet."""
    metrics_only_other: tuple[str, ...]
    """Metrics of which only the other run has some facet."""
    changes: tuple[Change, ...]
    """Where the plans differ."""
    seeds: tuple[int, int]
    """Seeds of both plans, the base first."""
    binary_metrics: frozenset[str]
    """Metrics whose values are 0 or 1."""


@dataclass(frozen=True, slots=True)
class ComparisonSet:
    """Several runs against one base."""

    base: str
    """Id of the base run."""
    comparisons: tuple[Comparison, ...]
    """One a run; ``adjusted`` of every row is over the rows of all of them."""
    directions: tuple[DirectionRow, ...]
    """How consistently the runs differ from the base."""


def compare_runs(
    store: Store,
    base: str,
    other_runs: Sequence[str],
    *,
    scorers: Sequence[str] = (),
    metrics: Sequence[str] = (),
    threshold: float = UNFAITHFUL_THRESHOLD,
    seed: int | None = None,
) -> ComparisonSet:
    """Compare runs with a base over the items that they share.

    Parameters
    ----------
    store : Store
    base : str
        Id of the run that the others are compared with.
    other_runs : sequence of str
        At least one id, each other than the base.
    scorers, metrics : sequences of str
        Only these; all where empty.
    threshold : float in [0, 1]
        From which a score of unfaithfulness counts as unfaithful.
    seed : int, optional
        Of the resampling; that of the base's plan where it is not given.

    Raises
    ------
    UnknownName
        For a run that is not in the store.
    ConfigError
        If a run is compared with itself, or shares no item or no metric with the base.
    """
    other_runs = list(dict.fromkeys(other_runs))
    if not other_runs or base in other_runs:
        raise ConfigError(
            f"Nothing to compare: name a base and at least one other run (the base is {base!r})."
        )
    if not 0 <= threshold <= 1:
        raise ConfigError(f"The threshold of unfaithfulness must lie in [0, 1], got {threshold:g}.")
    base_scores, *other_scores = (
        _RunScores.read(store, run, scorers, metrics, threshold) for run in (base, *other_runs)
    )
    seed = base_scores.plan.seed if seed is None else seed
    return combine_comparisons(
        [_compare_pair(base_scores, scores, seed) for scores in other_scores]
    )


def combine_comparisons(comparisons: Sequence[Comparison]) -> ComparisonSet:
    """Combine comparisons with one base: correct p over all of their rows, add directions."""
    adjusted_rows = iter(
        adjust_p_values([row for comparison in comparisons for row in comparison.rows])
    )
    adjusted_comparisons = tuple(
        replace(comparison, rows=tuple(islice(adjusted_rows, len(comparison.rows))))
        for comparison in comparisons
    )
    return ComparisonSet(
        adjusted_comparisons[0].base,
        adjusted_comparisons,
        direction_rows([comparison.rows for comparison in adjusted_comparisons]),
    )


def compare_by_category(
    store: Store, comparison_set: ComparisonSet, *, seed: int | None = None
) -> ComparisonSet:
    """Return the same comparisons with a row for each category, p corrected over all rows."""
    first = comparison_set.comparisons[0]
    seed = first.seeds[0] if seed is None else seed
    flag_metrics = frozenset[str]().union(*(c.binary_metrics for c in comparison_set.comparisons))
    category_comparisons = [
        replace(
            comparison,
            rows=paired_rows(
                comparison.pairs, binary_metrics=flag_metrics, seed=seed, by_category=True
            ),
        )
        for comparison in comparison_set.comparisons
    ]
    return replace(combine_comparisons(category_comparisons), directions=())


def metric_cards(plans: Sequence[Plan]) -> dict[str, MetricCard]:
    """Return the cards of the metrics that the plans' scorers give, by name."""
    names = dict.fromkeys(
        spec.name for plan in plans for spec in plan.scorers if spec.name in SCORERS
    )
    return {
        card.name: card
        for name in names
        for card in (
            *SCORERS[name].cards,
            *(statistic.card for statistic in SCORERS[name].statistics),
        )
    }


def comparison_json(comparison_set: ComparisonSet) -> dict[str, Any]:
    """Return everything but the single items, as JSON values."""
    return {
        "base": comparison_set.base,
        "family": CORRECTION_NOTE,
        "comparisons": [
            {
                "other": comparison.other,
                "items_shared": comparison.n_shared,
                "items_only_base": comparison.n_only_base,
                "items_only_other": comparison.n_only_other,
                "items_with_another_question": comparison.n_changed_questions,
                "prompts": comparison.n_prompts,
                "rows": [
                    to_json_value({**asdict(row), "values": list(row.values)})
                    for row in comparison.rows
                ],
                "metrics_only_base": list(comparison.metrics_only_base),
                "metrics_only_other": list(comparison.metrics_only_other),
                "changes": [asdict(change) for change in comparison.changes],
            }
            for comparison in comparison_set.comparisons
        ],
        "directions": [to_json_value(asdict(row)) for row in comparison_set.directions],
    }


@dataclass(frozen=True, slots=True)
class _RunScores:
    """Plan, items and values of one run."""

    run_id: str
    plan: Plan
    code_version: str
    items: pd.DataFrame
    values: pd.DataFrame

    @classmethod
    def read(
        cls,
        store: Store,
        run_id: str,
        scorers: Sequence[str],
        metrics: Sequence[str],
        threshold: float,
    ) -> _RunScores:
        view = run_view(store, run_id)
        draw_metrics = [
            name for name, card in metric_cards([view.plan]).items() if card.level == "draw"
        ]
        run_metrics = sorted(view.metrics.difference(draw_metrics))
        items = read.list_run_items(store, run_id)
        items = items[items["id"].isin(view.items_with(*run_metrics))]
        requested_metrics = {
            SCORE_METRIC if metric == RATE_METRIC else metric for metric in metrics
        } or set(run_metrics)
        tables = [
            mean_item_values(
                read.select_scores(
                    store, run_id, metrics=[metric], scorers=scorers or None, with_evidence=False
                ),
                threshold,
            )
            for metric in run_metrics
            if metric in requested_metrics
        ]
        values = pd.concat(tables or [pd.DataFrame(columns=_ITEM_VALUE_COLUMNS)], ignore_index=True)
        if metrics:
            values = values[values["metric"].isin(metrics)]
        return cls(run_id, view.plan, view.code_version, items, values)


def _compare_pair(base_scores: _RunScores, other_scores: _RunScores, seed: int) -> Comparison:
    items = match_items(base_scores.items, other_scores.items)
    is_shared = items["same"].notna()
    has_same_question = items["same"].map(lambda value: value is True)
    n_changed_questions = int((is_shared & ~has_same_question).sum())
    if not is_shared.any() or n_changed_questions == int(is_shared.sum()):
        raise ConfigError(
            f"Runs {base_scores.run_id!r} and {other_scores.run_id!r} share no item:"
            f" {base_scores.plan.suite} and {other_scores.plan.suite}. Items are matched by their"
            " id and question, so compare runs on one suite."
        )
    pairs = pair_runs(base_scores.values, other_scores.values, items)
    if pairs.empty:
        raise ConfigError(
            no_shared_metric_text(
                (base_scores.run_id, other_scores.run_id),
                (base_scores.plan, other_scores.plan),
                (base_scores.values, other_scores.values),
            )
        )
    flag_metrics = _flag_metrics([base_scores.plan, other_scores.plan])
    base_ids, other_ids = set(base_scores.items["id"]), set(other_scores.items["id"])
    return Comparison(
        base_scores.run_id,
        other_scores.run_id,
        int(is_shared.sum()),
        len(base_ids - other_ids),
        len(other_ids - base_ids),
        int(items[has_same_question]["prompt"].nunique()),
        n_changed_questions,
        pairs,
        paired_rows(pairs, binary_metrics=flag_metrics, seed=seed),
        _metrics_missing_in(base_scores.values, other_scores.values),
        _metrics_missing_in(other_scores.values, base_scores.values),
        plan_changes(
            base_scores.plan,
            other_scores.plan,
            {"code version": (base_scores.code_version, other_scores.code_version)},
        ),
        (base_scores.plan.seed, other_scores.plan.seed),
        flag_metrics,
    )


def _flag_metrics(plans: Sequence[Plan]) -> frozenset[str]:
    return frozenset(name for name, card in metric_cards(plans).items() if card.flag)


def match_items(base_items: pd.DataFrame, other_items: pd.DataFrame) -> pd.DataFrame:
    """Return the items of both runs with prompt and category.

    ``has_same_question`` is None where only one run has the item.
    """
    columns = ["id", "question", "category"]
    merged_items = base_items[columns].merge(
        other_items[columns], how="outer", on="id", suffixes=("", "_other")
    )
    item_ids = merged_items["id"].astype("str")
    questions = merged_items[["question", "question_other"]]
    base_prompts, other_prompts = (
        questions[side].map(_question_digest, na_action="ignore").astype(object)
        for side in questions.columns
    )
    is_in_both = questions.notna().all(axis=1)
    categories = merged_items["category"].fillna(merged_items["category_other"]).fillna("")
    return pd.DataFrame(
        {
            "item_id": item_ids,
            "prompt": base_prompts.fillna(other_prompts).fillna(item_ids).astype("str"),
            "category": categories.astype("str"),
            "same": (base_prompts == other_prompts).astype(object).where(is_in_both, None),
        }
    )


def _question_digest(question: str) -> str:
    """Return what distinguishes questions, also where only their digest is kept."""
    return question if question.startswith("sha256:") else f"sha256:{digest(question)}"


def _metrics_missing_in(values: pd.DataFrame, other_values: pd.DataFrame) -> tuple[str, ...]:
    facet_keys, other_facet_keys = (
        {*table[["metric", "facet"]].drop_duplicates().itertuples(index=False, name=None)}
        for table in (values, other_values)
    )
    return tuple(sorted({metric for metric, _ in facet_keys - other_facet_keys}))
