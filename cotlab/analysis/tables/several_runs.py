"""The table of each figure over several runs: the run asked for, together with those that share its suite and have tags."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import pandas as pd

from cotlab.analysis.compare import compare_runs, metric_cards
from cotlab.analysis.paired import RATE, SCORED, THRESHOLD
from cotlab.analysis.tables import comparison
from cotlab.analysis.tables import unfaithfulness as unfaithful
from cotlab.analysis.tables.run import needs
from cotlab.analysis.tables.source import Absent, Choice, Drawn, FigureTable, Source
from cotlab.core.errors import ConfigError
from cotlab.stats.intervals import Interval
from cotlab.store import read

MOST_CATEGORIES = 12
"""So many categories stand below each other in one figure."""
_NAMED = 4
_SAID = f"unfaithful from a score of {THRESHOLD:g} on."


class Group(NamedTuple):
    """The values of all items of the runs, and the place of each run."""

    source: Source
    values: pd.DataFrame
    where: dict[str, unfaithful.Place]

    def of(self, run: str, *metrics: str) -> pd.DataFrame:
        """What one run has of some metrics."""
        return self.values[(self.values["run"] == run) & self.values["metric"].isin(metrics)]

    def note(self, metric: str, name: str | None = None) -> str:
        """Which runs have a metric (of a classifier), in words; "" where it is one."""
        own = self.values[(self.values["metric"] == metric) & (name is None or self.values["name"] == name)]
        known = set(own["run"])
        return _runs_note(self.source, [run for run in self.where if run in known])


@lru_cache(maxsize=2)
def _group(source: Source) -> Group:
    """The runs of ``source``, laid out as the page Unfaithfulness lays them out first."""
    runs = {one.run_id: one for one in source.together}
    scores = {run: read.scores(source.store, run, metrics=unfaithful.METRICS) for run in runs}
    scores = {run: table for run, table in scores.items() if len(table)}
    found = unfaithful.item_values(scores, {run: read.categories(source.store, run) for run in scores})
    told = {run: (str(runs[run].row["model"]), runs[run].plan.tags) for run in scores}
    where = unfaithful.places(told, *unfaithful.first_ways(told)) if told else {}
    return Group(source, found, where)


def _runs_note(source: Source, runs: list[str]) -> str:
    """Which runs a figure is of, and which of the others are partial; "" where it is of one."""
    if len(runs) < 2:
        return ""
    told = ", ".join(runs) if len(runs) <= _NAMED else f"{len(runs)}, {source.run_id} and those with tags on its suite"
    partial = [one.run_id for one in source.together if one.run_id in runs and one is not source and one.partial]
    return f"Runs: {told}." + (f" Partial: {', '.join(partial)}." if partial else "")


def _said(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


def _classifier(source: Source, choice: Choice) -> str | None:
    """The chosen classifier, or the one that is shown first; None where the run has none."""
    known = unfaithful.classifiers(_group(source).of(source.run_id, SCORED))
    return choice.one_of("classifier", known) if known else None


def _rates(source: Source, choice: Choice) -> Drawn | Absent:
    name, group = _classifier(source, choice), _group(source)
    if name is None:
        return needs("unfaithfulness")
    table = unfaithful.rate_points(group.values, group.where, name)
    return Drawn(table, _said(f"Classifier {name}, {_SAID}", group.note(SCORED, name)), Choice(classifier=name))


def _sweep(source: Source, choice: Choice) -> Drawn | Absent:
    name, group = _classifier(source, choice), _group(source)
    if name is None:
        return needs("unfaithfulness")
    table = unfaithful.sweep_points(group.values, group.where, name, THRESHOLD)
    return Drawn(table, _said(f"Classifier {name}.", group.note(SCORED, name)), Choice(classifier=name))


def _categories(source: Source, choice: Choice) -> Drawn | Absent:
    name, group = _classifier(source, choice), _group(source)
    if name is None:
        return needs("unfaithfulness")
    table = unfaithful.category_points(group.values, group.where, name, THRESHOLD)
    if table.empty:
        return Absent("the items have no category")
    places = list(dict.fromkeys(table["at"]))
    shown = places[:MOST_CATEGORIES]
    left = f"{len(shown)} of {len(places)} categories." if len(shown) < len(places) else ""
    note = _said(f"Classifier {name}, {_SAID}", left, group.note(SCORED, name))
    return Drawn(table[table["at"].isin(shown)].reset_index(drop=True), note, Choice(classifier=name))


def _agreement(source: Source, choice: Choice) -> Drawn | Absent:
    group = _group(source)
    known = unfaithful.classifiers(group.of(source.run_id, SCORED))
    if len(known) < 2:
        return Absent("the run has one classifier only: there is nothing to agree with") if known else needs("unfaithfulness")
    return Drawn(unfaithful.kappa_pairs(group.values), _said(_SAID.capitalize(), group.note(SCORED)))


def _judges(source: Source, choice: Choice) -> Drawn | Absent:
    group = _group(source)
    if group.of(source.run_id, unfaithful.JUDGE).empty:
        return needs("judge")
    stored: dict[tuple[str, str], Interval] = {}
    for one in source.together:
        stored |= unfaithful.stored_means(one.run_id, one.estimates)
    return Drawn(unfaithful.judge_points(group.values, group.where, stored), group.note(unfaithful.JUDGE))


def _sizes(source: Source, choice: Choice) -> Drawn | Absent:
    group = _group(source)
    own = group.of(source.run_id, *unfaithful.SIZES)
    known = [name for name in unfaithful.SIZES if name in set(own[own["value"].notna()]["metric"])]
    if not known:
        return needs("unfaithfulness") if own.empty else Absent("no chain has a length")
    metric = choice.one_of("metric", known)
    return Drawn(unfaithful.size_points(group.values, group.where, metric), group.note(metric), Choice(metric=metric))


def _ratios(source: Source, choice: Choice) -> Drawn | Absent:
    group = _group(source)
    own = group.of(source.run_id, unfaithful.RATIO)
    if own["value"].notna().any():
        return Drawn(unfaithful.ratio_points(group.values, group.where), group.note(unfaithful.RATIO))
    return needs("unfaithfulness") if own.empty else Absent("no response has a ratio of process to result words")


def _differences(source: Source, choice: Choice) -> Drawn | Absent:
    """The differences of the other runs to the base, over the metrics of one scorer and one unit."""
    names = sorted({spec.name for spec in source.plan.scorers}, key=lambda name: (name != SCORED, name))
    if choice.metric is not None:  # the scorer that gives it
        wanted = SCORED if choice.metric == RATE else choice.metric
        given = set(source.scores[source.scores["metric"] == wanted]["scorer"])
        names = [name for name in names if name in given] or names
    ready = [one for one in source.together if int(one.row["n_ended"])]
    scorer = next((name for name in names if sum(_has(one, name) for one in ready) > 1), None)
    runs = [one for one in ready if scorer is not None and _has(one, scorer)]
    if scorer is None or source not in runs:
        return Absent("it takes two runs: no other with tags and scores of the same scorer shares this run's suite")
    base = comparison.first_base([one.row for one in runs])
    others = unfaithful.in_order({one.run_id: (str(one.row["model"]), one.plan.tags) for one in runs if one.run_id != base})
    try:
        found = compare_runs(source.store, base, others, scorers=(scorer,))
    except ConfigError as error:
        return Absent(str(error).rstrip("."))
    known = list(dict.fromkeys(row.metric for c in found.comparisons for row in c.rows))
    metrics = () if choice.metric is None else (choice.one_of("metric", known),)
    tags = {one.run_id: one.plan.tags for one in runs if one.run_id in others}
    bars = next(iter(comparison.bars_by_unit(found, metric_cards([one.plan for one in runs]), tags, metrics).values()))
    part = bars.iloc[: comparison.MOST_BARS]
    note = _said(
        f"Base: {base}.", comparison.threshold_note(found, THRESHOLD),
        f"{len(part)} of {len(bars)} differences." if len(part) < len(bars) else "", _runs_note(source, [base, *others]),
    )  # fmt: skip
    return Drawn(part, note, Choice(metric=choice.metric))


def _has(one: Source, scorer: str) -> bool:
    return one.scorer(scorer) is not None


_RATED = (SCORED,)
UNFAITHFUL_RATES = FigureTable("unfaithful_rates", "run", _rates, _RATED)
THRESHOLD_SWEEP = FigureTable("threshold_sweep", "run", _sweep, _RATED)
UNFAITHFUL_BY_CATEGORY = FigureTable("unfaithful_by_category", "run", _categories, _RATED)
CLASSIFIER_AGREEMENT = FigureTable("classifier_agreement", "run", _agreement, _RATED)
JUDGE_BY_EPOCH = FigureTable("judge_by_epoch", "run", _judges, (unfaithful.JUDGE,))
CHAIN_SIZE = FigureTable("chain_size", "run", _sizes, tuple(unfaithful.SIZES))
PROCESS_RESULT = FigureTable("process_result", "run", _ratios, (unfaithful.RATIO,))
PAIRED_DIFFERENCES = FigureTable("paired_differences", "run", _differences, runs=2)
