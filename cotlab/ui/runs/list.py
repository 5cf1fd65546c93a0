"""The parts of the page Runs."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from cotlab.store import read
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.links import page
from cotlab.ui.runs.table import show_runs

STATUSES = ("any", "done", "running", "stopped", "budget", "failed", "interrupted", "planned")


def filter_runs() -> pd.DataFrame:
    left, right = st.columns([1, 3])
    status = left.selectbox("Status", STATUSES, key="status", bind="query-params")
    search = right.text_input(
        "Search", key="q", bind="query-params", placeholder="model, suite, tag or id"
    )
    table = read.list_runs(data.store(), text=search or "")
    if status == "any":
        return table
    return table[[parts.status_of(row) == status for row in table.to_dict("records")]]


def render_runs(table: pd.DataFrame) -> list[str]:
    part = table.iloc[parts.page_slice(len(table), "runs-page")]
    return show_runs(part, key=f"runs-{part.index[0]}", select=True)


def compare_link(table: pd.DataFrame, ticked: list[str]) -> None:
    """Where the ticked runs are compared item by item; the oldest of them is the base."""
    ticked_rows = table[table["id"].isin(ticked)].sort_values(["planned_at", "id"])
    base, *others = ticked_rows["id"].tolist()
    st.page_link(
        page("compare"),
        label=f"Compare {len(ticked)} runs, item by item",
        icon=":material/compare_arrows:",
        query_params=[("base", base), *(("other", other) for other in others)],
    )


def render_side_by_side(first: str, second: str) -> None:
    """The estimates that both runs have, in two columns with their intervals."""
    columns = {}
    for run_id in (first, second):
        row = data.run_row(run_id)
        estimates = data.estimates(run_id, int(row["revision"]))
        columns[f"{row['model']} · {run_id}"] = {
            (
                e["metric"],
                e["mode"],
                e["ccs"],
                parts.facet_text(e["facet"], "mode", "metric"),
            ): parts.estimate_text(e)
            for e in estimates.to_dict("records")
        }
    frame = (
        pd.DataFrame(columns).dropna().rename_axis(["metric", "mode", "of", "facet"]).reset_index()
    )
    st.subheader("Side by side")
    if frame.empty:
        st.info("These runs have no estimate in common.")
        return
    st.dataframe(frame, hide_index=True, key="side-by-side")
    st.caption(
        "Two intervals that overlap do not show that two runs are equal; a paired comparison of"
        " items does more."
    )
