"""The tab Items of a run; of one item its chain step by step, its scores, and their requests."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.reliability import composite_components
from cotlab.analysis.tables.step_effects import measured_modes
from cotlab.analysis.view import RunView, with_facet_columns
from cotlab.core.errors import UnknownName
from cotlab.core.types import CCS_METRICS, Item
from cotlab.metrics.consistency import HOLDOUT_DIFFERENCE
from cotlab.run.scored_chain import MODEL_CHAIN_SCORERS
from cotlab.ui import cached, components
from cotlab.ui.item.chain import (
    TextRow,
    ablates_model_chain,
    load_original_steps,
    load_scored_chain,
    render_entropy,
    render_rows,
    warn_if_divided_otherwise,
)
from cotlab.ui.item.header import missing_chain_text, render_item_header
from cotlab.ui.item.item_list import FILTER_PARAMS
from cotlab.ui.item.reader import read_chain, render_reader
from cotlab.ui.item.reader_data import few_replies_text, limit_lines
from cotlab.ui.item.requests import (
    REQUESTS_KEY,
    has_selected_requests,
    render_item_requests,
    render_item_scores,
    select_request,
)
from cotlab.ui.item.step_marks import load_step_marks
from cotlab.ui.item.suggestion import render_first_mistake, render_suggestion
from cotlab.ui.label import items as label_items
from cotlab.ui.label.in_place import render_label_form
from cotlab.ui.runs.items import render_run_items
from cotlab.ui.text import escape_markdown, shorten

LINKS_KEY = "item-links"
"""Key of the container of the links above an item; L on the keyboard opens the one to Label."""


def render_items_tab(run: RunView) -> None:
    """Show the items of a run, or the one that the address names."""
    item_id = st.query_params.get("item")
    if item_id is None:
        render_run_items(run)
        return
    with st.container(horizontal=True, key=LINKS_KEY):
        filters = {name: st.query_params[name] for name in FILTER_PARAMS if name in st.query_params}
        components.page_link("items", "All items", "arrow_back", {"run": run.id, **filters})
        query = {"base": run.id, "item": item_id}
        components.page_link("compare", "Compare this item", "compare_arrows", query)
        components.page_link("label", "Label", "rate_review")
    try:
        item = cached.load_item(run.suite, item_id)
    except UnknownName:
        st.info(f"Run {escape_markdown(run.id)} has no item {escape_markdown(shorten(item_id))}.")
        return
    render_item_page(run, item)


def visible_scores(run: RunView, item: Item) -> pd.DataFrame:
    """Return the item's scores without those of the hold-out, which must not be tuned on."""
    table = cached.cached_run_view(run).item_scores(item.id)
    return table[table["metric"] != HOLDOUT_DIFFERENCE.name]


def render_item_page(run: RunView, item: Item) -> None:
    """Show an item: its question and answers, its chain step by step, its scores and labels."""
    scores = visible_scores(run, item)
    steps, is_model_chain = load_measured_steps(run, item, scores)
    has_effects = bool(measured_modes(scores)) and bool(steps)
    if has_effects:
        _render_reading(run, item, scores, steps, is_model_chain)
    else:
        _render_header(run, item, scores, steps, is_model_chain)
        st.header("Chain")
        _render_plain_chain(run, item, scores)
        _render_unmeasured_note(run, item, scores)
    render_suggestion(run, item, scores)
    render_first_mistake(run, item)
    render_entropy(run, item)
    render_item_scores(run, item, scores)
    label_items.render_item_labels(run, item)
    render_label_form(run, item, "Label this chain")
    if not has_effects:
        render_item_requests(run, item, scores)


def load_measured_steps(
    run: RunView, item: Item, scores: pd.DataFrame
) -> tuple[Sequence[str], bool]:
    """Return the steps of the chain that the page shows, and whether the model wrote it."""
    if measured_modes(scores):
        return load_original_steps(run, item, scores), ablates_model_chain(run)
    chain = load_scored_chain(run, item, scores)
    return chain.steps, chain.from_model


