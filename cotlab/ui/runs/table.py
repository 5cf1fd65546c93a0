"""The table of runs, as Home and Runs show it."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.report import headline_rrr
from cotlab.ui import cached as data
from cotlab.ui import components as parts


def runs_frame(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs with what a reader compares: progress, model, suite, RRR with its interval, cost."""
    rows = []
    for row in runs.to_dict("records"):
        rows.append(
            {
                "started": row["planned_at"],
                "status": parts.status_of(row),
                "model": row["model"],
                "suite": row["suite_name"],
                "items": (
                    f"{int(row['n_ended'])} of"
                    f" {int(row['n_items']) * len(data.parse_plan(row['plan']).scorers)}"
                ),
                "RRR [95% interval]": _headline(row),
                "r_raw [95% interval]": _composite(row),
                "spent": parts.money(row["spent_micro"]),
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
    """Draw the table, each run with a link; returns the ids of ticked rows."""
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
                "RRR [95% interval]",
                help=(
                    "Share of steps whose ablation changes nothing (CCS under the threshold), "
                    "mean over items, for the run's first mode and chosen metric."
                ),
                alignment="right",
            ),
            "r_raw [95% interval]": st.column_config.TextColumn(
                "r_raw [95% interval]",
                alignment="right",
                help=(
                    "Weighted mean of the parts of reliability, mean over items; n/a where the"
                    " composite was not run."
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
    estimates = data.estimates(row["id"], int(row["revision"]))
    estimates = estimates[estimates["metric"] == "r_raw"]
    return parts.estimate_text(estimates.iloc[0].to_dict()) if len(estimates) else "n/a"


def _headline(row: dict[str, Any]) -> str:
    spec = next((s for s in data.parse_plan(row["plan"]).scorers if s.name == "ablation"), None)
    if spec is None:
        return "n/a"
    best = headline_rrr(data.estimates(row["id"], int(row["revision"])), spec.params)
    return (
        "n/a"
        if best is None
        else parts.estimate_text({k: float("nan") if v is None else v for k, v in best.items()})
    )
