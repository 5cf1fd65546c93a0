"""The parts of the page Unfaithfulness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.paired import SCORED
from cotlab.analysis.tables import unfaithfulness as values
from cotlab.analysis.tables.source import MOST_RUNS
from cotlab.analysis.tables.unfaithfulness import JUDGE, PROCESS, RATIO, RESULT, SCORERS, SIZES, Place
from cotlab.stats.intervals import Interval
from cotlab.store import read
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.links import page
from cotlab.ui.runs.picking import pick_many, pick_threshold, run_labels
from cotlab.ui.text import as_code

ALL = "all"


class Shown(NamedTuple):
    """What the page draws: the chosen runs' rows, their items' values, their places, and the classifier that is chosen."""

    runs: dict[str, dict[str, Any]]
    values: pd.DataFrame
    where: dict[str, Place]
    classifier: str | None
    names: list[str]
    threshold: float

    @property
    def evidence(self) -> tuple[str, dict[str, str]]:
        return page("run"), {"run": next(iter(self.where))}


def found() -> Shown | None:
    """Pick runs, and how they are laid out; None (after saying why) where there is none."""
    rows = [r for r in read.runs(data.store()).to_dict("records") if _scores_it(r)]
    if not rows:
        parts.empty(
            "No run has the scorer 'unfaithfulness' or 'judge' yet. Tag runs (epoch=1, condition=base) to group them.",
            page("new_run"), "Start one",
        )  # fmt: skip
        return None
    by_id = {str(row["id"]): row for row in rows}
    chosen = pick_many(
        "Runs", run_labels(rows), "run", _alike(rows), help="By default the newest and those on the same suite or model."
    )
    if not chosen:
        st.info("Choose a run.")
        return None
    runs = {i: by_id[i] for i in chosen}
    for row in runs.values():
        parts.partial_banner(row)
    told = {i: (str(row["model"]), data._plan(row["plan"]).tags) for i, row in runs.items()}
    table = _values(str(data.store().folder), tuple((i, int(row["revision"])) for i, row in runs.items()))
    if table.empty:
        st.info("These runs have no score yet.")
        return None
    names = values.classifiers(table)
    ways, (first_along, first_colour) = values.ways(told), values.first_ways(told)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        classifier = None
        if names:
            every = {name: name for name in names} | ({ALL: "All side by side"} if len(names) > 1 else {})
            classifier = parts.pick("Classifier", every, "classifier")
        along = parts.pick("Along the axis", {w: w for w in ways}, "along", first_along)
        colour = parts.pick("Colour by", {w: w for w in ways}, "colour", first_colour)
        threshold = pick_threshold()
    return Shown(runs, table, values.places(told, along, colour), classifier, names, threshold)


def rates(shown: Shown) -> None:
    """The rate of each run by the chosen classifier, or by all of them."""
    if shown.classifier is None:
        st.info("No chosen run has a classifier's scores: run the scorer unfaithfulness for rates.")
        return
    chosen = shown.names if shown.classifier == ALL else [shown.classifier]
    tables = []
    for name in chosen:
        found = values.rate_points(shown.values, shown.where, name, shown.threshold)
        if shown.classifier == ALL:
            both = zip(found["group"], found["at"], strict=True)
            found = found.assign(group=[" · ".join(dict.fromkeys(pair)) for pair in both], at=name)
        tables.append(found)
    table = pd.concat(tables, ignore_index=True)
    told = f"Classifier {as_code(shown.classifier)}, " if shown.classifier != ALL else "Each classifier, "
    parts.show_figure("unfaithful_rates", table, key="rates", note=f"{told}{_said(shown)}", evidence=shown.evidence)
    with st.container(horizontal=True):
        for metric in (SCORED, "unfaithful_rate"):
            parts.show_card(metric)


def sweep(shown: Shown) -> None:
    """The rate at every threshold."""
    name = _one(shown)
    if name is None:
        return
    st.subheader("Does the threshold matter?")
    table = values.sweep_points(shown.values, shown.where, name, shown.threshold)
    parts.show_figure("threshold_sweep", table, key="sweep", note=f"Classifier {as_code(name)}.", evidence=shown.evidence)


def by_category(shown: Shown) -> None:
    name = _one(shown)
    if name is None:
        return
    table = values.category_points(shown.values, shown.where, name, shown.threshold)
    if table.empty:
        st.caption("The items have no category, so there are no rates by category.")
        return
    st.subheader("By category")
    places = list(dict.fromkeys(table["at"]))
    part = places[parts.page_of(len(places), "category-page", 12)]
    parts.show_figure(
        "unfaithful_by_category", table[table["at"].isin(part)], key="by-category",
        note=f"Classifier {as_code(name)}, {_said(shown)}", evidence=shown.evidence,
    )  # fmt: skip


def agreement(shown: Shown) -> None:
    """Whether classifiers mean the same."""
    if len(shown.names) < 2:
        return
    st.subheader("Do the classifiers agree?")
    found = values.kappa_pairs(shown.values, shown.threshold)
    parts.show_figure("classifier_agreement", found, key="agreement", note=_said(shown).capitalize(), evidence=shown.evidence)
    parts.show_card("classifier_kappa")


def judges(shown: Shown) -> None:
    """What judges say, where the runs hold judges' scores."""
    own = shown.values[shown.values["metric"] == JUDGE]
    st.subheader("Judge")
    if own.empty:
        st.caption("No chosen run has a judge's score: the scorer judge compares a base and a fine-tuned run, pair by pair.")
        return
    stored: dict[tuple[str, str], Interval] = {}
    for run_id, row in shown.runs.items():
        stored |= values.stored_means(run_id, data.estimates(run_id, int(row["revision"])))
    table = values.judge_points(shown.values, shown.where, stored)
    parts.show_figure("judge_by_epoch", table, key="judge", evidence=(page("run"), {"run": str(own["run"].iloc[0])}))
    with st.container(horizontal=True):
        for metric in (JUDGE, "judge_order_effect", "judge_length_rho"):
            parts.show_card(metric)