def _render_header(
    run: RunView,
    item: Item,
    scores: pd.DataFrame,
    steps: Sequence[str],
    is_model_chain: bool,
) -> None:
    """Show the head of the page, and a link to the requests that the address names."""
    render_item_header(run, item, scores, steps, is_model_chain)
    if has_selected_requests():
        st.markdown("[Go to the requests behind this number](#requests-and-replies)")


@st.fragment
def _render_reading(
    run: RunView,
    item: Item,
    scores: pd.DataFrame,
    steps: Sequence[str],
    is_model_chain: bool,
) -> None:
    """Show the head, the chain step by step, and the requests behind the chosen step.

    A fragment: another step or change runs only this part of the page again. The head is in it, so
    that its links to other items keep the change.
    """
    if st.query_params.get("item", item.id) != item.id:
        st.rerun()  # the head's links lead to another item
    _render_header(run, item, scores, steps, is_model_chain)
    warn_if_divided_otherwise(run, is_model_chain)
    reading = read_chain(scores, steps, run.plan.temperature)
    if reading is None:
        return
    marks = load_step_marks(run, item, scores, is_model_chain=is_model_chain)
    targets = {"e": REQUESTS_KEY, "l": LINKS_KEY}
    render_reader(run, item, scores, reading, marks, targets)
    render_item_requests(run, item, scores, reading)
    with st.expander(f"What this does not show: {few_replies_text(reading)}"):
        components.show_escaped_lines(limit_lines(reading))


def _render_unmeasured_note(run: RunView, item: Item, scores: pd.DataFrame) -> None:
    """Say why no effect of a step is shown, and where to measure it, or to see another change."""
    ccs_scores = scores[scores["metric"].isin(CCS_METRICS)]
    reasons = ccs_scores["reason"].dropna().unique().tolist()
    if len(ccs_scores):
        reason = str(reasons[0]) if reasons else "the run has no scores of changed answers"
        st.info(f"What happens when a step changes: n/a, {escape_markdown(reason)}.")
        return
    is_planned = any(spec.name == "ablation" for spec in cached.stored_run(run.id).plan.scorers)
    if is_planned and components.current_status(run) == "running":
        st.info(
            "What happens to the answer when a step changes is not measured yet: the run goes on."
        )
        return
    perturbation = with_facet_columns(scores, "perturbation")["perturbation"]
    if ((perturbation == "numeric") & scores["value"].notna()).any():
        st.info(
            "What other numbers in its steps do to the answer is on the tab Robustness. What a"
            " step does that states something else, or is left out, was not measured in this run."
        )
        query = {"run": run.id, "item": item.id}
        components.page_link("robustness", "This item with other numbers", "grid_on", query)
    else:
        st.info("What happens to the answer when a step changes was not measured in this run.")
    components.page_link("new_run", "Measure it", "add", {"from": run.id, "measure": "change"})


def _render_plain_chain(run: RunView, item: Item, scores: pd.DataFrame) -> None:
    """Show the chain without scores, and who wrote it."""
    chain = load_scored_chain(run, item, scores)
    if chain.steps:
        marks = load_step_marks(run, item, scores, is_model_chain=chain.from_model)
        render_rows(
            [
                TextRow(i, f"{i + 1}", text, score=marks.get(i, ""), tint=0.0)
                for i, text in enumerate(chain.steps)
            ],
            key=f"plain-{run.id}-{item.id}",
        )
    else:
        st.info(f"n/a: {missing_chain_text(scores, chain.from_model)}.")
    note = ""
    if chain.steps:
        note = "The suite's reference chain."
        if chain.from_model:
            note = "The model's own chain, as it replied in this run."
    model_chain_scorers = sorted(set(scores["scorer"]) & set(MODEL_CHAIN_SCORERS))
    if not chain.from_model and (model_chain_scorers or composite_components(run.plan)):
        note += (
            " Consistency and diversity are measured on chains that the model wrote; these"
            " are among its requests."
        )
    if note:
        st.caption(note.strip())
    if chain.key is not None:
        st.button(
            "Its request and reply",
            icon=":material/fact_check:",
            on_click=select_request,
            args=(chain.key,),
        )
