"""Unfaithfulness as tables, from the scores of several runs: one row a point."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import pandas as pd

from cotlab.analysis.paired import SCORE_METRIC, UNFAITHFUL_THRESHOLD
from cotlab.analysis.tables.comparison import AxisPosition, position_label
from cotlab.analysis.view import facet_column
from cotlab.figures.style import ALL_CLASSIFIERS
from cotlab.metrics.estimates import with_clusters_as_items
from cotlab.stats.agreement import cohen_kappa
from cotlab.stats.intervals import (
    Interval,
    interval_columns,
    log_ratio_interval,
    no_interval,
    t_interval,
    wilson,
)
from cotlab.stats.paired_rates import mcnemar

SIZE_UNITS = {"chain_tokens": "tokens", "chain_characters": "characters", "chain_steps": "steps"}
RATIO_METRIC = "process_result_ratio"
PROCESS_METRIC = "process_words"
RESULT_METRIC = "result_words"
JUDGE_METRIC = "judge_score"
UNFAITHFULNESS_METRICS = (SCORE_METRIC, *SIZE_UNITS, RATIO_METRIC, JUDGE_METRIC)
UNFAITHFULNESS_SCORERS = ("unfaithfulness", "judge")
"""The figures need scores of any of these scorers."""
CLASSIFIER_ORDER = ("hint", "combined", "truncation", "early_answer", "process_result")
"""Classifiers in order of display; the first is the one that names what moved an answer."""
MAX_ROWS_SIDE_BY_SIDE = 16
"""Rows of a figure of all classifiers up to which it is shown first."""
POINT_COLUMNS = [
    "group",
    "at",
    "point",
    "lo",
    "hi",
    "n",
    "n_undefined",
    "method",
    "confidence",
    "reason",
    "values",
]
SWEEP_THRESHOLDS = tuple(i / 20 for i in range(21))
"""Thresholds of the sweep, each 0.05."""


def classifier_names(values: pd.DataFrame) -> list[str]:
    """Return the classifiers that scored, the default one first."""
    names = set(values[values["metric"] == SCORE_METRIC]["name"])
    return sorted(names, key=lambda name: ([*CLASSIFIER_ORDER, name].index(name), name))


def graded_classifiers(values: pd.DataFrame) -> list[str]:
    """Return the classifiers with a score between 0 and 1, so that their rate has a threshold."""
    scores = values[(values["metric"] == SCORE_METRIC) & values["value"].between(0, 1, "neither")]
    graded = set(scores["name"])
    return [name for name in classifier_names(values) if name in graded]


def classifier_choices(names: Sequence[str], n_runs: int) -> list[str]:
    """Return what the rates of runs may be drawn of, the default first: all side by side.

    Where that would be more than ``MAX_ROWS_SIDE_BY_SIDE`` rows, the default is the first one.
    """
    if len(names) < 2:
        return list(names)
    if n_runs * len(names) > MAX_ROWS_SIDE_BY_SIDE:
        return [*names, ALL_CLASSIFIERS]
    return [ALL_CLASSIFIERS, *names]


def collect_item_values(
    scores: Mapping[str, pd.DataFrame],
    categories: Mapping[str, Mapping[str, str]],
    clusters: Mapping[str, Mapping[str, str]],
) -> pd.DataFrame:
    """Return one row a run, metric, named facet and item; the items of one cluster are one.

    Returns
    -------
    DataFrame
        run, metric, name (the classifier's or the judge's, "" for others), item_id, category, value
        (mean of the defined draws, NaN where there is none), why.
    """
    frames = []
    for run, table in scores.items():
        rows = table[table["metric"].isin(UNFAITHFULNESS_METRICS)]
        names = facet_column(rows, "classifier") + facet_column(rows, "judge")
        item_categories = [categories.get(run, {}).get(item, "") for item in rows["item_id"]]
        rows = rows.assign(name=names, category=item_categories)
        rows = with_clusters_as_items(rows, clusters.get(run, {}))
        means = (
            rows.groupby(["metric", "name", "item_id"], sort=True)
            .agg(value=("value", "mean"), why=("reason", "first"), category=("category", "first"))
            .reset_index()
        )
        frames.append(means.assign(run=run))
    columns = ["run", "metric", "name", "item_id", "category", "value", "why"]
    return pd.concat(frames or [pd.DataFrame(columns=columns)], ignore_index=True)[columns]


def rate_points(
    values: pd.DataFrame,
    positions: Mapping[str, AxisPosition],
    classifier: str,
    threshold: float = UNFAITHFUL_THRESHOLD,
) -> pd.DataFrame:
    """Return the share of each run's items at or above the threshold, with a Wilson interval."""
    classifier_scores = values[(values["metric"] == SCORE_METRIC) & (values["name"] == classifier)]
    return _point_rows(
        [
            (position, _unfaithful_rate(run_values, threshold), run_values)
            for position, run_values in _values_by_position(classifier_scores, positions)
        ]
    )


