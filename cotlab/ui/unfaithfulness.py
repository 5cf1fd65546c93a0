"""The page Unfaithfulness: rates by classifier, by category and threshold, and judges' scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.paired import SCORED
from cotlab.analysis.tables import unfaithfulness as tables
from cotlab.analysis.tables.unfaithfulness import (
    JUDGE,
    PROCESS,
    RATIO,
    RESULT,
    SCORERS,
    SIZES,
    AxisPosition,
)
from cotlab.analysis.view import MAX_RUNS
from cotlab.core.resources import page
from cotlab.stats.intervals import Interval
from cotlab.store import read
from cotlab.ui import cached, components
from cotlab.ui.pickers import pick_many, pick_threshold, run_labels, select_option
from cotlab.ui.text import as_code

ALL = "all"


class UnfaithfulnessView(NamedTuple):
    """What the page Unfaithfulness shows."""

    runs: dict[str, dict[str, Any]]
    """The rows of the chosen runs, by id."""
    values: pd.DataFrame
    """One row per item and metric, with its value."""
    where: dict[str, AxisPosition]
    """Each run's position on the axis and its colour, by id."""
    classifier: str | None
    """The chosen classifier; "all" for all of them, None where there is none."""
    names: list[str]
    """The classifiers that have scores."""
    threshold: float
    """The score from which a response counts as unfaithful."""

    @property
    def evidence(self) -> tuple[str, dict[str, str]]:
        """The page and the query of the link "Evidence"."""
        return page("run"), {"run": next(iter(self.where))}


