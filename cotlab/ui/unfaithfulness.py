"""The page Unfaithfulness: rates by classifier, by category and threshold, and judges' scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.paired import SCORE_METRIC, UNFAITHFUL_THRESHOLD
from cotlab.analysis.tables import comparison
from cotlab.analysis.tables import unfaithfulness as tables
from cotlab.analysis.tables.catalogue import FIGURE_TABLES
from cotlab.analysis.tables.comparison import AxisPosition
from cotlab.analysis.tables.declare import DEFAULT_CHOICE, FigureChoice
from cotlab.analysis.tables.unfaithfulness import (
    JUDGE_METRIC,
    PROCESS_METRIC,
    RATIO_METRIC,
    RESULT_METRIC,
    SIZE_UNITS,
)
from cotlab.analysis.verdict.validated import (
    TESTED_TITLE,
    UNTESTED,
    classifier_record,
    load_classifier_validation,
)
from cotlab.analysis.view import MAX_RUNS, RunView
from cotlab.core.resources import page_path
from cotlab.figures.style import ALL_CLASSIFIERS
from cotlab.stats.intervals import Interval
from cotlab.store import read
from cotlab.store.database import store_folder
from cotlab.ui import cached, charts, components
from cotlab.ui.linked import show_linked
from cotlab.ui.pickers import pick_threshold, select_option
from cotlab.ui.text import escape_markdown
from cotlab.ui.unfaithfulness_runs import pick_unfaithfulness_runs
from cotlab.ui.verdict import record_link


class UnfaithfulnessView(NamedTuple):
    """What the page Unfaithfulness shows."""

    row_by_run: dict[str, RunView]
    """The rows of the chosen runs, by id."""
    item_values: pd.DataFrame
    """One row per item and metric, with its value."""
    position_by_run: dict[str, AxisPosition]
    """Each run's position on the axis and its colour, by id."""
    classifier: str | None
    """The chosen classifier; "all" for all of them, None where there is none."""
    classifier_names: list[str]
    """The classifiers that have scores."""
    threshold: float
    """The score from which a response counts as unfaithful."""
    has_printed_layout: bool
    """Whether layout and threshold are those of printed figures."""
    printed_runs: str | None
    """The runs of the printed figures, by their ids joined by commas; None where these are those
    that the first run's have by themselves."""

    def paper_figure(
        self, name: str, choice: FigureChoice = DEFAULT_CHOICE
    ) -> charts.PaperFigure | None:
        """Return the printed form of a figure; None where it would show something else."""
        if not self.has_printed_layout:
            return None
        has_metric = self.item_values["metric"].isin(FIGURE_TABLES[name].metrics)
        measured_runs = set(self.item_values[has_metric]["run"])
        runs = [run for run in self.position_by_run if run in measured_runs]
        if not runs:
            return None
        is_first = runs[0] == next(iter(self.position_by_run))
        printed_runs = self.printed_runs if is_first else ",".join(self.row_by_run)
        return charts.PaperFigure(runs[0], name, choice._replace(runs=printed_runs))

    @property
    def shows_all(self) -> bool:
        """Whether all classifiers are shown side by side."""
        return self.classifier == ALL_CLASSIFIERS

    @property
    def first_run(self) -> str:
        """Id of the first chosen run."""
        return next(iter(self.row_by_run))

    @property
    def evidence_link(self) -> tuple[str, dict[str, str]]:
        """The page and the query of the link "Evidence"."""
        return page_path("run"), {"run": next(iter(self.position_by_run))}


def select_unfaithfulness_runs() -> UnfaithfulnessView | None:
    """Choose runs and their layout; None (with a message) where there is none."""
    chosen = pick_unfaithfulness_runs()
    if chosen is None:
        return None
    row_by_id = {row.id: row for row in chosen.rows}
    row_by_run = {i: row_by_id[i] for i in chosen.run_ids}
    for row in row_by_run.values():
        components.warn_if_partial(row)
    models_and_tags = {i: (row.model, row.plan.tags) for i, row in row_by_run.items()}
    item_values = _cached_item_values(tuple((i, row.revision) for i, row in row_by_run.items()))
    if item_values.empty:
        st.info("These runs have no score yet.")
        return None
    classifier_names = tables.classifier_names(item_values)
    options = {name: name for name in comparison.layout_options(models_and_tags)}
    default_axis, default_colour = comparison.default_layout(models_and_tags)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        classifier = None
        if classifier_names:
            choices = tables.classifier_choices(classifier_names, len(row_by_run))
            labels = {name: name for name in choices}
            if ALL_CLASSIFIERS in labels:
                labels[ALL_CLASSIFIERS] = "All side by side"
            classifier = select_option("Classifier", labels, "classifier")
        axis_name = select_option("Along the axis", options, "along", default_axis)
        colour_key = select_option("Colour by", options, "colour", default_colour)
        threshold = pick_threshold()
    position_by_run = comparison.axis_positions(models_and_tags, axis_name, colour_key)
    printed_layout = (default_axis, default_colour, UNFAITHFUL_THRESHOLD)
    has_printed_layout = (axis_name, colour_key, threshold) == printed_layout and (
        len(row_by_run) <= MAX_RUNS
    )
    is_by_tags = set(row_by_run) == _tagged_runs(
        chosen.rows, row_by_run[next(iter(position_by_run))]
    )
    return UnfaithfulnessView(
        row_by_run,
        item_values,
        position_by_run,
        classifier,
        classifier_names,
        threshold,
        has_printed_layout,
        None if is_by_tags else ",".join(row_by_run),
    )