def classifier_points(
    values: pd.DataFrame,
    positions: Mapping[str, AxisPosition],
    classifier: str,
    threshold: float = UNFAITHFUL_THRESHOLD,
) -> pd.DataFrame:
    """Return the rates of one classifier, or of ``ALL_CLASSIFIERS`` with these along the axis.

    The column ``classifier`` names the one, and is "all" for all of them.
    """
    if classifier != ALL_CLASSIFIERS:
        points = rate_points(values, positions, classifier, threshold)
        return points.assign(classifier=classifier)
    frames = []
    for name in classifier_names(values):
        points = rate_points(values, positions, name, threshold)
        pairs = zip(points["group"], points["at"], strict=True)
        groups = [" · ".join(filter(None, dict.fromkeys(pair))) for pair in pairs]
        frames.append(points.assign(group=groups, at=name))
    return pd.concat(frames, ignore_index=True).assign(classifier=classifier)


def sweep_points(
    values: pd.DataFrame, positions: Mapping[str, AxisPosition], classifier: str, threshold: float
) -> pd.DataFrame:
    """Return this share by run at each of ``SWEEP_THRESHOLDS`` and at the chosen threshold."""
    classifier_scores = values[(values["metric"] == SCORE_METRIC) & (values["name"] == classifier)]
    runs = [
        (AxisPosition(position_label(run_position, positions), ""), run_values)
        for run_position, run_values in _values_by_position(classifier_scores, positions)
    ]
    thresholds = sorted({*SWEEP_THRESHOLDS, threshold})
    table = _point_rows(
        [
            (position, _unfaithful_rate(run_values, swept_threshold), run_values)
            for position, run_values in runs
            for swept_threshold in thresholds
        ]
    )
    # behind a rate at a threshold no single value stands
    return table.assign(
        threshold=thresholds * len(runs), chosen=threshold, scores=table["values"], values=None
    )


def category_points(
    values: pd.DataFrame, positions: Mapping[str, AxisPosition], classifier: str, threshold: float
) -> pd.DataFrame:
    """Return the same share within each category, by run."""
    classifier_scores = values[
        (values["metric"] == SCORE_METRIC)
        & (values["name"] == classifier)
        & (values["category"] != "")
    ]
    rows = [
        (
            AxisPosition(position_label(run_position, positions), str(category)),
            _unfaithful_rate(run_values, threshold),
            run_values,
        )
        for category, category_values in classifier_scores.groupby("category", sort=True)
        for run_position, run_values in _values_by_position(category_values, positions)
    ]
    return _point_rows(rows)


def classifier_kappa_pairs(
    values: pd.DataFrame, threshold: float = UNFAITHFUL_THRESHOLD
) -> pd.DataFrame:
    """Return Cohen's kappa and McNemar's exact test of each two classifiers.

    Responses of several runs to the same items are not independent: there kappa has no interval,
    and nothing is tested.
    """
    score_values = values[values["metric"] == SCORE_METRIC]
    values_by_classifier = score_values.pivot_table(
        index=["run", "item_id"], columns="name", values="value"
    )
    rows = []
    for first_name, second_name in combinations(sorted(values_by_classifier.columns), 2):
        shared_items = values_by_classifier[[first_name, second_name]].dropna()
        first = (shared_items[first_name] >= threshold).tolist()
        second = (shared_items[second_name] >= threshold).tolist()
        kappa, test_note = cohen_kappa(first, second), ""
        if shared_items.empty:
            kappa = replace(kappa, reason="no response was scored by both")
        elif not shared_items.index.get_level_values("item_id").has_duplicates:
            test = mcnemar(first, second)
            p = "n/a" if test.p is None else f"{test.p:.3g}"
            counts_text = (
                f"Only {first_name}: {test.first_only}; only {second_name}: {test.second_only}"
            )
            test_note = f"{counts_text}; McNemar exact p = {p}"
        elif kappa.point is not None:
            reason = "the same items in several runs are not independent: choose one run"
            kappa = no_interval(kappa.point, kappa.n, reason)
        reason = (kappa.reason or "").replace("the first rater", first_name)
        reason = reason.replace("the second rater", second_name)
        interval = (kappa.point, kappa.lo, kappa.hi, kappa.n, kappa.method, reason or None)
        rows.append((first_name, second_name, *interval, test_note))
    columns = ["one", "other", "point", "lo", "hi", "n", "method", "reason", "mcnemar"]
    return pd.DataFrame(rows, columns=columns)


