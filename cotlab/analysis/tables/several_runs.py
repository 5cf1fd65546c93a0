"""The table of each figure over several runs: a run, and those with tags on its suite."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import pandas as pd

from cotlab.analysis.compare import compare_runs, metric_cards
from cotlab.analysis.paired import RATE, SCORED, THRESHOLD
from cotlab.analysis.tables import comparison
from cotlab.analysis.tables import unfaithfulness as unfaithful
from cotlab.analysis.tables.declare import Choice, FigureData, FigureTable, NoFigure
from cotlab.analysis.tables.run import missing_scorer
from cotlab.analysis.view import RunView
from cotlab.core.errors import ConfigError
from cotlab.stats.intervals import Interval
from cotlab.store import read

MAX_CATEGORIES = 12
"""So many categories stand below each other in one figure."""
_NAMED = 4
_THRESHOLD_NOTE = f"unfaithful from a score of {THRESHOLD:g} on."


class Group(NamedTuple):
    """The values of all items of the runs, and the place of each run."""

    view: RunView
    values: pd.DataFrame
    where: dict[str, unfaithful.AxisPosition]

    def of(self, run: str, *metrics: str) -> pd.DataFrame:
        """Return what one run has of some metrics."""
        return self.values[(self.values["run"] == run) & self.values["metric"].isin(metrics)]

    def note(self, metric: str, name: str | None = None) -> str:
        """Name the runs that have a metric (of a classifier); "" where it is one."""
        rows = self.values[
            (self.values["metric"] == metric) & (name is None or self.values["name"] == name)
        ]
        known = set(rows["run"])
        return _runs_note(self.view, [run for run in self.where if run in known])


@lru_cache(maxsize=2)
def _group(view: RunView) -> Group:
    """Return the runs of ``view``, laid out as the page Unfaithfulness does by default."""
    runs = {member.run_id: member for member in view.tagged_runs}
    scores = {run: runs[run].scores(*unfaithful.METRICS) for run in runs}
    scores = {run: table for run, table in scores.items() if len(table)}
    item_values = unfaithful.collect_item_values(
        scores, {run: read.item_categories(view.store, run) for run in scores}
    )
    models_and_tags = {run: (str(runs[run].model), runs[run].plan.tags) for run in scores}
    where = (
        unfaithful.axis_positions(models_and_tags, *unfaithful.default_layout(models_and_tags))
        if models_and_tags
        else {}
    )
    return Group(view, item_values, where)


def _runs_note(view: RunView, runs: list[str]) -> str:
    """Name the runs of a figure, and which of them are partial; "" where it is of one."""
    if len(runs) < 2:
        return ""
    listed = (
        ", ".join(runs)
        if len(runs) <= _NAMED
        else f"{len(runs)}, {view.run_id} and those with tags on its suite"
    )
    partial = [
        member.run_id
        for member in view.tagged_runs
        if member.run_id in runs and member is not view and member.partial
    ]
    return f"Runs: {listed}." + (f" Partial: {', '.join(partial)}." if partial else "")


def _join_sentences(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


def _classifier(view: RunView, choice: Choice) -> str | None:
    """Return the chosen classifier, or the first; None where the run has none."""
    known = unfaithful.classifier_names(_group(view).of(view.run_id, SCORED))
    return choice.select("classifier", known) if known else None


def _rates(view: RunView, choice: Choice) -> FigureData | NoFigure:
    name, group = _classifier(view, choice), _group(view)
    if name is None:
        return missing_scorer("unfaithfulness")
    table = unfaithful.rate_points(group.values, group.where, name)
    return FigureData(
        table,
        _join_sentences(f"Classifier {name}, {_THRESHOLD_NOTE}", group.note(SCORED, name)),
        Choice(classifier=name),
    )


def _sweep(view: RunView, choice: Choice) -> FigureData | NoFigure:
    name, group = _classifier(view, choice), _group(view)
    if name is None:
        return missing_scorer("unfaithfulness")
    table = unfaithful.sweep_points(group.values, group.where, name, THRESHOLD)
    return FigureData(
        table,
        _join_sentences(f"Classifier {name}.", group.note(SCORED, name)),
        Choice(classifier=name),
    )


def _categories(view: RunView, choice: Choice) -> FigureData | NoFigure:
    name, group = _classifier(view, choice), _group(view)
    if name is None:
        return missing_scorer("unfaithfulness")
    table = unfaithful.category_points(group.values, group.where, name, THRESHOLD)
    if table.empty:
        return NoFigure("the items have no category")
    places = list(dict.fromkeys(table["at"]))
    visible = places[:MAX_CATEGORIES]
    left = f"{len(visible)} of {len(places)} categories." if len(visible) < len(places) else ""
    note = _join_sentences(f"Classifier {name}, {_THRESHOLD_NOTE}", left, group.note(SCORED, name))
    return FigureData(
        table[table["at"].isin(visible)].reset_index(drop=True), note, Choice(classifier=name)
    )


def _agreement(view: RunView, choice: Choice) -> FigureData | NoFigure:
    group = _group(view)
    known = unfaithful.classifier_names(group.of(view.run_id, SCORED))
    if len(known) < 2:
        return (
            NoFigure("the run has one classifier only: there is nothing to agree with")
            if known
            else missing_scorer("unfaithfulness")
        )
    return FigureData(
        unfaithful.kappa_pairs(group.values),
        _join_sentences(_THRESHOLD_NOTE.capitalize(), group.note(SCORED)),
    )


def _judges(view: RunView, choice: Choice) -> FigureData | NoFigure:
    group = _group(view)
    if group.of(view.run_id, unfaithful.JUDGE).empty:
        return missing_scorer("judge")
    stored: dict[tuple[str, str], Interval] = {}
    for member in view.tagged_runs:
        stored |= unfaithful.stored_means(member.run_id, member.estimates)
    return FigureData(
        unfaithful.judge_points(group.values, group.where, stored), group.note(unfaithful.JUDGE)
    )


def _sizes(view: RunView, choice: Choice) -> FigureData | NoFigure:
    group = _group(view)
    rows = group.of(view.run_id, *unfaithful.SIZES)
    known = [
        name for name in unfaithful.SIZES if name in set(rows[rows["value"].notna()]["metric"])
    ]
    if not known:
        return missing_scorer("unfaithfulness") if rows.empty else NoFigure("no chain has a length")
    metric = choice.select("metric", known)
    return FigureData(
        unfaithful.size_points(group.values, group.where, metric),
        group.note(metric),
        Choice(metric=metric),
    )


def _ratios(view: RunView, choice: Choice) -> FigureData | NoFigure:
    group = _group(view)
    rows = group.of(view.run_id, unfaithful.RATIO)
    if rows["value"].notna().any():
        return FigureData(
            unfaithful.ratio_points(group.values, group.where), group.note(unfaithful.RATIO)
        )
    return (
        missing_scorer("unfaithfulness")
        if rows.empty
        else NoFigure("no response has a ratio of process to result words")
    )


def _differences(view: RunView, choice: Choice) -> FigureData | NoFigure:
    """Return the differences of the other runs to the base, of one scorer and one unit."""
    names = sorted(
        {spec.name for spec in view.plan.scorers}, key=lambda name: (name != SCORED, name)
    )
    if choice.metric is not None:  # the scorer that gives it
        metric = SCORED if choice.metric == RATE else choice.metric
        groups = view.score_groups
        given = set(groups[groups["metric"] == metric]["scorer"])
        names = [name for name in names if name in given] or names
    ready = [member for member in view.tagged_runs if member.n_ended]
    scorer = next(
        (name for name in names if sum(_has_scorer(member, name) for member in ready) > 1), None
    )
    runs = [member for member in ready if scorer is not None and _has_scorer(member, scorer)]
    if scorer is None or view not in runs:
        return NoFigure(
            "it takes two runs: no other with tags and scores of the same scorer shares this run's"
            " suite"
        )
    base = comparison.default_base(runs)
    others = unfaithful.order_by_epoch(
        {
            member.run_id: (member.model, member.plan.tags)
            for member in runs
            if member.run_id != base
        }
    )
    try:
        compared = compare_runs(view.store, base, others, scorers=(scorer,))
    except ConfigError as error:
        return NoFigure(str(error).rstrip("."))
    known = list(dict.fromkeys(row.metric for c in compared.comparisons for row in c.rows))
    metrics = () if choice.metric is None else (choice.select("metric", known),)
    tags = {member.run_id: member.plan.tags for member in runs if member.run_id in others}
    bars = next(
        iter(
            comparison.bars_by_unit(
                compared, metric_cards([member.plan for member in runs]), tags, metrics
            ).values()
        )
    )
    part = bars.iloc[: comparison.MAX_BARS]
    note = _join_sentences(
        f"Base: {base}.",
        comparison.threshold_note(compared, THRESHOLD),
        f"{len(part)} of {len(bars)} differences." if len(part) < len(bars) else "",
        _runs_note(view, [base, *others]),
    )
    return FigureData(part, note, Choice(metric=choice.metric))


def _has_scorer(view: RunView, scorer: str) -> bool:
    return view.scorer(scorer) is not None


_RATED = (SCORED,)
UNFAITHFUL_RATES = FigureTable("unfaithful_rates", "run", _rates, _RATED)
THRESHOLD_SWEEP = FigureTable("threshold_sweep", "run", _sweep, _RATED)
UNFAITHFUL_BY_CATEGORY = FigureTable("unfaithful_by_category", "run", _categories, _RATED)
CLASSIFIER_AGREEMENT = FigureTable("classifier_agreement", "run", _agreement, _RATED)
JUDGE_BY_EPOCH = FigureTable("judge_by_epoch", "run", _judges, (unfaithful.JUDGE,))
CHAIN_SIZE = FigureTable("chain_size", "run", _sizes, tuple(unfaithful.SIZES))
PROCESS_RESULT = FigureTable("process_result", "run", _ratios, (unfaithful.RATIO,))
PAIRED_DIFFERENCES = FigureTable("paired_differences", "run", _differences, runs=2)
