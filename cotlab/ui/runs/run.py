"""The page Run: its progress, actions, cost, findings, items, and how to repeat it."""

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
from cotlab.core.resources import page
from cotlab.run.config import as_yaml, stored_options
from cotlab.run.imports.mediation import is_imported
from cotlab.run.summary import over_reserve_lines
from cotlab.store import read
from cotlab.store.log import is_alive
from cotlab.ui import access, cached, components
from cotlab.ui.item import evidence
from cotlab.ui.new_run import processes
from cotlab.ui.text import as_code, shorten

STARTING_S = 1.0
FOLLOWED_S = 1.0
"""Interval at which the page of an active run is refreshed."""
ESTIMATES_S = 600.0
"""Time after a run's end in which its process may still make estimates."""
STOP_HELP = "Stops cleanly: finished work is stored, and the run can be resumed."


def wait_for_run(run_id: str) -> dict[str, Any] | None:
    """Return the run's row; None (with its process's output) while it is still loading."""
    try:
        return cached.run_row(run_id)
    except UnknownName:
        if not processes.has_started(cached.store(), run_id):
            components.empty("There is no such run.", page("runs"), "All runs")
            return None
    output = processes.process_output(cached.store(), run_id)
    if "error:" in output or processes.has_ended(run_id):
        st.error(as_code(output))
        st.page_link(page("new_run"), label="Back to New run", icon=":material/arrow_back:")
    else:
        _starting(run_id)
    return None


@st.fragment(run_every=STARTING_S)
def _starting(run_id: str) -> None:
    try:
        cached.run_row(run_id)
    except UnknownName:
        if "error:" not in processes.process_output(
            cached.store(), run_id
        ) and not processes.has_ended(run_id):
            st.info("Loading the model and the suite …")
            return
    st.rerun()


def render_banner(row: dict[str, Any]) -> None:
    """Show the run's status, model, suite and note."""
    if st.session_state.pop("resumed", None) == row["id"]:
        st.toast("Resuming: the model is being loaded.")
    status = components.status_of(row)
    errors = " with errors" if status == "done" and int(row["n_errors"]) else ""
    st.subheader(f"{components.STATUS.get(status, status)}{errors}")
    st.caption(as_code(f"{row['model']} on {row['suite_name']}, run {row['id']}"))
    if row["note"]:
        st.warning(as_code(str(row["note"])))
    if status != "running":
        components.partial_banner(row)


def render_live_progress(row: dict[str, Any]) -> None:
    """Show the run's counters.

    While the run may change they are refreshed every second, and the page runs again when it
    did change. Once it has ended they are shown once, without polling.
    """
    followed = may_change(row)
    if followed:
        st.session_state["followed"] = row["id"]
    st.fragment(_progress, run_every=FOLLOWED_S if followed else None)(
        row["id"], state_of(row), followed
    )


def may_change(row: dict[str, Any]) -> bool:
    """Return whether a run may change by itself.

    It may while it is planned or running, and while its process still makes estimates.
    """
    run_id, status = row["id"], str(row["status"])
    if status == "planned" or components.status_of(row) == "running" or processes.is_going(run_id):
        return True
    live = cached.live(run_id)
    if live is None or not (live.free_in_s > 0 or (live.is_here and is_alive(live.pid))):
        return False
    if status == "running":  # its heartbeat is late, and may return
        return True
    if (
        pd.isna(row["ended_at"])
        or (datetime.now(UTC) - row["ended_at"]).total_seconds() > ESTIMATES_S
    ):
        return False
    return bool(
        st.session_state.get("followed") == run_id
        or cached.estimates(run_id, int(row["revision"])).empty
    )


def _progress(run_id: str, drawn: str, followed: bool) -> None:
    """Show the counters; ``drawn`` is the state (``state_of``) that the rest of the page shows."""
    row = cached.run_row(run_id)
    if state_of(row) != drawn or (followed and not may_change(row)):
        st.rerun()
    live = cached.live(run_id)
    if live is None:
        return
    progress = live.progress
    if live.alive:
        share = progress.items_done / progress.items_total if progress.items_total else 0.0
        done = f"{progress.items_done} of {progress.items_total} {components.progress_unit(run_id)}"
        st.progress(min(1.0, share), text="stopping …" if live.stopping else done)
    eta = "n/a" if progress.eta_s is None or not live.alive else f"{progress.eta_s:.0f} s"
    cap = f" of ${progress.cap_micro / 1e6:,.2f}" if progress.cap_micro is not None else ""
    in_flight = (
        f"{progress.in_flight} of {progress.concurrency}"
        if progress.concurrency is not None
        else str(progress.in_flight)
    )
    numbers = [
        (
            components.progress_unit(run_id).capitalize(),
            f"{progress.items_done} / {progress.items_total}",
        ),
        ("Replies", f"{progress.replies:,}"),
        ("From the log", f"{progress.hits:,}"),
        ("Rate limited · failed", f"{progress.limited} · {progress.failed}"),
        ("Spent", f"{components.money(progress.spent_micro)}{cap}"),
    ]
    if live.alive:
        numbers += [
            ("In flight", in_flight),
            (
                "Limit a minute",
                "none" if progress.per_minute is None else f"{progress.per_minute:,}",
            ),
            ("Replies/s · left", f"{progress.rate:.0f} · {eta}"),
        ]
    components.show_numbers(numbers)
    if progress.reserved_micro:
        reserved = components.money(progress.reserved_micro)
        st.caption(
            f"{reserved} of the spend is reserved for calls without a reply, at their maximum cost."
        )
    if live.alive and (pause_s := progress.paused_until - time.time()) > 1:
        st.caption(f"Pausing {pause_s:.0f} s, as the server asks.")
    if progress.waiting_for:
        st.caption(f"Batches: {progress.waiting_for}.")
    if progress.asked_again:
        st.caption(
            f"{progress.asked_again} unfinished items are requested again, because redacted"
            " replies are not stored."
        )
    if progress.last_errors:
        with st.expander(f"Last errors ({len(progress.last_errors)})", expanded=live.alive):
            components.plain_list(progress.last_errors)


