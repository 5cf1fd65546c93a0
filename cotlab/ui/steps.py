"""The tab Steps: which steps of a chain the answer depends on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.declare import FigureChoice
from cotlab.analysis.tables.run import run_ccs_metrics
from cotlab.analysis.view import RunView
from cotlab.core.types import CCS_METRICS, MODE_ORDER, Item
from cotlab.ui import cached, charts, components
from cotlab.ui.address import (
    STEP_PARAM,
    bind_choice,
    report_unknown_value,
    requested_step,
    step_query,
    write_address,
)
from cotlab.ui.components import page_link
from cotlab.ui.item.chain import (
    rank_steps,
    ranked_step_rows,
    render_ablation_replies,
    render_row_choice,
)
from cotlab.ui.item.reader_data import equal_steps_text
from cotlab.ui.metric_names import metric_name
from cotlab.ui.more import ITEM_SECTION, render_more
from cotlab.ui.pickers import select_item
from cotlab.ui.places import run_link
from cotlab.ui.run_notes import render_category_split
from cotlab.ui.text import escape_markdown
from cotlab.ui.verdict_number import render_verdict_number


def render_steps_tab(run: RunView) -> None:
    """Show which steps the answer depends on, over the suite and in one chain."""
    render_verdict_number(run.id)
    render_category_split(run)
    metric = select_ccs_metric(run)
    charts.show(
        run,
        "ccs_by_position",
        FigureChoice(metric=metric),
        note="n is the number of items that have that step.",
    )
    render_more("one chain", partial(_render_chain, run, metric), **ITEM_SECTION)
    render_more(
        "by kind of change, and steps without effect",
        partial(charts.show, run, "modes_by_metric"),
        partial(render_redundancy, run, metric),
    )
    render_step_notes(run, metric)


def _render_chain(run: RunView, metric: str) -> None:
    item = select_item(run)
    if item is not None:
        render_step_chain(run, item, metric, select_mode(run))


def select_ccs_metric(run: RunView) -> str:
    """Choose the variant of CCS, the one that Validation speaks for most by default."""
    metrics = run_ccs_metrics(cached.cached_run_view(run)) or list(CCS_METRICS)
    metric: str = st.selectbox(
        "Effect of a step (CCS)", metrics, format_func=metric_name, **bind_choice("metric", metrics)
    )
    components.show_card(metric)
    return metric


def select_mode(run: RunView) -> str:
    """Choose the ablation mode for one chain, the one that tells most by default."""
    modes = sorted(_ablation_params(run)["modes"], key=MODE_ORDER.index)
    return str(st.selectbox("Mode", modes, **bind_choice("mode", modes)))


def _ablation_params(run: RunView) -> Mapping[str, Any]:
    plan = run.plan
    return next(spec.params for spec in plan.scorers if spec.name == "ablation")


def render_redundancy(run: RunView, metric: str) -> None:
    """Show the share of steps without effect (RRR) by mode, with what it can be at most."""
    charts.show(run, "rrr_by_mode", FigureChoice(metric=metric))
    components.show_card("rrr")


def render_step_chain(run: RunView, item: Item, metric: str, mode: str) -> None:
    """Show the chain in reading order, its ranking, and the replies behind the chosen step."""
    scores = cached.cached_run_view(run).item_scores(item.id)
    scores = scores[(scores["metric"] == metric) & (scores["mode"] == mode)]
    ranking = rank_steps(run, item, scores)
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
        key=f"chain-{run.id}",
        selected_index=chosen_step,
        on_choice=lambda step: write_address(step_query(step)),
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
    query = {"run": run.id, "item": item.id, "change": mode}
    if chosen_step is not None:
        query |= step_query(chosen_step)
    page_link("items", "What the model was given, and what it answered", "article", query)
    if chosen_step is not None:
        render_ablation_replies(scores[scores["step"] == chosen_step], item, chosen_step)
    charts.show(
        run,
        "ccs_ranking",
        FigureChoice(item=item.id, metric=metric, mode=mode),
        note=f"{int(ranking['draws'].max())} draw(s) of each request.",
        evidence=run_link(run.id, "items", item=item.id),
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


def render_step_notes(run: RunView, metric: str) -> None:
    """Explain CCS, RRR and their intervals."""
    plan = run.plan
    placement_text = (
        "as the model's own text" if plan.subject.form == "continuation" else "in the user's turn"
    )
    origin_text = (
        "the suite's" if _ablation_params(run)["chain"] == "reference" else "the model's own"
    )
    st.caption(
        f"Chains: {origin_text}, given {placement_text}. A step with a high CCS is load-bearing"
        " under that mode. A step without effect under removal is not thereby unfaithful: a later"
        " step may restate it. Where the model can continue a chain, the mode corrupt is more"
        " informative."
    )
