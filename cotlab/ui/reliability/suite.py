"""The page Reliability, the whole suite: its components, items, correlations and diagnoses."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import reliability as tables
from cotlab.analysis.tables.chains import (
    ParaphraseChain,
    cosine_table,
    embedded_vectors,
    paraphrase_chains,
    wording_labels,
)
from cotlab.core.resources import page
from cotlab.core.types import Item
from cotlab.figures.reliability import COMPONENT_ORDER, NAMES
from cotlab.figures.style import format_number
from cotlab.metrics.composite.scorer import FEATURES, SCORER_OF
from cotlab.ui import cached, components
from cotlab.ui.item import evidence
from cotlab.ui.item.chain import Block, show_blocks
from cotlab.ui.pickers import select_option
from cotlab.ui.text import as_code

CARDS = {part: FEATURES[part][1] for part in COMPONENT_ORDER if part in FEATURES} | {
    "r_raw": "r_raw"
}
"""Metric whose card describes a component."""


def render_component_means(row: dict[str, Any]) -> None:
    """Show each component's mean with its interval and n."""
    rows = tables.component_scores(_scores(row))
    if rows.empty:
        st.info("No item has been scored for reliability yet.")
        return
    table = tables.component_means(rows, cached.estimates(row["id"], int(row["revision"])))
    absent = [part for part in COMPONENT_ORDER if part not in set(rows["part"])]
    if table.empty:
        st.info(
            "The means are estimated when the run ends or is stopped. Single items are in the table"
            " and under One item."
        )
    else:
        left_out = (
            f"Not measured in this run: {', '.join(_component_label(part) for part in absent)}."
            if absent
            else ""
        )
        components.show_run_figure("reliability_parts", table, "parts", row, note=left_out)
    with st.container(horizontal=True):
        for part, metric in CARDS.items():
            if part not in absent:
                components.show_card(metric)


def render_reliability_items(row: dict[str, Any]) -> None:
    """List every item with its components and diagnoses, sorted across all pages."""
    scores = _scores(row)
    rows = tables.component_scores(scores)
    if rows.empty:
        return
    st.subheader("Items")
    table = tables.item_reliability_rows(rows, scores)
    measured = [part for part in COMPONENT_ORDER if part in table.columns]
    table = _only_diagnosed(table)
    orders = {"item": "item"}
    for part in reversed(measured):
        orders |= {f"{part}-up": f"{part}, lowest first", f"{part}-down": f"{part}, highest first"}
    by, _, direction = select_option("Sorted by", orders, "sort").partition("-")
    table = table.sort_values(
        [by, "item"], ascending=[direction != "down", True], na_position="last"
    )
    visible = table.iloc[components.page_slice(len(table), f"items-{row['id']}")].reset_index(
        drop=True
    )
    visible.insert(
        0,
        "open",
        [
            f"/reliability?run={row['id']}&item={quote(item, safe='')}&view=One+item"
            for item in visible["item"]
        ],
    )
    st.dataframe(
        visible.style.format(components.number_text, subset=measured),
        hide_index=True,
        key="item-table",
        placeholder="n/a",
        height="content" if len(visible) < 13 else 460,
        column_config={
            "open": st.column_config.LinkColumn("open", display_text="open", width="small"),
            "item": st.column_config.TextColumn("item", width="small"),
            **{
                part: st.column_config.NumberColumn(part, width=70, help=NAMES[part])
                for part in measured
            },
            "diagnosis": st.column_config.TextColumn("diagnosis", width="medium"),
            "why n/a": st.column_config.TextColumn("reason", width="large"),
        },
    )
    stopped = rows[rows["status"] == "stopped"]["item_id"].nunique()
    halted = (
        (f" {stopped} stopped at a hard floor: they are escalated, and have no composite score.")
        if stopped
        else ""
    )
    st.caption(f"{len(visible)} of {len(table)} items; n/a is sorted last.{halted}")


def _only_diagnosed(table: pd.DataFrame) -> pd.DataFrame:
    """Return the items with the chosen diagnosis; all where none is chosen or the run has none."""
    fired = sorted({rule for text in table["diagnosis"] for rule in text.split(", ") if rule})
    if not fired:
        return table
    counts = {rule: sum(rule in text.split(", ") for text in table["diagnosis"]) for rule in fired}
    labels = {"any": "any or none"} | {rule: f"{rule} · {counts[rule]} items" for rule in fired}
    rule = select_option("Diagnosis", labels, "diagnosis")
    return (
        table if rule == "any" else table[[rule in text.split(", ") for text in table["diagnosis"]]]
    )


