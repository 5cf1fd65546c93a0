"""The table of each figure over several runs: one and tagged runs on its suite, or those chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pandas as pd

from cotlab.analysis.compare import compare_runs, metric_cards
from cotlab.analysis.compare_verdict import judge_pair
from cotlab.analysis.paired import RATE_METRIC, SCORE_METRIC, UNFAITHFUL_THRESHOLD
from cotlab.analysis.tables import comparison
from cotlab.analysis.tables import unfaithfulness as unfaithful
from cotlab.analysis.tables.declare import (
    FigureChoice,
    FigureData,
    FigureTable,
    NoTable,
    figure_table,
    no_scores,
)
from cotlab.analysis.verdict.pair_differences import HeadlineDifference
from cotlab.analysis.view import MAX_RUNS, RunView
from cotlab.core.errors import ConfigError, UnknownName
from cotlab.figures.style import ALL_CLASSIFIERS
from cotlab.stats.intervals import Interval
from cotlab.store import read
from cotlab.store.recorded_models import short_model_name

MAX_CATEGORIES = 12
"""Most categories of one figure."""
_MAX_NAMED_RUNS = 4
_THRESHOLD_NOTE = f"unfaithful from a score of {UNFAITHFUL_THRESHOLD:g} on."


class RunGroup(NamedTuple):
    """The values of all items of the runs, and the position of each run."""

    view: RunView
    """The run whose figure it is."""
    members: list[RunView]
    """The runs, of which ``view`` is one."""
    is_chosen: bool
    """Whether the runs were chosen, and not found by their tags."""
    values: pd.DataFrame
    """The values of all items of the runs, as ``collect_item_values`` gives them."""
    positions: dict[str, comparison.AxisPosition]
    """The position of each run, by id."""

    def select_values(self, run: str, *metrics: str) -> pd.DataFrame:
        """Return what one run has of some metrics."""
        return self.values[(self.values["run"] == run) & self.values["metric"].isin(metrics)]

    def select_offered(self, *metrics: str) -> pd.DataFrame:
        """Return the values that offer a choice: of all runs if they were chosen, else of one."""
        if self.is_chosen:
            return self.values[self.values["metric"].isin(metrics)]
        return self.select_values(self.view.run_id, *metrics)

    def runs_note(self, metric: str, name: str | None = None) -> str:
        """Name the runs that have a metric (of a classifier); "" where it is one."""
        rows = self.values[
            (self.values["metric"] == metric) & (name is None or self.values["name"] == name)
        ]
        runs_with_metric = set(rows["run"])
        runs = [run for run in self.positions if run in runs_with_metric]
        return _runs_note(self.view, self.members, runs)


def chosen_runs(view: RunView, ids_text: str) -> list[RunView]:
    """Return the runs of some ids, joined by commas; ConfigError unless ``view`` is among them."""
    ids = list(dict.fromkeys(ids_text.split(",")))
    if view.run_id not in ids:
        raise ConfigError(f"runs {ids_text[:80]!r} lacks the run of the figure, {view.run_id}.")
    if len(ids) > MAX_RUNS:
        raise ConfigError(f"runs has {len(ids)} ids; one figure shows {MAX_RUNS} at most.")
    try:
        return [view if name == view.run_id else RunView.read(view.store, name) for name in ids]
    except UnknownName as error:
        raise ConfigError(f"runs: {error}") from error


@lru_cache(maxsize=2)
def _run_group(view: RunView, ids_text: str | None) -> RunGroup:
    """Return the runs of a figure, laid out as the page Unfaithfulness does by default."""
    members = view.tagged_runs if ids_text is None else chosen_runs(view, ids_text)
    runs_by_id = {member.run_id: member for member in members}
    scores = {run: runs_by_id[run].scores(*unfaithful.UNFAITHFULNESS_METRICS) for run in runs_by_id}
    scores = {run: table for run, table in scores.items() if len(table)}
    item_values = unfaithful.collect_item_values(
        scores,
        {run: read.get_category_by_item(view.store, run) for run in scores},
        {run: read.get_cluster_by_item(view.store, run) for run in scores},
    )
    models_and_tags = {
        run: (str(runs_by_id[run].model), runs_by_id[run].plan.tags) for run in scores
    }
    positions = (
        comparison.axis_positions(models_and_tags, *comparison.default_layout(models_and_tags))
        if models_and_tags
        else {}
    )
    return RunGroup(view, members, ids_text is not None, item_values, positions)


def graded_classifiers(view: RunView, ids_text: str | None) -> list[str]:
    """Return the classifiers of a figure of these runs whose scores have a threshold."""
    return unfaithful.graded_classifiers(_run_group(view, ids_text).values)


def _runs_note(view: RunView, members: Sequence[RunView], runs: list[str]) -> str:
    """Name the runs of a figure, and which of them are partial; "" where it is of one."""
    if len(runs) < 2:
        return ""
    runs_text = (
        ", ".join(runs)
        if len(runs) <= _MAX_NAMED_RUNS
        else f"{len(runs)}, {view.run_id} and those with tags on its suite"
        if members == view.tagged_runs
        else f"{len(runs)}, {view.run_id} among them"
    )
    partial_runs = [
        member.run_id
        for member in members
        if member.run_id in runs and member is not view and member.partial_note
    ]
    return f"Runs: {runs_text}." + (f" Partial: {', '.join(partial_runs)}." if partial_runs else "")


def _join_sentences(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _classifier_table(
    figure: str, make_points: Callable[..., pd.DataFrame], threshold_note: str
) -> FigureTable:
    """Return a table of the rates that one classifier gives."""

    def make(view: RunView, choice: FigureChoice) -> FigureData:
        group = _run_group(view, choice.runs)
        classifiers = _offered_classifiers(group)
        if make_points is unfaithful.classifier_points:
            classifiers = unfaithful.classifier_choices(classifiers, len(group.positions))
        name = choice.select("classifier", classifiers)
        table = make_points(group.values, group.positions, name, UNFAITHFUL_THRESHOLD)
        if table.empty:
            raise NoTable("the items have no category")
        limit_note = ""
        categories = table["at"].unique()
        if make_points is unfaithful.category_points and len(categories) > MAX_CATEGORIES:
            limit_note = f"{MAX_CATEGORIES} of {len(categories)} categories."
            table = table[table["at"].isin(categories[:MAX_CATEGORIES])].reset_index(drop=True)
        is_all = name == ALL_CLASSIFIERS
        note = _join_sentences(
            f"{'Each classifier' if is_all else f'Classifier {name}'}{threshold_note}",
            limit_note,
            group.runs_note(SCORE_METRIC, None if is_all else name),
        )
        return FigureData(table, note, FigureChoice(classifier=name, runs=choice.runs))

    return FigureTable(figure, "run", make, (SCORE_METRIC,))


unfaithful_rates = _classifier_table(
    "unfaithful_rates", unfaithful.classifier_points, f", {_THRESHOLD_NOTE}"
)
threshold_sweep = _classifier_table("threshold_sweep", unfaithful.sweep_points, ".")
unfaithful_by_category = _classifier_table(
    "unfaithful_by_category", unfaithful.category_points, f", {_THRESHOLD_NOTE}"
)


def _offered_classifiers(group: RunGroup) -> list[str]:
    classifiers = unfaithful.classifier_names(group.select_offered(SCORE_METRIC))
    if not classifiers:
        raise no_scores("unfaithfulness")
    return classifiers


@figure_table((SCORE_METRIC,))
def classifier_agreement(view: RunView, choice: FigureChoice) -> FigureData:
    """Return how far each two classifiers agree."""
    group = _run_group(view, choice.runs)
    if len(_offered_classifiers(group)) == 1:
        raise NoTable("the run has one classifier only: there is nothing to agree with")
    note = _join_sentences(_THRESHOLD_NOTE.capitalize(), group.runs_note(SCORE_METRIC))
    pairs = unfaithful.classifier_kappa_pairs(group.values)
    return FigureData(pairs, note, FigureChoice(runs=choice.runs))


@figure_table((unfaithful.JUDGE_METRIC,))
def judge_by_epoch(view: RunView, choice: FigureChoice) -> FigureData:
    """Return the mean score of each judge by run."""
    group = _run_group(view, choice.runs)
    if group.select_offered(unfaithful.JUDGE_METRIC).empty:
        raise no_scores("judge")
    stored_means: dict[tuple[str, str], Interval] = {}
    for member in group.members:
        stored_means |= unfaithful.stored_judge_means(member.run_id, member.estimates)
    table = unfaithful.judge_points(group.values, group.positions, stored_means)
    note = group.runs_note(unfaithful.JUDGE_METRIC)
    return FigureData(table, note, FigureChoice(runs=choice.runs))


@figure_table(tuple(unfaithful.SIZE_UNITS))
def chain_size(view: RunView, choice: FigureChoice) -> FigureData:
    """Return the mean length of chains by run."""
    group = _run_group(view, choice.runs)
    rows = group.select_offered(*unfaithful.SIZE_UNITS)
    if rows.empty:
        raise no_scores("unfaithfulness")
    measured_metrics = set(rows[rows["value"].notna()]["metric"])
    size_metrics = [name for name in unfaithful.SIZE_UNITS if name in measured_metrics]
    if not size_metrics:
        raise NoTable("no chain has a length")
    metric = choice.select("metric", size_metrics)
    table = unfaithful.size_points(group.values, group.positions, metric)
    return FigureData(table, group.runs_note(metric), FigureChoice(metric=metric, runs=choice.runs))


@figure_table((unfaithful.RATIO_METRIC,))
def process_result(view: RunView, choice: FigureChoice) -> FigureData:
    """Return the ratio of process to result words by run."""
    group = _run_group(view, choice.runs)
    rows = group.select_offered(unfaithful.RATIO_METRIC)
    if rows.empty:
        raise no_scores("unfaithfulness")
    if rows["value"].isna().all():
        raise NoTable("no response has a ratio of process to result words")
    table = unfaithful.ratio_points(group.values, group.positions)
    note = group.runs_note(unfaithful.RATIO_METRIC)
    return FigureData(table, note, FigureChoice(runs=choice.runs))


@figure_table(min_runs=2)
def paired_differences(view: RunView, choice: FigureChoice) -> FigureData:
    """Return the differences of the other runs to the base, of one scorer and one unit."""
    names = sorted(
        {spec.name for spec in view.plan.scorers}, key=lambda name: (name != SCORE_METRIC, name)
    )
    if choice.metric is not None:  # the scorer that gives it
        metric = SCORE_METRIC if choice.metric == RATE_METRIC else choice.metric
        groups = view.score_groups
        metric_scorers = set(groups[groups["metric"] == metric]["scorer"])
        names = [name for name in names if name in metric_scorers] or names
    scored_runs = [member for member in view.tagged_runs if member.n_ended]
    runs_by_scorer = {name: [run for run in scored_runs if run.scorer(name)] for name in names}
    scorer = next((name for name in names if len(runs_by_scorer[name]) > 1), None)
    if scorer is None or view not in runs_by_scorer[scorer]:
        raise NoTable(
            "it takes two runs: no other with tags and scores of the same scorer shares this run's"
            " suite"
        )
    runs_by_id = {run.run_id: run for run in runs_by_scorer[scorer]}
    base = comparison.default_base([*runs_by_id.values()])
    other_runs = comparison.order_by_epoch(
        {name: (run.model, run.plan.tags) for name, run in runs_by_id.items() if name != base}
    )
    try:
        comparison_set = compare_runs(view.store, base, other_runs, scorers=(scorer,))
    except ConfigError as error:
        raise NoTable(str(error).rstrip(".")) from error
    compared_metrics = list(
        dict.fromkeys(row.metric for pair in comparison_set.comparisons for row in pair.rows)
    )
    metrics = () if choice.metric is None else (choice.select("metric", compared_metrics),)
    tags = {name: run.plan.tags for name, run in runs_by_id.items() if name != base}
    cards = metric_cards([run.plan for run in runs_by_id.values()])
    bars = next(iter(comparison.bars_by_unit(comparison_set, cards, tags, metrics).values()))
    visible_bars = bars.iloc[: comparison.MAX_BARS]
    note = _join_sentences(
        f"Base: {base}.",
        comparison.threshold_note(comparison_set, UNFAITHFUL_THRESHOLD),
        f"{len(visible_bars)} of {len(bars)} differences." if len(visible_bars) < len(bars) else "",
        _runs_note(view, view.tagged_runs, [base, *other_runs]),
    )
    return FigureData(visible_bars, note, FigureChoice(metric=choice.metric))


HEADLINE_FIGURE = "headline_differences"
"""Name of the figure among those of a run."""


def difference_table(differences: Sequence[HeadlineDifference]) -> pd.DataFrame:
    """Return the differences of two runs as the page Compare lists them, a row a metric.

    Shares and differences are in [0, 1] and [-1, 1]; a number that does not exist is None.
    """
    return pd.DataFrame(
        [
            {
                "metric": entry.label,
                "n": entry.row.n,
                "base": entry.base.point,
                "other": entry.other.point,
                "difference": entry.difference.point,
                "lo": entry.difference.lo,
                "hi": entry.difference.hi,
                "method": entry.difference.method,
                "reason": entry.difference.reason,
                "p_adjusted": entry.row.adjusted,
                "validation": entry.validation,
            }
            for entry in differences
        ]
    )


def _named(view: RunView) -> str:
    return f"{view.model} (run {view.run_id})"


def _pair_text(base: RunView, other: RunView) -> str:
    """Name the pair by models, and by ids where these are the same."""
    names = [short_model_name(run.model) for run in (other, base)]
    if names[0] == names[1]:
        names = [other.run_id, base.run_id]
    return f"{names[0]} minus {names[1]}"


def _bar(entry: HeadlineDifference, label: str) -> dict[str, Any]:
    """Return one row of the figure of paired differences, with the interval of the page."""
    difference = entry.difference
    bar = comparison.bar_row(entry.row, label, "share")
    bar |= {"point": difference.point, "lo": difference.lo, "hi": difference.hi}
    bar |= {"method": difference.method, "reason": difference.reason or bar["reason"]}
    return {**bar, "base": entry.base.point, "other": entry.other.point}


@figure_table(figure="paired_differences")
def headline_differences(view: RunView, choice: FigureChoice) -> FigureData:
    """Return the differences of other runs from this one, each in the tested metrics of both."""
    members = view.tagged_runs if choice.runs is None else chosen_runs(view, choice.runs)
    others = [member for member in members if member.run_id != view.run_id]
    if not others:
        raise NoTable("it takes another run, chosen on the page Compare or by tags")
    bars, reasons = [], []
    for other in others:
        pair = judge_pair(view.store, view.run_id, other.run_id, (view.run_id, other.run_id))
        run_text = "" if len(others) == 1 else f" ({other.run_id})"
        bars += [_bar(entry, f"{entry.short_label}{run_text}") for entry in pair.differences]
        reasons += [] if pair.differences else [pair.reason or pair.headline.rstrip(".")]
    if not bars:
        raise NoTable("; ".join(dict.fromkeys(reasons)).rstrip("."))
    if len(others) == 1:
        bars = [{**bar, "of": _pair_text(view, others[0])} for bar in bars]
    shown = bars[: comparison.MAX_BARS]
    notes = [
        f"Base: {_named(view)}; other: {', '.join(map(_named, others))}.",
        *([f"{len(shown)} of {len(bars)} differences."] if len(shown) < len(bars) else []),
        "A measure of faithfulness is here only where it tells models of known behaviour apart.",
    ]
    return FigureData(pd.DataFrame(shown), " ".join(notes), FigureChoice(runs=choice.runs))