def state_of(row: dict[str, Any]) -> str:
    """Return what the page depends on: the status and, once nothing runs, the revision."""
    status = components.status_of(row)
    return status if status == "running" else f"{status} {row['revision']}"


def render_run_actions(row: dict[str, Any]) -> None:
    """Show the run's actions: stop, resume, retry, clone, and links to its other pages."""
    status, run_id = components.status_of(row), row["id"]
    if is_imported(cached.run_plan(run_id)):
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
    """Ask for the higher budget with which a run that reached its budget resumes."""
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
    cached.ask_stop(run_id)
    st.rerun()


def _resume(run_id: str, max_cost: float | None = None) -> None:
    access.need("admin")
    processes.spawn_resume(cached.store(), run_id, max_cost=max_cost)
    st.session_state["resumed"] = run_id
    st.rerun()  # from now on the page polls the run


def render_cost(row: dict[str, Any]) -> None:
    """Show expected and actual cost with tokens; nothing where the model is free."""
    cost_report = costs(RunView.of_row(cached.store(), row))
    money, requests = cost_report["cost"], cost_report["requests"]
    if not money["spent_usd"] and not money["estimated_usd"]:
        return
    st.subheader("Cost")
    known = money["estimated_usd"] is not None
    components.show_numbers(
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
            f"{money['held_usd']:,.4f} dollars are reserved for calls that got no reply:"
            " they may have been billed."
        )
    notes += over_reserve_lines(money)
    if money["replies_without_count"]:
        notes.append(
            f"{money['replies_without_count']:,} replies came without token counts; their"
            " maximum cost is reserved too."
        )
    st.caption(as_code(" ".join(notes)))


def render_findings(row: dict[str, Any]) -> None:
    """Show the estimates with intervals, and the reason where one is undefined."""
    estimates = cached.estimates(row["id"], int(row["revision"]))
    st.subheader("Findings")
    if estimates.empty:
        st.info("No estimates yet: they are computed shortly after the run ends or is stopped.")
        return
    first = {"rrr": 0, "rrr_ceiling": 1, "baseline_correct": 2}
    estimates = estimates.sort_values(
        "metric", key=lambda names: names.map(lambda name: first.get(name, 3)), kind="stable"
    )
    frame = pd.DataFrame(
        {
            "metric": estimates["metric"].map(components.metric_name),
            "mode": estimates["mode"],
            "of": estimates["ccs"].map(components.metric_name),
            "facet": [components.facet_text(text, "mode", "metric") for text in estimates["facet"]],
            "estimate [95% interval]": [
                components.estimate_text(e) for e in estimates.to_dict("records")
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
                help="The CCS variant that a run-level estimate is computed from.", width="small"
            ),
            "facet": st.column_config.TextColumn(
                help="The variant of the metric (facet).", width="medium"
            ),
        },
    )
    with st.container(horizontal=True):
        components.csv_button(f"estimates-{row['id']}", estimates, "estimates")
        for name in ("report.md", "report.json"):
            st.download_button(
                name,
                partial(_report, row, name),
                f"{row['id']}-{name}",
                icon=":material/download:",
                on_click="ignore",
            )


def _report(row: dict[str, Any], name: str) -> str:
    report = build_report(cached.store(), row["id"])
    return (
        render_markdown(report)
        if name.endswith(".md")
        else json.dumps(report, indent=1, ensure_ascii=False)
    )


def render_run_items(row: dict[str, Any]) -> None:
    """List every scored item, with a link to its page."""
    n_items = len(cached.view(row).items)
    st.subheader("Items")
    if not n_items:
        st.info("No item has been scored yet.")
        return
    visible = components.page_slice(n_items, "run-items-page")
    part = read.items_of_run(cached.store(), row["id"], visible.stop - visible.start, visible.start)
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
    """Show the configuration and the command that repeat this run."""
    if is_imported(cached.run_plan(row["id"])):
        st.caption(
            "Imported from a published file: cotlab mediation import FILE stores the same"
            " rows only once."
        )
        return
    text = as_yaml(stored_options(row["config"]) | {"output": None})
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
