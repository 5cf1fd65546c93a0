"""The page Steps: which steps of a chain the answer depends on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.declare import FigureChoice, MissingFigure
from cotlab.analysis.tables.run import absent_modes_note, modes_note, run_ccs_metrics
from cotlab.analysis.view import RunView
from cotlab.core.resources import page_path
from cotlab.core.types import CCS_METRICS, MODE_ORDER, Item
from cotlab.store import read
from cotlab.ui import cached, charts, components
from cotlab.ui.address import bind_choice, report_unknown_value, write_address
from cotlab.ui.item.chain import (
    rank_steps,
    ranked_step_rows,
    render_ablation_replies,
    render_row_choice,
)
from cotlab.ui.item.chain_finding import equal_steps_text
from cotlab.ui.item.evidence import ITEM_VIEWS
from cotlab.ui.item.step_address import (
    STEP_PARAM,
    STEP_PARAMS,
    requested_step,
    step_changes,
    step_query,
)
from cotlab.ui.metric_names import metric_name
from cotlab.ui.pickers import select_option
from cotlab.ui.text import escape_markdown, shorten
from cotlab.ui.typical_item import find_typical_item

CHAIN_TAB_LABEL = ITEM_VIEWS["steps"]


def select_ccs_metric(row: RunView) -> str:
    """Choose the variant of CCS, the one that Validation speaks for most by default."""
    metrics = run_ccs_metrics(cached.cached_run_view(row)) or list(CCS_METRICS)
    metric: str = st.selectbox(
        "Effect of a step (CCS)", metrics, format_func=metric_name, **bind_choice("metric", metrics)
    )
    components.show_card(metric)
    return metric


def select_mode(row: RunView) -> str:
    """Choose the ablation mode for one chain, the one that tells most by default."""
    modes = sorted(_ablation_params(row)["modes"], key=MODE_ORDER.index)
    return str(st.selectbox("Mode", modes, **bind_choice("mode", modes)))


def _ablation_params(row: RunView) -> Mapping[str, Any]:
    plan = row.plan
    return next(spec.params for spec in plan.scorers if spec.name == "ablation")


def render_ccs_by_position(row: RunView, metric: str) -> None:
    """Show the mean CCS by position in the chain."""
    choice = FigureChoice(metric=metric)
    result = cached.run_figure_table(row.id, row.revision, "ccs_by_position", choice)
    if isinstance(result, MissingFigure):
        st.info("No step has been scored yet.")
        return
    note = f"n is the number of items that have that step. {result.note}".strip()
    charts.show_run_figure("ccs_by_position", result.table, "positions", row, note, choice=choice)


def render_mode_comparison(row: RunView) -> None:
    """Compare the ablation modes."""
    estimates = cached.load_estimates(row.id, row.revision)
    mode_estimates = estimates[estimates["metric"].isin(CCS_METRICS)]
    if mode_estimates.empty or mode_estimates["mode"].nunique() < 2:
        return
    note = modes_note(cached.cached_run_view(row))
    charts.show_run_figure("modes_by_metric", mode_estimates, "modes", row, note)


def render_redundancy(row: RunView, metric: str) -> None:
    """Show the share of steps without effect (RRR) by threshold."""
    estimates = cached.load_estimates(row.id, row.revision)
    estimates = estimates[estimates["ccs"] == metric]
    rrr_estimates = estimates[estimates["metric"] == "rrr"]
    if rrr_estimates.empty:
        st.info(
            "The share of steps without effect (RRR) is estimated when the run ends or is stopped."
        )
        return
    ceiling_by_mode = estimates[estimates["metric"] == "rrr_ceiling"].set_index("mode")["point"]
    table = rrr_estimates.assign(ceiling=rrr_estimates["mode"].map(ceiling_by_mode))
    note = (
        f"A step is without effect (redundant) where its CCS ({metric}) is below"
        f" {_ablation_params(row)['ccs_threshold']:g}."
        f" {absent_modes_note(cached.cached_run_view(row), [metric])}"
    ).strip()
    charts.show_run_figure(
        "rrr_by_mode", table, "rrr", row, note, choice=FigureChoice(metric=metric)
    )
    components.show_card("rrr")


def select_item(row: RunView) -> Item | None:
    """Choose an item; by default one whose answer changes about as often as the run's."""
    items = read.list_run_items(cached.store(), row.id)
    if items.empty:
        st.info("No item has been scored yet.")
        return None
    labels = {
        i: f"{i} · {shorten(question, 90)}"
        for i, question in zip(items["id"], items["question"], strict=True)
    }
    typical_item = find_typical_item(row.id, row.revision)
    default = None if typical_item is None else typical_item.item_id
    item_id = select_option("Item", labels, "item", default, cleared_params=STEP_PARAMS)
    return cached.load_item(row.suite, item_id)


