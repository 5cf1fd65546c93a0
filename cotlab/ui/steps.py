"""The parts of the page Steps."""

from __future__ import annotations

from typing import Any

import streamlit as st

from cotlab.analysis.tables.declare import Choice, NoFigure
from cotlab.analysis.tables.run import run_ccs_metrics
from cotlab.core.types import Item
from cotlab.metrics.ablation.cards import CCS_METRICS
from cotlab.store import read
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.item.chain import show_exchange, step_blocks, step_ranking
from cotlab.ui.item.chain_view import pick_block
from cotlab.ui.links import page
from cotlab.ui.text import as_code, shorten


def select_ccs_metric(row: dict[str, Any]) -> str:
    """The CCS to look at, in the address."""
    metrics = run_ccs_metrics(data.view(row))
    metric: str = st.selectbox(
        "CCS",
        metrics or list(CCS_METRICS),
        key="metric",
        bind="query-params",
        persist_state="session",
    )
    parts.show_card(metric)
    return metric


def select_mode(row: dict[str, Any]) -> str:
    """The mode to look at in one chain, in the address."""
    spec = next(s for s in data.run_plan(row["id"]).scorers if s.name == "ablation")
    return str(
        st.selectbox(
            "Mode", spec.params["modes"], key="mode", bind="query-params", persist_state="session"
        )
    )


def render_by_position(row: dict[str, Any], metric: str) -> None:
    choice = Choice(metric=metric)
    result = data.table(row["id"], int(row["revision"]), "ccs_by_position", choice)
    if isinstance(result, NoFigure):
        st.info("No step has been scored yet.")
        return
    parts.show_figure(
        "ccs_by_position",
        result.table,
        key="positions",
        evidence=(page("run"), {"run": row["id"]}),
        note="n is the number of items that have that step.",
    )


def render_modes(row: dict[str, Any]) -> None:
    estimates = data.estimates(row["id"], int(row["revision"]))
    visible = estimates[estimates["metric"].isin(CCS_METRICS)]
    if visible.empty or visible["mode"].nunique() < 2:
        return
    parts.show_figure(
        "modes_by_metric",
        visible,
        key="modes",
        evidence=(page("run"), {"run": row["id"]}),
        note="Mean over items of each item's mean CCS.",
    )


def render_redundancy(row: dict[str, Any], metric: str) -> None:
    estimates = data.estimates(row["id"], int(row["revision"]))
    rrr = estimates[(estimates["metric"] == "rrr") & (estimates["ccs"] == metric)]
    if rrr.empty:
        st.info("RRR is estimated when the run ends or is stopped.")
        return
    ceiling = estimates[
        (estimates["metric"] == "rrr_ceiling") & (estimates["ccs"] == metric)
    ].set_index("mode")["point"]
    spec = next(s for s in data.run_plan(row["id"]).scorers if s.name == "ablation")
    parts.show_figure(
        "rrr_by_mode",
        rrr.assign(ceiling=rrr["mode"].map(ceiling)),
        key="rrr",
        evidence=(page("run"), {"run": row["id"]}),
        note=(
            f"A step is redundant where its CCS ({metric}) is below"
            f" {spec.params['ccs_threshold']:g}."
        ),
    )
    parts.show_card("rrr")


def select_item(row: dict[str, Any]) -> Item | None:
    """The item of the address, or the first that was scored."""
    table = read.items_of_run(data.store(), row["id"])
    if table.empty:
        st.info("No item has been scored yet.")
        return None
    labels = {
        i: f"{i} · {shorten(question, 90)}"
        for i, question in zip(table["id"], table["question"], strict=True)
    }
    return data.load_item(
        row["suite"], parts.select_option("Item", labels, "item", resets=("step",))
    )


def render_step_chain(row: dict[str, Any], item: Item, metric: str, mode: str) -> None:
    """The chain in reading order, its ranking beside it, and what happened to the chosen step."""
    scores = data.view(row).item_scores(item.id)
    scores = scores[(scores["metric"] == metric) & (scores["mode"] == mode)]
    ranked = step_ranking(row, item, scores)
    if ranked.empty:
        reasons = scores["reason"].dropna()
        st.info(
            "No step of this item has a score in this mode:"
            f" {as_code(str(reasons.iloc[0])) if len(reasons) else 'none was asked'}."
        )
        return
    st.text(item.question)
    chosen = pick_block(step_blocks(ranked), key=f"chain-{row['id']}-{item.id}-{mode}-{metric}")
    st.caption("Shade and number: CCS of the step. Choose a step to read its replies.")
    if chosen is not None:
        show_exchange(scores[scores["step"] == chosen], item, chosen)
    parts.show_figure(
        "ccs_ranking",
        ranked,
        key="ranking",
        note=f"{metric}, {mode}; {int(ranked['draws'].max())} draw(s) of each request.",
        evidence=(page("item"), {"run": row["id"], "item": item.id}),
    )


def render_step_notes(row: dict[str, Any], metric: str) -> None:
    plan = data.run_plan(row["id"])
    spec = next(s for s in plan.scorers if s.name == "ablation")
    given = (
        "as the model's own text" if plan.subject.form == "continuation" else "in the user's turn"
    )
    whose = "the suite's" if spec.params["chain"] == "reference" else "the model's own"
    st.caption(
        f"Chains: {whose}, given {given}. A step with a high CCS is load-bearing under that mode. A"
        " step without effect under removal is not thereby unfaithful: a later step may restate"
        " it. Where the model can continue a chain, corrupt says more."
    )