def render_correlations(row: dict[str, Any]) -> None:
    """Show the rank correlation of each pair of components."""
    st.subheader("Correlations between components")
    correlations = tables.component_correlations(tables.component_scores(_scores(row)))
    if correlations.empty:
        st.info("This needs two components; the run measured fewer.")
        return
    components.show_run_figure("signal_correlation", correlations, "signals", row)


def render_diagnosis_rates(row: dict[str, Any]) -> None:
    """Show in how many items each diagnosis applies."""
    if not _has_composite(row):
        components.empty(
            "Diagnoses come with the composite.",
            page("new_run"),
            "Run the scorer composite",
            {"suite": row["suite"]},
        )
        return
    st.subheader("Diagnoses")
    rates = tables.diagnosis_means(_scores(row), cached.estimates(row["id"], int(row["revision"])))
    if rates.empty:
        st.info("The rates are estimated when the run ends or is stopped.")
        return
    components.show_run_figure(
        "diagnosis_rates", rates.sort_values("point", ascending=False), "diagnoses", row
    )
    components.show_card("diagnosis")


def render_reliability_notes(row: dict[str, Any]) -> None:
    """Explain whose chains were measured, and what the numbers do not show."""
    st.caption(
        f"{tables.chain_sources_text(cached.run_plan(row['id']))} C, V, D and F read chains"
        " as text: a model that ignores its chain can write it as consistently and as"
        " soundly as one that follows it, so they cannot distinguish the two. The composite"
        " score (r_raw) is the weighted mean of the defined components, each clipped to [0,"
        " 1]; its weights are examples until they are tuned on labels, and it is not a"
        " probability."
    )


def _scores(row: dict[str, Any]) -> pd.DataFrame:
    return cached.selected_scores(row["id"], int(row["revision"]), tables.METRICS)


def _has_composite(row: dict[str, Any]) -> bool:
    return any(spec.name == "composite" for spec in cached.run_plan(row["id"]).scorers)


def _component_label(part: str) -> str:
    return f"{part} (scorer {SCORER_OF.get(part, 'composite')})"


def render_paraphrases(row: dict[str, Any], item: Item) -> None:
    """Show each paraphrase with its chain, and the cosine of each pair of chains.

    Paraphrases of the hold-out are not shown.
    """
    table = cached.selected_scores(row["id"], int(row["revision"]), item_id=item.id)
    scores = tables.component_scores(table, ("mu", "sigma", "C")).set_index("part")
    if scores.empty:
        return
    st.subheader("Paraphrases")
    halted = (
        "mu" not in scores.index or scores.at["mu", "status"] == "stopped"
    )  # stopped early: its evidence is that of other components
    keys = () if halted else tuple(scores.at["mu", "evidence"])
    logged, replies = cached.exchanges(keys), cached.responses(keys)
    requests = {key: logged[key][0] for key in keys if key in logged}
    chains = paraphrase_chains(requests, replies, item, cached.run_plan(row["id"]).subject.form)
    if not chains:
        reasons = scores["reason"].dropna()
        st.info(
            "The log holds no chain of a"
            f" paraphrase{f': {as_code(str(reasons.iloc[0]))}' if len(reasons) else ''}."
        )
        return
    known = [
        f"{name}"
        f" {format_number(None if pd.isna(scores.at[part, 'value']) else scores.at[part, 'value'])}"
        for name, part in (("μ", "mu"), ("σ", "sigma"), ("C", "C"))
        if part in scores.index
    ]
    names = wording_labels(chains, item)
    pairs = cosine_table(names, chains, embedded_vectors(requests, replies))
    if len(pairs):
        components.show_figure(
            "chain_cosines",
            pairs,
            key=f"cosines-{item.id}",
            note=", ".join(known) + ".",
            evidence=(
                page("item"),
                evidence.requests_of(
                    row, item.id, evidence.score_id(*scores.loc["mu", ["metric", "facet"]])
                ),
            ),
        )
    for at in range(0, len(chains), 2):
        for column, i in zip(st.columns(2), range(at, min(at + 2, len(chains))), strict=False):
            with column:
                show_blocks(
                    _blocks(names[i], chains[i]), key=f"paraphrase-{row['id']}-{item.id}-{i}"
                )
                evidence.render_request_link(row, item.id, chains[i].key)
    st.caption("Paraphrases of the hold-out are not shown, so that nothing is tuned on them.")


def _blocks(name: str, paraphrase: ParaphraseChain) -> list[Block]:
    chain = "\n".join(paraphrase.steps) if paraphrase.steps else f"n/a: {paraphrase.missing_reason}"
    answer = paraphrase.answer if paraphrase.answer is not None else "n/a"
    return [
        Block(0, name, paraphrase.question),
        Block(1, "Chain", chain),
        Block(2, "Answer", answer),
    ]
