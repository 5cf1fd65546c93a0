"""The parts of the page Decisions that show what was decided: the queue, all decisions, the audit and the rollout phase."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.core.labels import ACTIONS
from cotlab.figures.style import format_number
from cotlab.reliability.volumes import schedule
from cotlab.review.labelling.queue import make_queue
from cotlab.review.release.decide import decide_run, reasons_of
from cotlab.review.release.rollout import rollout
from cotlab.store import decisions as decision_store
from cotlab.ui import access
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.decisions.what_if import DecisionView
from cotlab.ui.links import PAGES, page
from cotlab.ui.runs.picking import csv_button
from cotlab.ui.text import as_code, shorten

MAX_QUEUED = 500
"""Items that one queue takes from here."""
ORDERS = {"cost": "Expected cost: lowest r_cal first", "boundary": "Nearest to a threshold first"}
RIGHT = ("place", "day", "r_raw", "r_cal", "low", "high")


def render_review_queue(view: DecisionView) -> None:
    """What a person must see by the decisions that were made, the most urgent first, and a queue for raters from it."""
    st.subheader("What people must see")
    table = view.made
    _decide(view, table)
    if table.empty:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        order = parts.select_option("Order of reviews", ORDERS, "order")
        rows = schedule(table, view.policy, order="boundary" if order == "boundary" else "cost")
        part = rows.iloc[parts.page_slice(len(rows), "queue-page")]
    if rows.empty:
        st.success("Every decided item of this run is released.")
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
        f"{len(part)} of {len(rows)}: escalated first, then reviews by their place. {capacity}:"
        f" {waiting} review{'s' * (waiting != 1)} wait{'s' * (waiting == 1)}. What waits is not"
        " released."
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
            made = make_queue(data.store(), f"Review of {view.run}", items, by=who.name)
        except CotlabError as error:
            st.error(as_code(str(error)))
            return
        st.success(f"A queue of {int(most)} items is ready.")
        if (PAGES / "label.py").exists():
            st.page_link(
                page("label"),
                label="Label them",
                icon=":material/label:",
                query_params={"queue": made},
            )


def render_all_decisions(view: DecisionView) -> None:
    """Every decision on the run with what it rests on."""
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
        selected = parts.select_option("Show", labels, "action")
        rows = table if selected == "all" else table[table["action"] == selected]
        part = rows.iloc[parts.page_slice(len(rows), f"decisions-page-{selected}")]
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
    """Which phase of the rollout the store has reached, and what the next one needs."""
    progress = rollout(data.store(), None if view is None else view.counts)
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
    """Who changed what, the newest first."""
    st.subheader("Audit")
    rows = decision_store.audit_table(data.store())
    if rows.empty:
        st.info("Nothing has been changed or decided yet.")
        return
    part = rows.iloc[parts.page_slice(len(rows), "audit-page")]
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


def _decide(view: DecisionView, table: pd.DataFrame) -> None:
    """The button that decides, and whether what was decided still holds."""
    label = "Decide on this run" if table.empty else "Decide again"
    if table.empty:
        st.info("Nothing is decided on this run yet.")
    else:
        now = {"policy": {view.policy.version}, "calibrator": set(view.table["calibrator"])}
        old = [
            name
            for name in now
            if {None if pd.isna(v) else int(v) for v in table[name]} != now[name]
        ]
        if old:
            st.warning(
                f"Another {' and another '.join(old)} held when this was decided. Decide again."
            )
        elif n := scored_since(view.table, table):
            st.warning(
                f"{n} answers were scored, or scored anew, since this was decided. Decide again."
            )
    if st.button(
        label,
        icon=":material/gavel:",
        key="decide",
        type="primary" if table.empty else "secondary",
        disabled=not access.may("admin"),
        help="By the policy that holds, not by the sliders. Needs the role admin.",
    ):
        try:
            who = access.need("admin")
            decide_run(data.store(), view.run, by=who.name)
        except CotlabError as error:
            st.error(as_code(str(error)))
            return
        st.rerun()


def scored_since(now: pd.DataFrame, made: pd.DataFrame) -> int:
    """How many answers of a run have no decision, or one that rests on another score than they have now.

    Parameters
    ----------
    now : DataFrame (n,) with item_id, r_raw, r_cal
    made : DataFrame (m,) with the same columns
    """
    decided = made.drop_duplicates("item_id").set_index("item_id")[["r_raw", "r_cal"]].astype(float)
    current = now.set_index("item_id")[["r_raw", "r_cal"]].astype(float)
    then = decided.reindex(current.index)
    same = ((current - then).abs() <= 1e-12) | (
        current.isna() & then.isna()
    )  # a sum of floats may differ in its last place
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
    right = {
        name: st.column_config.TextColumn(name, alignment="right")
        for name in RIGHT
        if name in columns
    }
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
    if action == "escalate":
        return "at once"
    return "n/a" if pd.isna(value) else str(int(value))


def _text(value: Any) -> str:
    return "" if value is None else str(value)
