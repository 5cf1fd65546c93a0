"""The tab Steps: which steps of a chain the answer depends on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from cotlab.analysis.tables.declare import FigureChoice
from cotlab.analysis.tables.run import run_ccs_metrics
from cotlab.analysis.view import RunView
from cotlab.core.types import CCS_METRICS, MODE_ORDER, Item
from cotlab.ui import cached, charts, components
from cotlab.ui.address import bind_choice
from cotlab.ui.components import page_link
from cotlab.ui.metric_names import metric_name
from cotlab.ui.more import ITEM_SECTION, render_more
from cotlab.ui.pickers import select_item
from cotlab.ui.places import run_link
from cotlab.ui.run_notes import render_category_split
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
    """Show the ranking of the item's steps, and a link to what the model was given and answered."""
    st.text(item.question)
    charts.show(
        run,
        "ccs_ranking",
        FigureChoice(item=item.id, metric=metric, mode=mode),
        evidence=run_link(run.id, "items", item=item.id),
    )
    query = {"run": run.id, "item": item.id, "change": mode}
    page_link("items", "What the model was given, and what it answered", "article", query)


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