def render_step_chain(row: RunView, item: Item, metric: str, mode: str) -> None:
    """Show the chain in reading order, its ranking, and the replies behind the chosen step."""
    scores = cached.cached_run_view(row).item_scores(item.id)
    scores = scores[(scores["metric"] == metric) & (scores["mode"] == mode)]
    ranking = rank_steps(row, item, scores)
    if ranking.empty:
        reasons = scores["reason"].dropna()
        st.info(
            "No step of this item has a score in this mode:"
            f" {escape_markdown(str(reasons.iloc[0])) if len(reasons) else 'no request was made'}."
        )
        return
    st.text(item.question)
    chosen_step = _requested_step(ranking)
    render_row_choice(
        ranked_step_rows(ranking),
        key=f"chain-{row.id}",
        selected_index=chosen_step,
        on_choice=lambda step: write_address(step_changes(step)),
    )
    equal_text = equal_steps_text(
        list(ranking["point"]),
        "It is 0 at every step.",
        "It is the same at every step: none stands out.",
    )
    st.caption(
        "Tint and number: causal contribution of the step (CCS); no tint: none."
        f"{equal_text} Choose a step to read its replies."
    )
    query = {"run": row.id, "item": item.id, "change": mode}
    if chosen_step is not None:
        query |= step_query(chosen_step)
    st.page_link(
        page_path("item"),
        label="What the model was given, and what it answered",
        icon=":material/article:",
        query_params=query,
    )
    if chosen_step is not None:
        render_ablation_replies(scores[scores["step"] == chosen_step], item, chosen_step)
    note = f"{metric}, {mode}; {int(ranking['draws'].max())} draw(s) of each request."
    evidence = (page_path("item"), {"run": row.id, "item": item.id})
    paper = charts.PaperFigure(
        row.id, "ccs_ranking", FigureChoice(item=item.id, metric=metric, mode=mode)
    )
    charts.show_figure(
        "ccs_ranking", ranking, key="ranking", note=note, evidence=evidence, paper=paper
    )


def _requested_step(ranking: pd.DataFrame) -> int | None:
    """Return the step that the address asks for, from 0; None where no such step has a score."""
    scored_steps = {int(step) for step in ranking["step"]}
    try:
        step = requested_step(max(scored_steps) + 1)
        if step is None or step in scored_steps:
            return step
    except ValueError:
        pass
    report_unknown_value(STEP_PARAM, st.query_params.get(STEP_PARAM, ""))
    return None


def render_step_notes(row: RunView, metric: str) -> None:
    """Explain CCS, RRR and their intervals."""
    plan = row.plan
    placement_text = (
        "as the model's own text" if plan.subject.form == "continuation" else "in the user's turn"
    )
    origin_text = (
        "the suite's" if _ablation_params(row)["chain"] == "reference" else "the model's own"
    )
    st.caption(
        f"Chains: {origin_text}, given {placement_text}. A step with a high CCS is load-bearing"
        " under that mode. A step without effect under removal is not thereby unfaithful: a later"
        " step may restate it. Where the model can continue a chain, the mode corrupt is more"
        " informative."
    )