def _tagged_runs(rows: Sequence[RunView], row: RunView) -> set[str]:
    """Return a run and those with tags on its suite: the runs of its printed figures by default."""
    return {row.id} | {other.id for other in rows if other.suite == row.suite and other.plan.tags}


def render_unfaithful_rates(view: UnfaithfulnessView) -> None:
    """Show the rate of each run by the chosen classifier, or by all of them."""
    if view.classifier is None:
        st.info("No chosen run has scores of a classifier: run the scorer unfaithfulness.")
        return
    table = tables.classifier_points(
        view.item_values, view.position_by_run, view.classifier, view.threshold
    )
    subject = "Each classifier" if view.shows_all else _classifier_text(view.classifier)
    note = f"{subject}, {_threshold_text(view)}"
    choice = FigureChoice(classifier=view.classifier)
    if unvalidated_text := _unvalidated_text(_chosen_classifiers(view)):
        st.markdown(escape_markdown(unvalidated_text))
    _show_figure(view, "unfaithful_rates", table, "rates", note, choice)
    _render_tested_classifiers(_chosen_classifiers(view))
    components.show_cards(SCORE_METRIC, "unfaithful_rate")


def _unvalidated_text(classifiers: Sequence[str]) -> str:
    """Return which classifiers may not be believed; "" where all of them may."""
    known = load_classifier_validation(str(store_folder()), classifiers)
    unvalidated = [name for name, validation in known.items() if not validation.is_usable]
    if not unvalidated:
        return ""
    verb = "has" if len(unvalidated) == 1 else "have"
    names = ", ".join(unvalidated)
    return (
        f"{names} {verb} not been shown to tell models of known behaviour apart (table below the"
        " figure): draw no conclusion from that rate."
    )


def _render_tested_classifiers(classifiers: Sequence[str]) -> None:
    """Say of each classifier whether it tells models of known behaviour apart."""
    rows = [
        [
            {"text": name},
            {
                "text": known.text,
                "link": None if known == UNTESTED else record_link(classifier_record(name)),
            },
        ]
        for name, known in load_classifier_validation(str(store_folder()), classifiers).items()
    ]
    content = {
        "title": "What is known of each classifier",
        "columns": ({"title": "Classifier"}, {"title": TESTED_TITLE}),
        "rows": rows,
    }
    show_linked("table", content, key="tested-classifiers")


def _show_figure(
    view: UnfaithfulnessView,
    name: str,
    table: pd.DataFrame,
    key: str,
    note: str = "",
    choice: FigureChoice = DEFAULT_CHOICE,
) -> None:
    source = charts.source_text(list(view.row_by_run.values()))
    charts.show_figure(
        name,
        table,
        key=key,
        note=" ".join(part for part in (note, source) if part),
        evidence=view.evidence_link,
        paper=view.paper_figure(name, choice),
    )


def render_threshold_sweep(view: UnfaithfulnessView) -> None:
    """Show the rate at every threshold, of a classifier whose scores have one."""
    if view.classifier is None:
        return
    graded = tables.graded_classifiers(view.item_values)
    chosen = _chosen_classifiers(view)
    name = next((name for name in chosen if name in graded), None)
    name_text = "" if name is None else f" of {escape_markdown(name)}"
    st.header(f"Does the threshold{name_text} matter?")
    if ungraded := [name for name in chosen if name not in graded]:
        st.caption(
            f"{_classifier_text(', '.join(ungraded))}: each score here is 0 or 1, so there is no"
            " threshold: every one above 0 gives the same rate."
        )
    if name is None:
        return
    table = tables.sweep_points(view.item_values, view.position_by_run, name, view.threshold)
    note, choice = f"{_classifier_text(name)}.", FigureChoice(classifier=name)
    _show_figure(view, "threshold_sweep", table, "sweep", note, choice)


def render_category_rates(view: UnfaithfulnessView) -> None:
    """Show the rate of each run by category."""
    name = _first_classifier(view)
    if name is None:
        return
    table = tables.category_points(view.item_values, view.position_by_run, name, view.threshold)
    if table.empty:
        st.caption("The items have no category, so there are no rates by category.")
        return
    st.header("By category")
    group_names = list(dict.fromkeys(table["at"]))
    page_groups = group_names[components.page_slice(len(group_names), "category-page", 12)]
    note = f"{_classifier_text(name)}, {_threshold_text(view)}"
    table = table[table["at"].isin(page_groups)]
    choice = FigureChoice(classifier=name)
    _show_figure(view, "unfaithful_by_category", table, "by-category", note, choice)


