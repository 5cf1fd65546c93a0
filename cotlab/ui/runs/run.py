"""The parts of the page Run."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import quote

import pandas as pd
import streamlit as st

from cotlab.analysis.markdown import render_markdown
from cotlab.analysis.report import build_report, costs
from cotlab.analysis.view import RunView
from cotlab.core.errors import UnknownName
from cotlab.export.tabular import disarmed
from cotlab.run.config import as_yaml
from cotlab.run.cost_warnings import over_reserve_lines
from cotlab.run.imports.mediation import is_imported
from cotlab.store import read
from cotlab.store.log import is_alive
from cotlab.ui import access
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.item import evidence
from cotlab.ui.links import page
from cotlab.ui.new_run import processes as launching
from cotlab.ui.text import as_code, shorten

STARTING_S = 1.0
FOLLOWED_S = 1.0
"""So often the page of a run that goes on is drawn anew."""
ESTIMATES_S = 600.0
"""So long after a run's end its process may still be making estimates."""
STOP_HELP = "A clean end: what was done is kept, the run can be resumed."


def wait_for_run(run_id: str) -> dict[str, Any] | None:
    """The run's row; while its process is still loading, what that process says."""
    try:
        return data.run_row(run_id)
    except UnknownName:
        if not launching.has_started(data.store(), run_id):
            parts.empty("There is no such run.", page("runs"), "All runs")
            return None
    words = launching.process_output(data.store(), run_id)
    if "error:" in words or launching.has_ended(run_id):
        st.error(as_code(words))
        st.page_link(page("new_run"), label="Back to New run", icon=":material/arrow_back:")
    else:
        _starting(run_id)
    return None


@st.fragment(run_every=STARTING_S)
def _starting(run_id: str) -> None:
    try:
        data.run_row(run_id)
    except UnknownName:
        if "error:" not in launching.process_output(
            data.store(), run_id
        ) and not launching.has_ended(run_id):
            st.info("Loading the model and the suite …")
            return
    st.rerun()


def render_banner(row: dict[str, Any]) -> None:
    if st.session_state.pop("resumed", None) == row["id"]:
        st.toast("Resuming: the model is being loaded.")
    status = parts.status_of(row)
    errors = " with errors" if status == "done" and int(row["n_errors"]) else ""
    st.subheader(f"{parts.STATUS.get(status, status)}{errors}")
    st.caption(as_code(f"{row['model']} on {row['suite_name']}, run {row['id']}"))
    if row["note"]:
        st.warning(as_code(str(row["note"])))
    if status != "running":
        parts.partial_banner(row)


def render_live_progress(row: dict[str, Any]) -> None:
    """Counters of a run; while it may change they move once a second, and the page is drawn anew when it did change.

    Of a run that has ended they are drawn once, and the browser asks for nothing more.
    """
    followed = may_change(row)
    if followed:
        st.session_state["followed"] = row["id"]
    st.fragment(_progress, run_every=FOLLOWED_S if followed else None)(
        row["id"], state_of(row), followed
    )


def may_change(row: dict[str, Any]) -> bool:
    """Whether a run may change without anybody on this page: it is planned or running, or its process makes its estimates."""
    run_id, status = row["id"], str(row["status"])
    if status == "planned" or parts.status_of(row) == "running" or launching.is_going(run_id):
        return True
    live = data.live(run_id)
    if live is None or not (live.free_in_s > 0 or (live.is_here and is_alive(live.pid))):
        return False
    if status == "running":  # it has not been heard of for a while, and may be again
        return True
    if (
        pd.isna(row["ended_at"])
        or (datetime.now(UTC) - row["ended_at"]).total_seconds() > ESTIMATES_S
    ):
        return False
    return bool(
        st.session_state.get("followed") == run_id
        or data.estimates(run_id, int(row["revision"])).empty
    )


