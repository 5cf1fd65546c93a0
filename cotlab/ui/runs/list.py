"""The page Runs, and the table of runs that Home shows too."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.report import headline_rrr
from cotlab.core.resources import page
from cotlab.store import read
from cotlab.ui import cached, components

STATUSES = ("any", "done", "running", "stopped", "budget", "failed", "interrupted", "planned")


def filter_runs() -> pd.DataFrame:
    """Return the runs that match the status and the search text."""
    left, right = st.columns([1, 3])
    status = left.selectbox("Status", STATUSES, key="status", bind="query-params")
    search = right.text_input(
        "Search", key="q", bind="query-params", placeholder="model, suite, tag or id"
    )
    table = read.list_runs(cached.store(), text=search or "")
    if status == "any":
        return table
    return table[[components.status_of(row) == status for row in table.to_dict("records")]]


def render_runs(table: pd.DataFrame) -> list[str]:
    """Show one page of the runs, and return the ids of the ticked ones."""
    part = table.iloc[components.page_slice(len(table), "runs-page")]
    return show_runs(part, key=f"runs-{part.index[0]}", select=True)


def compare_link(table: pd.DataFrame, ticked: list[str]) -> None:
    """Show a link that compares the ticked runs, with the oldest as the base."""
    ticked_rows = table[table["id"].isin(ticked)].sort_values(["planned_at", "id"])
    base, *others = ticked_rows["id"].tolist()
    st.page_link(
        page("compare"),
        label=f"Compare {len(ticked)} runs, item by item",
        icon=":material/compare_arrows:",
        query_params=[("base", base), *(("other", other) for other in others)],
    )


def render_side_by_side(first: str, second: str) -> None:
    """Show the estimates that both runs have, side by side."""
    columns = {}
    for run_id in (first, second):
        row = cached.run_row(run_id)
        estimates = cached.estimates(run_id, int(row["revision"]))
        columns[f"{row['model']} · {run_id}"] = {
            (
                components.metric_name(e["metric"]),
                e["mode"],
                e["ccs"],
                components.facet_text(e["facet"], "mode", "metric"),
            ): components.estimate_text(e)
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
        "Overlapping intervals do not show that two runs are equal; a paired comparison of"
        " items is more precise."
    )


def runs_frame(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per run: status, model, main estimates, progress and cost."""
    rows = []
    for row in runs.to_dict("records"):
        rows.append(
            {
                "started": row["planned_at"],
                "status": components.status_of(row),
                "model": row["model"],
                "suite": row["suite_name"],
                "items": (
                    f"{int(row['n_ended'])} of"
                    f" {int(row['n_items']) * len(cached.parse_plan(row['plan']).scorers)}"
                ),
                "RRR [95% interval]": _headline(row),
                "r_raw [95% interval]": _composite(row),
                "spent": components.money(row["spent_micro"]),
                "run": row["id"],
            }
        )
    columns = [
        "status",
        "model",
        "RRR [95% interval]",
        "r_raw [95% interval]",
        "items",
        "suite",
        "spent",
        "started",
        "run",
    ]
    return pd.DataFrame(rows, columns=columns)


def show_runs(runs: pd.DataFrame, *, key: str, select: bool = False) -> list[str]:
    """Show a table of runs, and return the ids of the ticked ones."""
    frame = runs_frame(runs)
    frame.insert(0, "open", [f"/run?run={run_id}" for run_id in frame["run"]])
    event: Any = st.dataframe(
        frame,
        hide_index=True,
        key=key,
        on_select="rerun" if select else "ignore",
        selection_mode="multi-row",
        column_config={
            "open": st.column_config.LinkColumn("open", display_text="open", width="small"),
            "started": st.column_config.DatetimeColumn(
                "started (UTC)", format="YYYY-MM-DD HH:mm:ss"
            ),
            "RRR [95% interval]": st.column_config.TextColumn(
                "Steps without effect (RRR)",
                help=(
                    "Share of steps whose ablation changes nothing (CCS under the threshold), "
                    "mean over items, for the run's first mode and chosen metric."
                ),
                alignment="right",
            ),
            "r_raw [95% interval]": st.column_config.TextColumn(
                "Composite score (r_raw)",
                alignment="right",
                help=(
                    "Composite score: weighted mean of the reliability components, mean"
                    " over items; n/a where the composite was not run."
                ),
            ),
            "spent": st.column_config.TextColumn("spent", alignment="right"),
            "items": st.column_config.TextColumn(
                "items × scorers",
                alignment="right",
                help="Each scorer of a run scores each item once.",
            ),
        },
    )
    return [frame["run"].iloc[i] for i in event.selection.rows] if select else []


def _composite(row: dict[str, Any]) -> str:
    estimates = cached.estimates(row["id"], int(row["revision"]))
    estimates = estimates[estimates["metric"] == "r_raw"]
    return components.estimate_text(estimates.iloc[0].to_dict()) if len(estimates) else "n/a"


def _headline(row: dict[str, Any]) -> str:
    spec = next((s for s in cached.parse_plan(row["plan"]).scorers if s.name == "ablation"), None)
    if spec is None:
        return "n/a"
    best = headline_rrr(cached.estimates(row["id"], int(row["revision"])), spec.params)
    return (
        "n/a"
        if best is None
        else components.estimate_text(
            {k: float("nan") if v is None else v for k, v in best.items()}
        )
    )