def select_unfaithfulness_runs() -> UnfaithfulnessView | None:
    """Choose runs and their layout; None (with a message) where there is none."""
    rows = [r for r in read.list_runs(cached.store()).to_dict("records") if _scores_it(r)]
    if not rows:
        components.empty(
            "No run has the scorer 'unfaithfulness' or 'judge' yet. Tag runs (epoch=1,"
            " condition=base) to group them.",
            page("new_run"),
            "Start one",
        )
        return None
    by_id = {str(row["id"]): row for row in rows}
    chosen = pick_many(
        "Runs",
        run_labels(rows),
        "run",
        _alike(rows),
        help="By default the newest and those on the same suite or model.",
    )
    if not chosen:
        st.info("Choose a run.")
        return None
    runs = {i: by_id[i] for i in chosen}
    for row in runs.values():
        components.partial_banner(row)
    models_and_tags = {
        i: (str(row["model"]), cached.parse_plan(row["plan"]).tags) for i, row in runs.items()
    }
    table = _values(
        str(cached.store().folder), tuple((i, int(row["revision"])) for i, row in runs.items())
    )
    if table.empty:
        st.info("These runs have no score yet.")
        return None
    names = tables.classifier_names(table)
    options, (first_along, first_colour) = (
        tables.layout_options(models_and_tags),
        tables.default_layout(models_and_tags),
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        classifier = None
        if names:
            every = {name: name for name in names} | (
                {ALL: "All side by side"} if len(names) > 1 else {}
            )
            classifier = select_option("Classifier", every, "classifier")
        along = select_option("Along the axis", {w: w for w in options}, "along", first_along)
        colour = select_option("Colour by", {w: w for w in options}, "colour", first_colour)
        threshold = pick_threshold()
    return UnfaithfulnessView(
        runs,
        table,
        tables.axis_positions(models_and_tags, along, colour),
        classifier,
        names,
        threshold,
    )


def render_rates(view: UnfaithfulnessView) -> None:
    """Show the rate of each run by the chosen classifier, or by all of them."""
    if view.classifier is None:
        st.info("No chosen run has scores of a classifier: run the scorer unfaithfulness.")
        return
    chosen = view.names if view.classifier == ALL else [view.classifier]
    frames = []
    for name in chosen:
        points = tables.rate_points(view.values, view.where, name, view.threshold)
        if view.classifier == ALL:
            both = zip(points["group"], points["at"], strict=True)
            points = points.assign(
                group=[" · ".join(dict.fromkeys(pair)) for pair in both], at=name
            )
        frames.append(points)
    table = pd.concat(frames, ignore_index=True)
    prefix = (
        f"Classifier {as_code(view.classifier)}, "
        if view.classifier != ALL
        else "Each classifier, "
    )
    components.show_figure(
        "unfaithful_rates",
        table,
        key="rates",
        note=f"{prefix}{_threshold_text(view)}",
        evidence=view.evidence,
    )
    with st.container(horizontal=True):
        for metric in (SCORED, "unfaithful_rate"):
            components.show_card(metric)


def render_sweep(view: UnfaithfulnessView) -> None:
    """Show the rate at every threshold."""
    name = _single_classifier(view)
    if name is None:
        return
    st.subheader("Does the threshold matter?")
    table = tables.sweep_points(view.values, view.where, name, view.threshold)
    components.show_figure(
        "threshold_sweep",
        table,
        key="sweep",
        note=f"Classifier {as_code(name)}.",
        evidence=view.evidence,
    )


def render_category_rates(view: UnfaithfulnessView) -> None:
    """Show the rate of each run by category."""
    name = _single_classifier(view)
    if name is None:
        return
    table = tables.category_points(view.values, view.where, name, view.threshold)
    if table.empty:
        st.caption("The items have no category, so there are no rates by category.")
        return
    st.subheader("By category")
    places = list(dict.fromkeys(table["at"]))
    part = places[components.page_slice(len(places), "category-page", 12)]
    components.show_figure(
        "unfaithful_by_category",
        table[table["at"].isin(part)],
        key="by-category",
        note=f"Classifier {as_code(name)}, {_threshold_text(view)}",
        evidence=view.evidence,
    )


def render_classifier_agreement(view: UnfaithfulnessView) -> None:
    """Show how well the classifiers agree."""
    if len(view.names) < 2:
        return
    st.subheader("Do the classifiers agree?")
    pairs = tables.kappa_pairs(view.values, view.threshold)
    components.show_figure(
        "classifier_agreement",
        pairs,
        key="agreement",
        note=_threshold_text(view).capitalize(),
        evidence=view.evidence,
    )
    components.show_card("classifier_kappa")


def render_judges(view: UnfaithfulnessView) -> None:
    """Show the judges' scores, where the runs have any."""
    judge_rows = view.values[view.values["metric"] == JUDGE]
    st.subheader("Judge")
    if judge_rows.empty:
        st.caption(
            "No chosen run has a judge's score: the scorer judge compares a base and a fine-tuned"
            " run, pair by pair."
        )
        return
    stored: dict[tuple[str, str], Interval] = {}
    for run_id, row in view.runs.items():
        stored |= tables.stored_means(run_id, cached.estimates(run_id, int(row["revision"])))
    table = tables.judge_points(view.values, view.where, stored)
    components.show_figure(
        "judge_by_epoch",
        table,
        key="judge",
        evidence=(page("run"), {"run": str(judge_rows["run"].iloc[0])}),
    )
    with st.container(horizontal=True):
        for metric in (JUDGE, "judge_order_effect", "judge_length_rho"):
            components.show_card(metric)


def render_chain_sizes(view: UnfaithfulnessView) -> None:
    """Show the length of the chains, and their ratio of process words to result words."""
    known = set(view.values[view.values["value"].notna()]["metric"])
    sizes, has_ratio = (
        {name: label for name, label in SIZES.items() if name in known},
        RATIO in known,
    )
    if not sizes and not has_ratio:
        return
    st.subheader("The chains")
    if sizes:
        metric = select_option("Length in", sizes, "size")
        components.show_figure(
            "chain_size",
            tables.size_points(view.values, view.where, metric),
            key="size",
            evidence=view.evidence,
        )
    if has_ratio:
        components.show_figure(
            "process_result",
            tables.ratio_points(view.values, view.where),
            key="ratio",
            evidence=view.evidence,
        )
    with st.container(horizontal=True):
        for metric in (*sizes, PROCESS, RESULT, RATIO):
            components.show_card(metric)


def render_unfaithfulness_notes(view: UnfaithfulnessView) -> None:
    """Explain the intervals, and link to the paired comparison."""
    st.caption(
        "Rates have Wilson intervals, lengths t, ratios log-t, all 95 % over items. Each"
        " item counts separately, which makes intervals too narrow where prompts repeat."
        " Runs whose intervals overlap may still differ: they share their items, so compare"
        " them in pairs."
    )
    runs = list(view.where)
    if len(runs) > 1:
        base = next(
            (i for i in runs if "base" in cached.parse_plan(view.runs[i]["plan"]).tags.values()),
            runs[0],
        )
        rest = [i for i in runs if i != base]
        st.page_link(
            page("compare"),
            label="Compare in pairs",
            icon=":material/compare_arrows:",
            query_params=[("base", base), *(("other", i) for i in rest)],
        )


@st.cache_data(show_spinner="Reading scores", max_entries=16)
def _values(folder: str, runs: tuple[tuple[str, int], ...]) -> pd.DataFrame:
    scores, categories = {}, {}
    for run_id, _ in runs:
        scores[run_id] = read.select_scores(cached.store(), run_id, metrics=tables.METRICS)
        items = read.items_of_run(cached.store(), run_id)
        categories[run_id] = dict(zip(items["id"], items["category"].fillna(""), strict=True))
    return tables.collect_item_values(scores, categories)


def _scores_it(row: Mapping[str, Any]) -> bool:
    return any(spec.name in SCORERS for spec in cached.parse_plan(row["plan"]).scorers)


def _alike(rows: list[dict[str, Any]]) -> list[str]:
    """Return the newest run, and those on the same suite or with the same model."""
    newest = rows[0]
    return [
        str(r["id"]) for r in rows if newest["suite"] == r["suite"] or newest["model"] == r["model"]
    ][:MAX_RUNS]


def _single_classifier(view: UnfaithfulnessView) -> str | None:
    """Return the classifier of figures that show one; the first where all are chosen."""
    return view.names[0] if view.classifier == ALL else view.classifier


def _threshold_text(view: UnfaithfulnessView) -> str:
    return f"unfaithful from a score of {view.threshold:g} on."