def _progress(run_id: str, drawn: str, followed: bool) -> None:
    """``drawn`` is the state (``state_of``) that the rest of the page was drawn with."""
    row = data.run_row(run_id)
    if state_of(row) != drawn or (followed and not may_change(row)):
        st.rerun()
    live = data.live(run_id)
    if live is None:
        return
    told = live.progress
    if live.alive:
        share = told.items_done / told.items_total if told.items_total else 0.0
        done = f"{told.items_done} of {told.items_total} {parts.progress_unit(run_id)}"
        st.progress(min(1.0, share), text="stopping …" if live.stopping else done)
    eta = "n/a" if told.eta_s is None or not live.alive else f"{told.eta_s:.0f} s"
    cap = f" of ${told.cap_micro / 1e6:,.2f}" if told.cap_micro is not None else ""
    flying = (
        f"{told.in_flight} of {told.concurrency}"
        if told.concurrency is not None
        else str(told.in_flight)
    )
    shown = [
        (parts.progress_unit(run_id).capitalize(), f"{told.items_done} / {told.items_total}"),
        ("Replies", f"{told.replies:,}"),
        ("From the log", f"{told.hits:,}"),
        ("429s · failed", f"{told.limited} · {told.failed}"),
        ("Spent", f"{parts.money(told.spent_micro)}{cap}"),
    ]
    if live.alive:
        shown += [
            ("In flight", flying),
            ("Limit a minute", "none" if told.per_minute is None else f"{told.per_minute:,}"),
            ("Replies/s · left", f"{told.rate:.0f} · {eta}"),
        ]
    parts.show_numbers(shown)
    if told.reserved_micro:
        held = parts.money(told.reserved_micro)
        st.caption(
            f"{held} of the spend is held for calls without a reply, at the most they can cost."
        )
    if live.alive and (pause_s := told.paused_until - time.time()) > 1:
        st.caption(f"Pausing {pause_s:.0f} s, as the server asks.")
    if told.waiting_for:
        st.caption(f"Batches: {told.waiting_for}.")
    if told.asked_again:
        st.caption(
            f"{told.asked_again} unfinished items are asked again: redacted replies are not kept."
        )
    if told.last_errors:
        with st.expander(f"Last errors ({len(told.last_errors)})", expanded=live.alive):
            parts.plain_list(told.last_errors)


def state_of(row: dict[str, Any]) -> str:
    """What the page depends on: the status as it is now and, once nothing runs, the store's revision."""
    status = parts.status_of(row)
    return status if status == "running" else f"{status} {row['revision']}"


def render_run_actions(row: dict[str, Any]) -> None:
    status, run_id = parts.status_of(row), row["id"]
    if is_imported(data.run_plan(run_id)):
        st.page_link(
            page("mediation"),
            label="Mediation",
            icon=":material/conversion_path:",
            query_params={"run": run_id},
        )
        return
    with st.container(horizontal=True):
        if status == "running":
            if st.button("Stop", icon=":material/stop:", **access.only("admin", help=STOP_HELP)):
                _stop(run_id)
        elif status in ("stopped", "budget", "failed", "interrupted", "planned"):
            cap = _new_cap(row) if status == "budget" else None
            if st.button(
                "Resume", type="primary", icon=":material/play_arrow:", **access.only("admin")
            ):
                _resume(run_id, cap)
        elif int(row["n_errors"]) and st.button(
            "Retry failed", icon=":material/refresh:", **access.only("admin")
        ):
            _resume(run_id)
        evidence.render_run_links(row)
        st.page_link(
            page("new_run"),
            label="Clone",
            icon=":material/content_copy:",
            query_params={"from": run_id},
        )


def _new_cap(row: dict[str, Any]) -> float:
    """A run that its budget stopped goes on under a higher cap."""
    before = float(json.loads(row["config"]).get("max_cost") or 0.0)
    return st.number_input(
        "New cap, US dollars",
        0.0,
        None,
        2 * before,
        format="%.4f",
        key="resume-cap",
        width=180,
        help="For the whole run.",
    )


def _stop(run_id: str) -> None:
    access.need("admin")
    data.ask_stop(run_id)
    st.rerun()


def _resume(run_id: str, max_cost: float | None = None) -> None:
    access.need("admin")
    launching.spawn_resume(data.store(), run_id, max_cost=max_cost)
    st.session_state["resumed"] = run_id
    st.rerun()  # from now on the page follows the run


def render_cost(row: dict[str, Any]) -> None:
    """What was expected and what it came to, with the tokens behind it; nothing where the model is free."""
    cost_report = costs(RunView.of_row(data.store(), row))
    money, requests = cost_report["cost"], cost_report["requests"]
    if not money["spent_usd"] and not money["estimated_usd"]:
        return
    st.subheader("Cost")
    known = money["estimated_usd"] is not None
    parts.show_numbers(
        (
            ("Expected", f"~${money['estimated_usd']:,.4f}" if known else "n/a"),
            ("Actual", f"${money['spent_usd']:,.4f}"),
            ("Requests expected · made", f"{requests['estimated'] or 0:,} · {requests['asked']:,}"),
            ("Tokens in · cached", f"{money['tokens_in']:,} · {money['tokens_cached']:,}"),
            ("Tokens out · reasoning", f"{money['tokens_out']:,} · {money['tokens_reasoning']:,}"),
        )
    )
    notes = [f"Prices: {(money['estimate'] or {}).get('price_source') or 'unknown'}."]
    if money["saved_by_log_usd"]:
        notes.append(f"Replies from the log saved {money['saved_by_log_usd']:,.4f} dollars.")
    if money["held_usd"]:
        notes.append(
            f"{money['held_usd']:,.4f} dollars are held for calls that got no reply: they may have"
            " been billed."
        )
    notes += over_reserve_lines(money)
    if money["replies_without_count"]:
        notes.append(
            f"{money['replies_without_count']:,} replies came without a count of tokens and are"
            " held too."
        )
    st.caption(as_code(" ".join(notes)))


