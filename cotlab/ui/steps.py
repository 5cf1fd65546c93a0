"""The page Steps: which steps of a chain the answer depends on."""

from __future__ import annotations

from typing import Any

import streamlit as st

from cotlab.analysis.tables.declare import Choice, NoFigure
from cotlab.analysis.tables.run import run_ccs_metrics
from cotlab.core.resources import page
from cotlab.core.types import Item
from cotlab.core.vocabulary import CCS_METRICS
from cotlab.store import read
from cotlab.ui import cached, components
from cotlab.ui.item.chain import pick_block, show_exchange, step_blocks, step_ranking
from cotlab.ui.pickers import select_option
from cotlab.ui.text import as_code, shorten


def select_ccs_metric(row: dict[str, Any]) -> str:
    """Choose the variant of CCS."""
    metrics = run_ccs_metrics(cached.view(row))
    metric: str = st.selectbox(
        "CCS",
        metrics or list(CCS_METRICS),
        key="metric",
        bind="query-params",
        persist_state="session",
    )
    components.show_card(metric)
    return metric


def select_mode(row: dict[str, Any]) -> str:
    """Choose the ablation mode for one chain."""
    spec = next(s for s in cached.run_plan(row["id"]).scorers if s.name == "ablation")
    return str(
        st.selectbox(
            "Mode", spec.params["modes"], key="mode", bind="query-params", persist_state="session"
        )
    )


def render_by_position(row: dict[str, Any], metric: str) -> None:
    """Show the mean CCS by position in the chain."""
    choice = Choice(metric=metric)
    result = cached.table(row["id"], int(row["revision"]), "ccs_by_position", choice)
    if isinstance(result, NoFigure):
        st.info("No step has been scored yet.")
        return
    components.show_figure(
        "ccs_by_position",
        result.table,
        key="positions",
        evidence=(page("run"), {"run": row["id"]}),
        note="n is the number of items that have that step.",
    )


def render_modes(row: dict[str, Any]) -> None:
    """Compare the ablation modes."""
    estimates = cached.estimates(row["id"], int(row["revision"]))
    visible = estimates[estimates["metric"].isin(CCS_METRICS)]
    if visible.empty or visible["mode"].nunique() < 2:
        return
    components.show_figure(
        "modes_by_metric",
        visible,
        key="modes",
        evidence=(page("run"), {"run": row["id"]}),
        note="Mean over items of each item's mean CCS.",
    )


def render_redundancy(row: dict[str, Any], metric: str) -> None:
    """Show the share of steps without effect (RRR) by threshold."""
    estimates = cached.estimates(row["id"], int(row["revision"]))
    rrr = estimates[(estimates["metric"] == "rrr") & (estimates["ccs"] == metric)]
    if rrr.empty:
        st.info(
            "The share of steps without effect (RRR) is estimated when the run ends or is stopped."
        )
        return
    ceiling = estimates[
        (estimates["metric"] == "rrr_ceiling") & (estimates["ccs"] == metric)
    ].set_index("mode")["point"]
    spec = next(s for s in cached.run_plan(row["id"]).scorers if s.name == "ablation")
    components.show_figure(
        "rrr_by_mode",
        rrr.assign(ceiling=rrr["mode"].map(ceiling)),
        key="rrr",
        evidence=(page("run"), {"run": row["id"]}),
        note=(
            f"A step is without effect (redundant) where its CCS ({metric}) is below"
            f" {spec.params['ccs_threshold']:g}."
        ),
    )
    components.show_card("rrr")


def select_item(row: dict[str, Any]) -> Item | None:
    """Choose an item, the first scored one by default."""
    table = read.items_of_run(cached.store(), row["id"])
    if table.empty:
        st.info("No item has been scored yet.")
        return None
    labels = {
        i: f"{i} · {shorten(question, 90)}"
        for i, question in zip(table["id"], table["question"], strict=True)
    }
    return cached.load_item(row["suite"], select_option("Item", labels, "item", resets=("step",)))


def render_step_chain(row: dict[str, Any], item: Item, metric: str, mode: str) -> None:
    """Show the chain in reading order, its ranking, and the replies behind the chosen step."""
    scores = cached.view(row).item_scores(item.id)
    scores = scores[(scores["metric"] == metric) & (scores["mode"] == mode)]
    ranked = step_ranking(row, item, scores)
    if ranked.empty:
        reasons = scores["reason"].dropna()
        st.info(
            "No step of this item has a score in this mode:"
            f" {as_code(str(reasons.iloc[0])) if len(reasons) else 'no request was made'}."
        )
        return
    st.text(item.question)
    chosen = pick_block(step_blocks(ranked), key=f"chain-{row['id']}-{item.id}-{mode}-{metric}")
    st.caption(
        "Colour and number: causal contribution of the step (CCS). Choose a step to"
        " read its replies."
    )
    if chosen is not None:
        show_exchange(scores[scores["step"] == chosen], item, chosen)
    components.show_figure(
        "ccs_ranking",
        ranked,
        key="ranking",
        note=f"{metric}, {mode}; {int(ranked['draws'].max())} draw(s) of each request.",
        evidence=(page("item"), {"run": row["id"], "item": item.id}),
    )


def render_step_notes(row: dict[str, Any], metric: str) -> None:
    """Explain CCS, RRR and their intervals."""
    plan = cached.run_plan(row["id"])
    spec = next(s for s in plan.scorers if s.name == "ablation")
    given = (
        "as the model's own text" if plan.subject.form == "continuation" else "in the user's turn"
    )
    whose = "the suite's" if spec.params["chain"] == "reference" else "the model's own"
    st.caption(
        f"Chains: {whose}, given {given}. A step with a high CCS is load-bearing under that"
        " mode. A step without effect under removal is not thereby unfaithful: a later step"
        " may restate it. Where the model can continue a chain, the mode corrupt is more"
        " informative."
    )
