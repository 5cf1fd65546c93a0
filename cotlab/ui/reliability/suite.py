"""The parts of the page Reliability that are about the whole suite."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import reliability as values
from cotlab.figures.reliability import COMPONENT_ORDER, NAMES
from cotlab.metrics.composite.scorer import FEATURES, SCORER_OF
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.links import page

CARDS = {part: FEATURES[part][1] for part in COMPONENT_ORDER if part in FEATURES} | {
    "r_raw": "r_raw"
}
"""The metric whose card says what a part is."""


def render_component_means(row: dict[str, Any]) -> None:
    """The mean of each part with its interval and n."""
    rows = values.component_scores(_scores(row))
    if rows.empty:
        st.info("No item has been scored for reliability yet.")
        return
    table = values.component_means(rows, data.estimates(row["id"], int(row["revision"])))
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
        _show("reliability_parts", table, "parts", row, note=left_out)
    with st.container(horizontal=True):
        for part, metric in CARDS.items():
            if part not in absent:
                parts.show_card(metric)


def render_reliability_items(row: dict[str, Any]) -> None:
    """Every item with its parts and diagnoses, sorted over all pages; each opens."""
    scores = _scores(row)
    rows = values.component_scores(scores)
    if rows.empty:
        return
    st.subheader("Items")
    table = values.item_reliability_rows(rows, scores)
    measured = [part for part in COMPONENT_ORDER if part in table.columns]
    table = _only_diagnosed(table)
    orders = {"item": "item"}
    for part in reversed(measured):
        orders |= {f"{part}-up": f"{part}, lowest first", f"{part}-down": f"{part}, highest first"}
    by, _, direction = parts.select_option("Sorted by", orders, "sort").partition("-")
    table = table.sort_values(
        [by, "item"], ascending=[direction != "down", True], na_position="last"
    )
    visible = table.iloc[parts.page_slice(len(table), f"items-{row['id']}")].reset_index(drop=True)
    visible.insert(
        0,
        "open",
        [
            f"/reliability?run={row['id']}&item={quote(item, safe='')}&view=One+item"
            for item in visible["item"]
        ],
    )
    st.dataframe(
        visible.style.format(parts.number_text, subset=measured),
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
            "why n/a": st.column_config.TextColumn("why n/a", width="large"),
        },
    )
    stopped = rows[rows["status"] == "stopped"]["item_id"].nunique()
    halted = (
        f" {stopped} stopped at a hard floor: they escalate, and have no r_raw." if stopped else ""
    )
    st.caption(f"{len(visible)} of {len(table)} items; n/a is sorted last.{halted}")


def _only_diagnosed(table: pd.DataFrame) -> pd.DataFrame:
    """The items on which the chosen diagnosis fires; all where none is chosen or the run has none."""
    fired = sorted({rule for text in table["diagnosis"] for rule in text.split(", ") if rule})
    if not fired:
        return table
    counts = {rule: sum(rule in text.split(", ") for text in table["diagnosis"]) for rule in fired}
    labels = {"any": "any or none"} | {rule: f"{rule} · {counts[rule]} items" for rule in fired}
    rule = parts.select_option("Diagnosis", labels, "diagnosis")
    return (
        table if rule == "any" else table[[rule in text.split(", ") for text in table["diagnosis"]]]
    )


def render_correlations(row: dict[str, Any]) -> None:
    """Whether the signals say different things: the rank correlation of each two parts."""
    st.subheader("Are the signals orthogonal?")
    correlations = values.component_correlations(values.component_scores(_scores(row)))
    if correlations.empty:
        st.info("It takes two parts: this run measured fewer.")
        return
    _show("signal_correlation", correlations, "signals", row)


def render_diagnosis_rates(row: dict[str, Any]) -> None:
    """How many items each diagnosis fires on."""
    if not _has_composite(row):
        parts.empty(
            "Diagnoses come with the composite.",
            page("new_run"),
            "Run the scorer composite",
            {"suite": row["suite"]},
        )
        return
    st.subheader("Diagnoses")
    rates = values.diagnosis_means(_scores(row), data.estimates(row["id"], int(row["revision"])))
    if rates.empty:
        st.info("The rates are estimated when the run ends or is stopped.")
        return
    _show("diagnosis_rates", rates.sort_values("point", ascending=False), "diagnoses", row)
    parts.show_card("diagnosis")


def render_reliability_notes(row: dict[str, Any]) -> None:
    """Whose chains the parts are of, and what they cannot show."""
    st.caption(
        f"{values.chain_sources_text(data.run_plan(row['id']))} C, V, D and F read chains as text:"
        " a model that ignores its chain writes it as steadily and as soundly as one that follows"
        " it, so they cannot tell the two apart. r_raw weighs the parts that are defined, each"
        " clipped to [0, 1]; its weights are examples until they are tuned on labels, and it is no"
        " probability."
    )


def _scores(row: dict[str, Any]) -> pd.DataFrame:
    return data.selected_scores(row["id"], int(row["revision"]), values.METRICS)


def _has_composite(row: dict[str, Any]) -> bool:
    return any(spec.name == "composite" for spec in data.run_plan(row["id"]).scorers)


def _component_label(part: str) -> str:
    return f"{part} (scorer {SCORER_OF.get(part, 'composite')})"


def _show(name: str, table: pd.DataFrame, key: str, row: dict[str, Any], note: str = "") -> None:
    parts.show_figure(name, table, key=key, note=note, evidence=(page("run"), {"run": row["id"]}))