def render_findings(row: dict[str, Any]) -> None:
    """The estimates with their intervals; n/a with its reason."""
    estimates = data.estimates(row["id"], int(row["revision"]))
    st.subheader("Findings")
    if estimates.empty:
        st.info("No estimates yet: they are made a moment after the run ends or is stopped.")
        return
    first = {"rrr": 0, "rrr_ceiling": 1, "baseline_correct": 2}
    estimates = estimates.sort_values(
        "metric", key=lambda names: names.map(lambda name: first.get(name, 3)), kind="stable"
    )
    frame = pd.DataFrame(
        {
            "metric": estimates["metric"],
            "mode": estimates["mode"],
            "of": estimates["ccs"],
            "facet": [parts.facet_text(text, "mode", "metric") for text in estimates["facet"]],
            "estimate [95% interval]": [
                parts.estimate_text(e) for e in estimates.to_dict("records")
            ],
            "n items": estimates["n"],
            "undefined scores": estimates["n_undefined"],
            "method": estimates["method"],
            "reason": estimates["reason"].fillna(""),
        }
    )
    st.dataframe(
        frame,
        hide_index=True,
        key="findings",
        height=420,
        column_config={
            "estimate [95% interval]": st.column_config.TextColumn(alignment="right"),
            "mode": st.column_config.TextColumn(width="small"),
            "of": st.column_config.TextColumn(
                help="The CCS that a run-level figure is computed from.", width="small"
            ),
            "facet": st.column_config.TextColumn(
                help="Which of the metric's numbers it is.", width="medium"
            ),
        },
    )
    with st.container(horizontal=True):
        st.download_button(
            "Data (CSV)",
            lambda: disarmed(estimates).to_csv(index=False),
            f"estimates-{row['id']}.csv",
            "text/csv",
            icon=":material/download:",
            on_click="ignore",
        )
        for name in ("report.md", "report.json"):
            st.download_button(
                name,
                partial(_report, row, name),
                f"{row['id']}-{name}",
                icon=":material/download:",
                on_click="ignore",
            )


def _report(row: dict[str, Any], name: str) -> str:
    report = build_report(data.store(), row["id"])
    return (
        render_markdown(report)
        if name.endswith(".md")
        else json.dumps(report, indent=1, ensure_ascii=False)
    )


def render_run_items(row: dict[str, Any]) -> None:
    """Every scored item, with a link to its evidence."""
    n_items = len(data.view(row).items)
    st.subheader("Items")
    if not n_items:
        st.info("No item has been scored yet.")
        return
    visible = parts.page_slice(n_items, "run-items-page")
    part = read.items_of_run(data.store(), row["id"], visible.stop - visible.start, visible.start)
    frame = pd.DataFrame(
        {
            "open": [f"/item?run={quote(row['id'])}&item={quote(i)}" for i in part["id"]],
            "item": part["id"],
            "question": [shorten(q, 110) for q in part["question"]],
            "steps": part["n_steps"],
            "scores": part["n_scores"],
            "undefined": part["n_undefined"],
        }
    )
    st.dataframe(
        frame,
        hide_index=True,
        key=f"run-items-{visible.start}",
        column_config={
            "open": st.column_config.LinkColumn("open", display_text="open", width="small")
        },
    )
    st.caption(f"{len(part)} of {n_items} scored items.")


def render_repeat(row: dict[str, Any]) -> None:
    """The configuration and the command that repeat this run."""
    if is_imported(data.run_plan(row["id"])):
        st.caption(
            "Imported from a published file: cotlab mediation import FILE keeps the same rows once."
        )
        return
    text = as_yaml(json.loads(row["config"]) | {"output": None})
    with st.expander("Configuration and command"):
        st.code(text, language="yaml")
        st.code("cotlab run --config run.yaml", language="bash")
        st.download_button(
            "run.yaml", text, "run.yaml", icon=":material/download:", on_click="ignore"
        )
        st.caption(
            as_code(
                f"Plan {row['plan_digest']}, code {row['code_version']}, reports in {row['output']}"
            )
        )