def size_points(
    values: pd.DataFrame, positions: Mapping[str, AxisPosition], metric: str
) -> pd.DataFrame:
    """Return the mean of one of ``SIZE_UNITS`` in each run with its t interval."""
    size_values = values[values["metric"] == metric]
    rows = [
        (position, t_interval(run_values["value"].dropna().tolist()), run_values)
        for position, run_values in _values_by_position(size_values, positions)
    ]
    return _point_rows(rows).assign(measure=SIZE_UNITS[metric])


def ratio_points(values: pd.DataFrame, positions: Mapping[str, AxisPosition]) -> pd.DataFrame:
    """Return the geometric mean of process over result words in each run.

    ``n_zero`` counts items without a ratio above 0.
    """
    rows, n_zero = [], []
    for position, run_values in _values_by_position(
        values[values["metric"] == RATIO_METRIC], positions
    ):
        ratios = run_values["value"].dropna().tolist()
        rows.append((position, log_ratio_interval(ratios), run_values))
        n_zero.append(len(run_values) - sum(value > 0 for value in ratios))
    return _point_rows(rows).assign(n_zero=n_zero)


def judge_points(
    values: pd.DataFrame,
    positions: Mapping[str, AxisPosition],
    stored_intervals: Mapping[tuple[str, str], Interval],
) -> pd.DataFrame:
    """Return the mean score of each judge in each run, as stored or over items.

    With a single judge, ``code`` is the index of a group among all groups, so that its colour is
    that of figures with more groups.
    """
    judge_values = values[values["metric"] == JUDGE_METRIC]
    rows = []
    has_several_judges = judge_values["name"].nunique() > 1
    for (run, judge), run_values in judge_values[judge_values["run"].isin(positions)].groupby(
        ["run", "name"], sort=False
    ):
        mean = stored_intervals.get((run, judge)) or t_interval(
            run_values["value"].dropna().tolist()
        )
        position = positions[run]
        rows.append(
            (
                AxisPosition(judge if has_several_judges else position.group, position.at),
                mean,
                run_values,
            )
        )
    rank_by_position = {position.at: k for k, position in enumerate(positions.values())}
    result = _point_rows(sorted(rows, key=lambda row: rank_by_position[row[0].at]))
    groups = list(dict.fromkeys(position.group for position in positions.values()))
    has_known_groups = set(result["group"]) <= set(groups)
    return (
        result.assign(code=[groups.index(name) for name in result["group"]])
        if has_known_groups
        else result
    )


def stored_judge_means(run: str, estimates: pd.DataFrame) -> dict[tuple[str, str], Interval]:
    """Return the stored mean of each judge of a run, by run and judge."""
    rows = estimates[estimates["metric"] == "judge_mean"].to_dict("records")
    return {
        (run, str(json.loads(estimate["facet"]).get("judge", ""))): _estimate_interval(estimate)
        for estimate in rows
    }


def _estimate_interval(estimate: Mapping[Any, Any]) -> Interval:
    point, lo, hi = (
        None if pd.isna(estimate[name]) else float(estimate[name]) for name in ("point", "lo", "hi")
    )
    reason = None if pd.isna(estimate["reason"]) else str(estimate["reason"])
    return Interval(
        point,
        lo,
        hi,
        int(estimate["n"]),
        str(estimate["method"]),
        float(estimate["confidence"]),
        reason,
    )


def _values_by_position(
    values: pd.DataFrame, positions: Mapping[str, AxisPosition]
) -> list[tuple[AxisPosition, pd.DataFrame]]:
    values_by_run = {str(run): run_values for run, run_values in values.groupby("run", sort=False)}
    return [
        (position, values_by_run[run])
        for run, position in positions.items()
        if run in values_by_run
    ]


def _unfaithful_rate(run_values: pd.DataFrame, threshold: float) -> Interval:
    defined_values = run_values["value"].dropna()
    if defined_values.empty:
        reason = next(
            iter(run_values["why"].dropna()), "no response has a score of this classifier"
        )
        return no_interval(None, 0, reason)
    return wilson(int((defined_values >= threshold).sum()), len(defined_values))


def _point_rows(rows: Sequence[tuple[AxisPosition, Interval, pd.DataFrame]]) -> pd.DataFrame:
    records: list[dict[str, Any]] = []
    for position, interval, run_values in rows:
        defined_values = run_values["value"].dropna().tolist()
        columns = interval_columns(interval, len(run_values) - len(defined_values))
        listed_values = defined_values if len(defined_values) <= 20 else None
        records.append({**position._asdict(), **columns, "values": listed_values})
    return pd.DataFrame(records, columns=POINT_COLUMNS)
