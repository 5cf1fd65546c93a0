"""The page Decisions, one run: its decisions, the review queue, the audit log and the rollout."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.core.labels import ACTIONS
from cotlab.core.resources import PAGES, page
from cotlab.core.types import Plan
from cotlab.figures.style import format_number
from cotlab.reliability.policy import Policy
from cotlab.reliability.volumes import schedule
from cotlab.review.labelling.queue import make_queue
from cotlab.review.release.decide import decide_run, policy_of, reasons_of, scored
from cotlab.review.release.rollout import rollout
from cotlab.store import decisions as decision_store
from cotlab.store.decisions import decisions, loop_counts
from cotlab.ui import access, cached, components
from cotlab.ui.components import csv_button
from cotlab.ui.pickers import pick_run, select_option
from cotlab.ui.text import as_code, shorten


class DecisionView(NamedTuple):
    """What the page Decisions shows."""

    row: dict[str, Any]
    """The run's row of the store."""
    table: pd.DataFrame
    """Its answers with r_raw, r_cal and the labels' target."""
    policy: Policy
    """The policy in force."""
    made: pd.DataFrame
    """The stored decisions on the run."""
    counts: dict[str, int]
    """The counts of ``cotlab.store.decisions.loop_counts``."""

    @property
    def run(self) -> str:
        """The run's id."""
        return str(self.row["id"])


def select_decision_run() -> DecisionView | None:
    """Choose a run; None (with a message) where none has scored items."""
    row = pick_run(shows=_has_composite)
    if row is None:
        st.caption("Decisions use the composite score. Run: cotlab run --profile phase3.")
        return None
    store, counts = cached.store(), loop_counts(cached.store())
    table = _scored(
        str(store.folder), str(row["id"]), int(row["revision"]), counts["said"], counts["chosen"]
    )
    if table.empty:
        st.info("No item of this run has been scored yet.")
        return None
    gone = [text for text in table[table["r_cal"].isna()]["told"] if text]
    if table["r_cal"].isna().all():
        st.warning(
            as_code(
                "No answer of this run has a calibrated score (r_cal), so all are"
                f" escalated: {shorten(gone[0], 200)}."
            )
        )
    return DecisionView(row, table, policy_of(store), decisions(store, str(row["id"])), counts)


@st.cache_data(show_spinner="Reading scores", max_entries=8)
def _scored(folder: str, run_id: str, revision: int, n_labels: int, chosen: int) -> pd.DataFrame:
    return scored(cached.store(), [run_id])


def _has_composite(plan: Plan) -> bool:
    return any(spec.name == "composite" for spec in plan.scorers)


MAX_QUEUED = 500
"""Maximum number of items of a label queue that this page makes."""
ORDERS = {"cost": "Expected cost: lowest r_cal first", "boundary": ("Closest to a threshold first")}
RIGHT = ("place", "day", "r_raw", "r_cal", "low", "high")


