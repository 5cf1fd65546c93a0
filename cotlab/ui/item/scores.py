"""The scores of one item: by measure with their requests, and each of them."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from cotlab.analysis.readable import readable_value
from cotlab.analysis.tables.score_groups import item_score_groups, missing_score_reasons
from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.ui import components
from cotlab.ui.item import evidence
from cotlab.ui.item.link_table import TableLink, render_link_table
from cotlab.ui.item.requests import ALL_SCORES, select_score, value_texts
from cotlab.ui.metric_names import metric_name
from cotlab.ui.text import escape_markdown


def render_item_scores(row: RunView, item: Item, scores: pd.DataFrame) -> None:
    """Show every score of the item, folded; those without a value by their reasons."""
    n_missing = int(scores["value"].isna().sum())
    missing_text = f"{n_missing} without a value" if n_missing else "none without a value"
    n_metrics = scores["metric"].nunique()
    label = f"All scores of this item: {n_metrics} measure{'s' * (n_metrics != 1)},"
    with st.expander(f"{label} {len(scores)} scores, {missing_text}"):
        _render_score_groups(row, item, scores)
        _render_score_table(row, item, scores)


def _render_score_groups(row: RunView, item: Item, scores: pd.DataFrame) -> None:
    """Show one row a measure with a link to its requests, then why others have no value."""
    columns = ("Measure", "Of", "Mean", "Scores", "Requests")
    rows = []
    for group in item_score_groups(scores):
        if not group.n:
            continue
        name, facet = metric_name(group.metric), components.facet_text(group.facet)
        requests: str | TableLink = "none"
        if group.n_requests:
            query = {"run": row.id, "item": item.id}
            query["score"] = evidence.score_id(group.metric, group.facet)
            link_name = f"{group.n_requests} requests behind {name}, {facet}"
            requests = TableLink(f"{group.n_requests}", link_name, query)
        mean = components.number_text(readable_value(group.metric, group.mean))
        rows.append((name, facet, mean, f"{group.n}", requests))
    if rows:
        render_link_table(
            columns,
            rows,
            key=f"score-groups-{row.id}-{item.id}",
            label="Scores by measure",
            numeric_names=columns[2:],
        )
    missing_texts = [
        f"{n} without a value ({', '.join(map(metric_name, metrics))}): {reason}"
        for reason, n, metrics in missing_score_reasons(scores)
    ]
    if missing_texts:
        st.caption(escape_markdown(f"{'; '.join(missing_texts)}."))


def _render_score_table(row: RunView, item: Item, scores: pd.DataFrame) -> None:
    """Show every score as a table, with the reason where it is undefined."""
    frame = pd.DataFrame(
        {
            "metric": scores["metric"].map(metric_name),
            "step": scores["step"] + 1,
            "value": value_texts(scores),
            "facet": [components.facet_text(text) for text in scores["facet"]],
            "draw": scores["sample"] + 1,
            "status": scores["status"],
            "reason": scores["reason"].fillna(""),
            "requests": scores["evidence"].map(len),
        }
    )
    score_ids, widget_key = evidence.score_ids(scores), f"item-scores-{row.id}-{item.id}"

    def select_ticked_score() -> None:
        ticked_indices = st.session_state[widget_key]["selection"]["rows"]
        select_score(score_ids[ticked_indices[0]] if ticked_indices else ALL_SCORES)

    st.dataframe(
        frame,
        hide_index=True,
        key=widget_key,
        height="content" if len(frame) <= 10 else 420,
        on_select=select_ticked_score,
        selection_mode="single-row",
        placeholder="",
        column_config={
            "facet": st.column_config.TextColumn(width=240),
            "value": st.column_config.TextColumn(alignment="right", width=90),
            **{name: st.column_config.NumberColumn(width=60) for name in ("step", "draw")},
            "reason": st.column_config.TextColumn(width=220, help="Why there is no value."),
            "requests": st.column_config.NumberColumn(help="Number of requests behind the value."),
        },
    )
    note = "Select a score to see its requests below. Steps and draws count from 1."
    if "consistency" in set(scores["scorer"]):
        note += " Scores and chains of the hold-out are not shown by item."
    st.caption(note)
    components.csv_button("scores", scores, "scores")