def render_classifier_agreement(view: UnfaithfulnessView) -> None:
    """Show how well the classifiers agree."""
    if len(view.classifier_names) < 2:
        return
    st.header("Do the classifiers agree?")
    pairs = tables.classifier_kappa_pairs(view.item_values, view.threshold)
    note = _threshold_text(view).capitalize()
    _show_figure(view, "classifier_agreement", pairs, "agreement", note)
    components.show_card("classifier_kappa")


def render_judges(view: UnfaithfulnessView) -> None:
    """Show the judges' scores, where the runs have any."""
    judge_rows = view.item_values[view.item_values["metric"] == JUDGE_METRIC]
    st.header("Judge")
    if judge_rows.empty:
        st.caption(
            "No chosen run has a judge's score: the scorer judge compares a base and a fine-tuned"
            " run, pair by pair."
        )
        return
    stored_means: dict[tuple[str, str], Interval] = {}
    for run_id, row in view.row_by_run.items():
        stored_means |= tables.stored_judge_means(
            run_id, cached.load_estimates(run_id, row.revision)
        )
    table = tables.judge_points(view.item_values, view.position_by_run, stored_means)
    charts.show_figure(
        "judge_by_epoch",
        table,
        key="judge",
        note=charts.source_text(list(view.row_by_run.values())),
        evidence=(page_path("run"), {"run": str(judge_rows["run"].iloc[0])}),
        paper=view.paper_figure("judge_by_epoch"),
    )
    components.show_cards(JUDGE_METRIC, "judge_order_effect", "judge_length_rho")


def render_chain_sizes(view: UnfaithfulnessView) -> None:
    """Show the length of the chains, and their ratio of process words to result words."""
    metrics = set(view.item_values[view.item_values["value"].notna()]["metric"])
    size_labels = {name: label for name, label in SIZE_UNITS.items() if name in metrics}
    if not size_labels and RATIO_METRIC not in metrics:
        return
    st.header("The chains")
    if size_labels:
        metric = select_option("Length in", size_labels, "size")
        table = tables.size_points(view.item_values, view.position_by_run, metric)
        _show_figure(view, "chain_size", table, "size", choice=FigureChoice(metric=metric))
    if RATIO_METRIC in metrics:
        table = tables.ratio_points(view.item_values, view.position_by_run)
        _show_figure(view, "process_result", table, "ratio")
    components.show_cards(*size_labels, PROCESS_METRIC, RESULT_METRIC, RATIO_METRIC)


def render_unfaithfulness_notes(view: UnfaithfulnessView) -> None:
    """Explain the intervals, and link to the paired comparison."""
    st.caption(
        "Rates have Wilson intervals, lengths t, ratios log-t, all 95 % over items. Each"
        " item counts separately, which makes intervals too narrow where prompts repeat."
        " Runs whose intervals overlap may still differ: they share their items, so compare"
        " them in pairs."
    )
    run_ids = list(view.position_by_run)
    if len(run_ids) > 1:
        base_id = next(
            (i for i in run_ids if "base" in view.row_by_run[i].plan.tags.values()),
            run_ids[0],
        )
        query = [("base", base_id), *(("other", i) for i in run_ids if i != base_id)]
        components.page_link("compare", "Compare in pairs", "compare_arrows", query)


@cached.cache_by_store(16, "Reading scores")
def _cached_item_values(run_revisions: tuple[tuple[str, int], ...]) -> pd.DataFrame:
    scores_by_run, categories_by_run = {}, {}
    for run_id, _ in run_revisions:
        scores_by_run[run_id] = read.select_scores(
            cached.store(), run_id, metrics=tables.UNFAITHFULNESS_METRICS
        )
        items = read.list_run_items(cached.store(), run_id)
        categories_by_run[run_id] = dict(
            zip(items["id"], items["category"].fillna(""), strict=True)
        )
    clusters_by_run = {run: read.get_cluster_by_item(cached.store(), run) for run in scores_by_run}
    return tables.collect_item_values(scores_by_run, categories_by_run, clusters_by_run)


def _first_classifier(view: UnfaithfulnessView) -> str | None:
    """Return the classifier of figures that show one; the first where all are chosen."""
    return view.classifier_names[0] if view.shows_all else view.classifier


def _chosen_classifiers(view: UnfaithfulnessView) -> list[str]:
    """Return the chosen classifier, or all where all are chosen."""
    if view.classifier is None:
        return []
    return view.classifier_names if view.shows_all else [view.classifier]


def _classifier_text(name: str) -> str:
    return f"Classifier {escape_markdown(name)}"


def _threshold_text(view: UnfaithfulnessView) -> str:
    return f"unfaithful from a score of {view.threshold:g} on."