def render_review_queue(view: DecisionView) -> None:
    """List the items that need a review, the most urgent first, and offer a label queue of them."""
    st.subheader("Items to review")
    table = view.made
    _render_decide_button(view, table)
    if table.empty:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        order = select_option("Order of reviews", ORDERS, "order")
        rows = schedule(table, view.policy, order="boundary" if order == "boundary" else "cost")
        part = rows.iloc[components.page_slice(len(rows), "queue-page")]
    if rows.empty:
        st.success("All decided items of this run are released.")
        return
    _table(
        part,
        view.run,
        ("action", "place", "day", "item", "domain", "r_cal", "low", "high", "reason"),
        "queue",
    )
    waiting = (
        int((rows["day"] > 1).sum()) if view.policy.capacity else int(rows["place"].notna().sum())
    )
    capacity = (
        "No capacity is set"
        if view.policy.capacity is None
        else f"At {view.policy.capacity} reviews a day"
    )
    st.caption(
        f"{len(part)} of {len(rows)}: escalated first, then reviews by their place."
        f" {capacity}: {waiting} review{'s' * (waiting != 1)} wait{'s' * (waiting == 1)}."
        " Items that wait are not released."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        csv_button("queue", rows, "queue")
        fit = min(MAX_QUEUED, len(rows))
        most = st.number_input(
            "Items for raters", 1, fit, min(20, fit), key=f"queue-size-{fit}", width=150
        )
        pressed = st.button(
            "Make a label queue of the first",
            icon=":material/playlist_add:",
            key="make-queue",
            disabled=not access.may("admin"),
            help="Needs the role admin.",
        )
    if pressed:
        try:
            who = access.need("admin")
            items = [
                (view.run, str(r["item_id"]), str(r["reason"]))
                for r in rows.head(int(most)).to_dict("records")
            ]
            made = make_queue(cached.store(), f"Review of {view.run}", items, by=who.name)
        except CotlabError as error:
            st.error(as_code(str(error)))
            return
        st.success(f"A queue of {int(most)} items was made.")
        if (PAGES / "label.py").exists():
            st.page_link(
                page("label"),
                label="Label them",
                icon=":material/label:",
                query_params={"queue": made},
            )


def render_all_decisions(view: DecisionView) -> None:
    """List every decision on the run with its inputs."""
    table = view.made
    if table.empty:
        return
    st.subheader("Decisions of this run")
    counts = table["action"].value_counts().to_dict()
    labels = {
        "all": f"All {len(table)}",
        **{a: f"{a} ({counts[a]})" for a in ACTIONS if a in counts},
    }
    with st.container(horizontal=True, vertical_alignment="bottom"):
        selected = select_option("Show", labels, "action")
        rows = table if selected == "all" else table[table["action"] == selected]
        part = rows.iloc[components.page_slice(len(rows), f"decisions-page-{selected}")]
    columns = (
        "item",
        "domain",
        "action",
        "r_raw",
        "r_cal",
        "low",
        "high",
        "calibrator",
        "policy",
        "by_",
        "at_",
        "reason",
    )
    _table(part, view.run, columns, f"decisions-{selected}")
    csv_button("decisions", rows, "decisions")
    reasons_text = ", ".join(
        f"{action}: {shorten(kind, 60)} ({n})" for action, kind, n in reasons_of(rows)
    )
    st.caption(as_code(f"{len(part)} of {len(rows)}. {reasons_text}."))


def render_rollout(view: DecisionView | None) -> None:
    """Show the current phase of the rollout, and what the next one needs."""
    progress = rollout(cached.store(), None if view is None else view.counts)
    st.subheader(f"Rollout: phase {progress.reached} of {len(progress.phases)}")
    with st.container(border=True):
        for phase in progress.phases:
            icon = (
                ":material/check_circle:" if phase.reached else ":material/radio_button_unchecked:"
            )
            st.markdown(f"{icon} **{phase.number}. {phase.title}**: {as_code(phase.has)}.")
        if progress.next is not None:
            st.markdown(f"Phase {progress.next.number} needs {as_code(progress.next.needs)}.")
            st.code(progress.next.command, language="text")


def render_audit_log() -> None:
    """List who changed what, the newest first."""
    st.subheader("Audit")
    rows = decision_store.audit_table(cached.store())
    if rows.empty:
        st.info("Nothing has been changed or decided yet.")
        return
    part = rows.iloc[components.page_slice(len(rows), "audit-page")]
    frame = pd.DataFrame(
        {
            "when (UTC)": part["at_"].dt.tz_convert("UTC").dt.strftime("%Y-%m-%d %H:%M:%S"),
            "who": part["who"],
            "what": part["what"],
            "of": part["subject"],
            "before": part["before"].map(_text),
            "after": part["after"].map(_text),
            "reason": part["reason"],
        }
    )
    st.dataframe(frame, hide_index=True, key="audit", height="content" if len(frame) < 9 else 320)
    csv_button("audit", rows, "audit")


def _render_decide_button(view: DecisionView, table: pd.DataFrame) -> None:
    """Show the button that decides, and warn where the stored decisions are outdated."""
    label = "Decide on this run" if table.empty else "Decide again"
    if table.empty:
        st.info("There are no decisions on this run yet.")
    else:
        now = {"policy": {view.policy.version}, "calibrator": set(view.table["calibrator"])}
        old = [
            name
            for name in now
            if {None if pd.isna(v) else int(v) for v in table[name]} != now[name]
        ]
        if old:
            st.warning(
                f"These decisions were made with another {' and another '.join(old)}. Decide again."
            )
        elif n := scored_since(view.table, table):
            st.warning(
                f"{n} answers were scored, or scored again, since these decisions. Decide again."
            )
    if st.button(
        label,
        icon=":material/gavel:",
        key="decide",
        type="primary" if table.empty else "secondary",
        disabled=not access.may("admin"),
        help="Uses the policy in force, not the sliders. Needs the role admin.",
    ):
        try:
            who = access.need("admin")
            decide_run(cached.store(), view.run, by=who.name)
        except CotlabError as error:
            st.error(as_code(str(error)))
            return
        st.rerun()


def scored_since(now: pd.DataFrame, made: pd.DataFrame) -> int:
    """Count the answers without a decision, or with one made on another score.

    Parameters
    ----------
    now : DataFrame (n,) with item_id, r_raw, r_cal
        The current scores.
    made : DataFrame (m,) with the same columns
        The scores at the time of the decisions.
    """
    decided = made.drop_duplicates("item_id").set_index("item_id")[["r_raw", "r_cal"]].astype(float)
    current = now.set_index("item_id")[["r_raw", "r_cal"]].astype(float)
    then = decided.reindex(current.index)
    same = ((current - then).abs() <= 1e-12) | (
        current.isna() & then.isna()
    )  # sums of floats may differ in the last digit
    return int((~(same.all(axis=1) & current.index.isin(decided.index))).sum())


def _table(rows: pd.DataFrame, run: str, columns: tuple[str, ...], key: str) -> None:
    known: dict[str, Any] = {
        **{name: rows[name] for name in rows.columns},
        "item": rows["item_id"],
        **{
            name: rows[name].map(_number)
            for name in ("r_raw", "r_cal", "low", "high")
            if name in rows
        },
        **{
            name: [_queue_position(a, v) for a, v in zip(rows["action"], rows[name], strict=True)]
            for name in ("place", "day")
            if name in rows
        },
        "at_": rows["at_"].dt.tz_convert("UTC").dt.strftime("%Y-%m-%d %H:%M"),
    }
    frame = pd.DataFrame(
        {
            "open": [f"/item?{urlencode({'run': run, 'item': item})}" for item in rows["item_id"]],
            **{name.rstrip("_"): list(known[name]) for name in columns},
        }
    )
    right = components.right_aligned(*(name for name in RIGHT if name in columns))
    st.dataframe(
        frame,
        hide_index=True,
        key=key,
        height="content" if len(frame) < 13 else 420,
        column_config={
            "open": st.column_config.LinkColumn("open", display_text="open", width="small"),
            **right,
        },
    )


def _number(value: Any) -> str:
    return format_number(None if pd.isna(value) else float(value))


def _queue_position(action: str, value: Any) -> str:
    """Format a place in the queue; escalated items come at once."""
    if action == "escalate":
        return "at once"
    return "n/a" if pd.isna(value) else str(int(value))


def _text(value: Any) -> str:
    return "" if value is None else str(value)