def chains(shown: Shown) -> None:
    """How long the chains are, and of which words."""
    known = set(shown.values[shown.values["value"].notna()]["metric"])
    sizes, has_ratio = {name: words for name, words in SIZES.items() if name in known}, RATIO in known
    if not sizes and not has_ratio:
        return
    st.subheader("The chains")
    if sizes:
        metric = parts.pick("Length in", sizes, "size")
        parts.show_figure(
            "chain_size", values.size_points(shown.values, shown.where, metric), key="size", evidence=shown.evidence
        )
    if has_ratio:
        parts.show_figure(
            "process_result", values.ratio_points(shown.values, shown.where), key="ratio", evidence=shown.evidence
        )
    with st.container(horizontal=True):
        for metric in (*sizes, PROCESS, RESULT, RATIO):
            parts.show_card(metric)


def fine_print(shown: Shown) -> None:
    st.caption(
        "Rates have Wilson intervals, lengths t, ratios log-t, all 95 % over items. Items that ask the same question count "
        "each, which makes intervals too narrow where prompts repeat. Two dots whose intervals overlap may still differ: "
        "the runs share their items, so compare them in pairs."
    )
    runs = list(shown.where)
    if len(runs) > 1:
        base = next((i for i in runs if "base" in data._plan(shown.runs[i]["plan"]).tags.values()), runs[0])
        rest = [i for i in runs if i != base]
        st.page_link(
            page("compare"), label="Compare in pairs", icon=":material/compare_arrows:",
            query_params=[("base", base), *(("other", i) for i in rest)],
        )  # fmt: skip


@st.cache_data(show_spinner="Reading scores", max_entries=16)
def _values(folder: str, runs: tuple[tuple[str, int], ...]) -> pd.DataFrame:
    scores, categories = {}, {}
    for run_id, _ in runs:
        scores[run_id] = read.scores(data.store(), run_id, metrics=values.METRICS)
        items = read.items_of_run(data.store(), run_id)
        categories[run_id] = dict(zip(items["id"], items["category"].fillna(""), strict=True))
    return values.item_values(scores, categories)


def _scores_it(row: Mapping[str, Any]) -> bool:
    return any(spec.name in SCORERS for spec in data._plan(row["plan"]).scorers)


def _alike(rows: list[dict[str, Any]]) -> list[str]:
    """The newest run, and those on its suite or of its model."""
    newest = rows[0]
    return [str(r["id"]) for r in rows if newest["suite"] == r["suite"] or newest["model"] == r["model"]][:MOST_RUNS]


def _one(shown: Shown) -> str | None:
    """The classifier of figures that show one; the first where all are shown side by side."""
    return shown.names[0] if shown.classifier == ALL else shown.classifier


def _said(shown: Shown) -> str:
    return f"unfaithful from a score of {shown.threshold:g} on."
