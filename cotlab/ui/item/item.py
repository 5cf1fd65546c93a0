"""The page Item: its question, its chain step by step, its scores, and the requests behind them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.reliability import composite_components
from cotlab.analysis.tables.step_effects import measured_modes
from cotlab.analysis.view import RunView, with_facet_columns
from cotlab.core.errors import UnknownName
from cotlab.core.resources import page_path
from cotlab.core.types import CCS_METRICS, Item
from cotlab.metrics.consistency import HOLDOUT_DIFFERENCE
from cotlab.run.scored_chain import MODEL_CHAIN_SCORERS
from cotlab.ui import cached, components, run_notes
from cotlab.ui.address import store_default
from cotlab.ui.item import first_mistake
from cotlab.ui.item.chain import (
    TextRow,
    ablates_model_chain,
    load_original_steps,
    load_scored_chain,
    render_entropy,
    render_rows,
    warn_if_divided_otherwise,
)
from cotlab.ui.item.evidence import ITEM_VIEWS
from cotlab.ui.item.header import LINKS_KEY, missing_chain_text, render_item_header
from cotlab.ui.item.item_list import item_filter, load_item_list
from cotlab.ui.item.reader import read_chain, render_reader
from cotlab.ui.item.reader_data import few_replies_text, limit_lines
from cotlab.ui.item.requests import (
    REQUESTS_KEY,
    has_selected_requests,
    render_item_requests,
    select_request,
)
from cotlab.ui.item.scores import render_item_scores
from cotlab.ui.item.step_marks import load_step_marks
from cotlab.ui.item.suggestion import render_suggestion
from cotlab.ui.label import items as label_items
from cotlab.ui.label.in_place import render_label_form
from cotlab.ui.new_run.added_cost import added_cost_text
from cotlab.ui.text import escape_markdown, shorten


def load_run_and_item() -> tuple[RunView, Item] | None:
    """Return the run and the item that the address names; None (with a message) without them.

    Without an item it is the first of the run that the address lists.
    """
    run_id, item_id = st.query_params.get("run"), st.query_params.get("item")
    if not run_id:
        _render_no_item("No run is named in the address.", "runs", "All runs")
        return None
    name = escape_markdown(shorten(run_id))
    try:
        row = cached.stored_run(run_id)
    except UnknownName:
        text = f"There is no run {name} in this store."
        _render_no_item(text, "runs", "All runs")
        return None
    if not item_id:
        item_list = load_item_list(row, item_filter(), None)
        if not item_list.counts.all:
            text = f"Run {name} has no scored item yet."
            _render_no_item(text, "run", "The run", {"run": run_id})
            return None
        if not item_list.items:
            text = f"No item of run {name} is as the address asks for."
            _render_no_item(text, "item", "All items", {"run": run_id})
            return None
        item_id = item_list.items[0].id
        store_default("item", item_id)
    try:
        return row, cached.load_item(row.suite, item_id)
    except UnknownName:
        text = f"Run {name} has no item {escape_markdown(shorten(item_id))}."
        _render_no_item(text, "run", "Its items", {"run": run_id, "items": "true"})
        return None


def _render_no_item(text: str, page: str, label: str, query: dict[str, str] | None = None) -> None:
    components.render_heading(
        "Item", "What was the question, what did the model reply, and how does it score?"
    )
    components.render_empty_state(text, page_path(page), label, query)


def visible_scores(row: RunView, item: Item) -> pd.DataFrame:
    """Return the item's scores without those of the hold-out, which must not be tuned on."""
    table = cached.cached_run_view(row).item_scores(item.id)
    return table[table["metric"] != HOLDOUT_DIFFERENCE.name]


def render_item_page(row: RunView, item: Item) -> None:
    """Show an item: its question and answers, its chain step by step, its scores and labels."""
    scores = visible_scores(row, item)
    steps, is_model_chain = load_measured_steps(row, item, scores)
    has_effects = bool(measured_modes(scores)) and bool(steps)
    run_notes.render_run_notes(row)
    if has_effects:
        _render_reading(row, item, scores, steps, is_model_chain)
    else:
        _render_header(row, item, scores, steps, is_model_chain)
        st.header("Chain")
        _render_plain_chain(row, item, scores)
        _render_unmeasured_note(row, item, scores)
    render_suggestion(row, item, scores)
    first_mistake.render_first_mistake(row, item)
    render_entropy(row, item)
    render_item_scores(row, item, scores)
    label_items.render_item_labels(row, item)
    render_label_form(row, item, "Label this chain")
    if not has_effects:
        render_item_requests(row, item, scores)


def load_measured_steps(
    row: RunView, item: Item, scores: pd.DataFrame
) -> tuple[Sequence[str], bool]:
    """Return the steps of the chain that the page shows, and whether the model wrote it."""
    if measured_modes(scores):
        return load_original_steps(row, item, scores), ablates_model_chain(row)
    chain = load_scored_chain(row, item, scores)
    return chain.steps, chain.from_model


def _render_header(
    row: RunView,
    item: Item,
    scores: pd.DataFrame,
    steps: Sequence[str],
    is_model_chain: bool,
) -> None:
    """Show the head of the page, and a link to the requests that the address names."""
    render_item_header(row, item, scores, steps, is_model_chain)
    if has_selected_requests():
        st.markdown("[Go to the requests behind this number](#requests-and-replies)")


@st.fragment
def _render_reading(
    row: RunView,
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
    _render_header(row, item, scores, steps, is_model_chain)
    warn_if_divided_otherwise(row, is_model_chain)
    reading = read_chain(scores, steps, row.plan.temperature)
    if reading is None:
        return
    marks = load_step_marks(row, item, scores, is_model_chain=is_model_chain)
    targets = {"e": REQUESTS_KEY, "l": LINKS_KEY}
    render_reader(row, item, scores, reading, marks, targets)
    render_item_requests(row, item, scores, reading)
    with st.expander(f"What this does not show: {few_replies_text(reading)}"):
        components.show_escaped_lines(limit_lines(reading))


def _render_unmeasured_note(row: RunView, item: Item, scores: pd.DataFrame) -> None:
    """Say why no effect of a step is shown, and where to measure it, or to see another change."""
    ccs_scores = scores[scores["metric"].isin(CCS_METRICS)]
    reasons = ccs_scores["reason"].dropna().unique().tolist()
    if len(ccs_scores):
        reason = str(reasons[0]) if reasons else "the run has no scores of changed answers"
        st.info(f"What happens when a step changes: n/a, {escape_markdown(reason)}.")
        return
    is_planned = any(spec.name == "ablation" for spec in cached.stored_run(row.id).plan.scorers)
    if is_planned and components.current_status(row) == "running":
        st.info(
            "What happens to the answer when a step changes is not measured yet: the run goes on."
        )
        return
    perturbation = with_facet_columns(scores, "perturbation")["perturbation"]
    if ((perturbation == "numeric") & scores["value"].notna()).any():
        st.info(
            "What other numbers in its steps do to the answer is on the page Robustness. What a"
            " step does that states something else, or is left out, was not measured in this run."
        )
        query = {"run": row.id, "item": item.id, "view": ITEM_VIEWS["robustness"]}
        components.page_link("robustness", "This item with other numbers", "grid_on", query)
    else:
        st.info("What happens to the answer when a step changes was not measured in this run.")
    label = f"Measure it ({added_cost_text(row, 'change')})"
    components.page_link("new_run", label, "add", {"from": row.id, "measure": "change"})


def _render_plain_chain(row: RunView, item: Item, scores: pd.DataFrame) -> None:
    """Show the chain without scores, and who wrote it."""
    chain = load_scored_chain(row, item, scores)
    if chain.steps:
        marks = load_step_marks(row, item, scores, is_model_chain=chain.from_model)
        render_rows(
            [
                TextRow(i, f"{i + 1}", text, score=marks.get(i, ""), tint=0.0)
                for i, text in enumerate(chain.steps)
            ],
            key=f"plain-{row.id}-{item.id}",
        )
    else:
        st.info(f"n/a: {missing_chain_text(scores, chain.from_model)}.")
    note = ""
    if chain.steps:
        note = "The suite's reference chain."
        if chain.from_model:
            note = "The model's own chain, as it replied in this run."
    model_chain_scorers = sorted(set(scores["scorer"]) & set(MODEL_CHAIN_SCORERS))
    if not chain.from_model and (model_chain_scorers or composite_components(row.plan)):
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
