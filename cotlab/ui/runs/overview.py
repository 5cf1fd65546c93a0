"""The tab Verdict of a run: its verdict, its progress and cost, and how to repeat it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import streamlit as st

from cotlab.analysis.reply_notes import (
    cut_reply_lines,
    restated_step_lines,
    restated_step_warnings,
    stored_restated_steps,
)
from cotlab.analysis.report import run_costs
from cotlab.analysis.view import RunView
from cotlab.run.config import config_to_yaml, stored_options
from cotlab.run.summary import overshoot_warnings
from cotlab.store.item_scores import NOTHING_MEASURED
from cotlab.store.run_status import is_process_going_on
from cotlab.ui import cached, components, server_check, verdict
from cotlab.ui.new_run import processes
from cotlab.ui.run_notes import cut_reply_report
from cotlab.ui.runs.estimates import render_findings
from cotlab.ui.runs.header import render_run_note
from cotlab.ui.text import escape_markdown, shorten
from cotlab.ui.verdict_number import render_verdict_number

PROGRESS_POLL_S = 1.0
"""Interval at which the page of an active run is refreshed."""
DIGEST_CHARS = 12
"""Characters of a plan's digest on the page; the whole one stands there on hovering."""


def render_verdict_tab(run: RunView) -> None:
    """Show the verdict on a run, its picture, its progress and cost, and all estimates."""
    render_run_note(run)
    verdict.render_verdict(run)
    render_verdict_number(run.id)
    render_live_progress(run)
    verdict.render_picture(run)
    render_cost(run)
    server_check.render_run_checks(run.id)
    render_reply_notes(run)
    render_findings(run)
    render_repeat_command(run)
    verdict.render_explanation()


def render_live_progress(run: RunView) -> None:
    """Show the run's counters.

    While the run may change they are refreshed every second, and the page runs again when it
    did change. Once it has ended they are shown once, without polling.
    """
    is_followed = run_may_change(run)
    if is_followed:
        st.session_state["followed"] = run.id
    with st.container(key="counters"):  # a place of their own, so that no old ones stand below
        st.fragment(_render_progress, run_every=PROGRESS_POLL_S if is_followed else None)(
            run.id, run_page_state(run), is_followed
        )


def run_may_change(run: RunView) -> bool:
    """Return whether a run may change by itself.

    It may while it is planned or running, and while its process still makes estimates.
    """
    run_id, status = run.id, run.status
    if (
        status == "planned"
        or components.current_status(run) == "running"
        or processes.is_running(run_id)
    ):
        return True
    if status == "running":  # its heartbeat is late, and may return
        live_run = cached.live_run(run_id)
        return live_run is not None and is_process_going_on(live_run)
    if not components.may_write_estimates(run):
        return False
    is_watched = st.session_state.get("followed") == run_id
    return is_watched or bool(cached.load_estimates(run_id, run.revision).empty)


def _render_progress(run_id: str, page_state: str, is_followed: bool) -> None:
    """Show the counters; ``page_state`` is what the rest of the page shows."""
    run = cached.stored_run(run_id)
    if run_page_state(run) != page_state or (is_followed and not run_may_change(run)):
        st.rerun()
    live_run = cached.live_run(run_id)
    if live_run is None:
        return
    progress, unit = live_run.progress, components.progress_unit(run_id)
    is_unmeasured = components.display_status(run) == NOTHING_MEASURED
    tried_text = " tried, none with a value" if is_unmeasured else ""
    cap_text = f" of ${progress.cap_micro / 1e6:,.2f}" if progress.cap_micro is not None else ""
    numbers = [
        (f"{unit.capitalize()}{tried_text}", f"{progress.items_done} / {progress.items_total}"),
        ("Replies", "n/a" if progress.answered is None else f"{progress.answered:,}"),
        ("Reused replies", f"{progress.hits:,}"),
        ("Rate limited · failed", f"{progress.limited} · {progress.failed}"),
        ("Spent", f"{components.money_text(progress.spent_micro)}{cap_text}"),
    ]
    if live_run.is_running:
        limit_text = "" if progress.concurrency is None else f" of {progress.concurrency}"
        rate_limit_text = "none" if progress.per_minute is None else f"{progress.per_minute:,}"
        eta_text = "n/a" if progress.eta_s is None else f"{progress.eta_s:.0f} s"
        numbers += [
            ("In flight", f"{progress.in_flight}{limit_text}"),
            ("Limit a minute", rate_limit_text),
            ("Requests/s · left", f"{progress.rate:.0f} · {eta_text}"),
        ]
    components.show_numbers(numbers)
    if live_run.is_running:
        done_text = f"{progress.items_done} of {progress.items_total} {unit}"
        st.progress(
            components.progress_share(progress),
            text="stopping …" if live_run.is_stopping else done_text,
        )
    if progress.reserved_micro:
        reserved_text = components.money_text(progress.reserved_micro)
        st.caption(
            f"{reserved_text} of the spend is reserved for calls without a reply, at their maximum"
            " cost."
        )
    if live_run.is_running and (pause_s := progress.paused_until - time.time()) > 1:
        st.caption(f"Pausing {pause_s:.0f} s, as the server asks.")
    if live_run.is_running and progress.retried_error:
        error_text = escape_markdown(shorten(progress.retried_error, 300))
        st.caption(f"The server failed, and is asked again: {error_text}")
    if progress.waiting_for:
        st.caption(f"Batches: {progress.waiting_for}.")
    if progress.asked_again:
        st.caption(
            f"{progress.asked_again} unfinished items are requested again, because redacted"
            " replies are not stored."
        )
    if progress.last_errors:
        with st.expander(
            f"Last errors ({len(progress.last_errors)})", expanded=live_run.is_running
        ):
            components.show_escaped_lines(progress.last_errors)


def run_page_state(run: RunView) -> str:
    """Return what the page depends on: the status and, once nothing runs, the revision.

    While a run goes on, the page is drawn anew whenever another tenth of it has ended.
    """
    status = components.current_status(run)
    if status == "running":
        n_tenths = 10 * run.n_ended // max(1, components.n_evaluations(run))
        return f"{status}, {n_tenths} tenths"
    return f"{status} {run.revision}"


def render_cost(run: RunView) -> None:
    """Show expected and actual cost with tokens; nothing where the model is free."""
    cost_report = run_costs(run)
    cost, requests = cost_report["cost"], cost_report["requests"]
    if not cost["spent_usd"] and not cost["estimated_usd"]:
        return
    st.header("Cost")
    expected_usd = cost["estimated_usd"]
    components.show_numbers(
        (
            ("Expected", "n/a" if expected_usd is None else f"~${expected_usd:,.4f}"),
            ("Actual", f"${cost['spent_usd']:,.4f}"),
            ("Requests expected · made", f"{requests['estimated'] or 0:,} · {requests['asked']:,}"),
            ("Tokens in · cached", f"{cost['tokens_in']:,} · {cost['tokens_cached']:,}"),
            ("Tokens out · reasoning", f"{cost['tokens_out']:,} · {cost['tokens_reasoning']:,}"),
        )
    )
    notes = [f"Prices: {(cost['estimate'] or {}).get('price_source') or 'unknown'}."]
    if cost["saved_by_log_usd"]:
        notes.append(f"Replies from the log saved {cost['saved_by_log_usd']:,.4f} dollars.")
    if cost["held_usd"]:
        notes.append(
            f"{cost['held_usd']:,.4f} dollars are reserved for calls that got no reply:"
            " they may have been billed."
        )
    notes += overshoot_warnings(cost)
    if cost["replies_without_count"]:
        notes.append(
            f"{cost['replies_without_count']:,} replies came without token counts; their"
            " maximum cost is reserved too."
        )
    st.caption(escape_markdown(" ".join(notes)))


def render_repeat_command(run: RunView) -> None:
    """Show the configuration and the command that repeat this run."""
    text = config_to_yaml(stored_options(run.config_json) | {"output": None})
    models = [
        f"{role} {run.model if role == 'subject' else ref}" for role, ref in run.plan.models.items()
    ]
    with st.expander("Configuration and command"):
        st.code(text, language=None, wrap_lines=True)
        st.code("cotlab run --config run.yaml", language=None, wrap_lines=True)
        components.download_button("run.yaml", text, "run.yaml")
        digest, folder = run.plan_digest, run.output
        st.caption(
            escape_markdown(
                f"Models of this run: {', '.join(models)}; others above were not"
                f" asked. Plan {digest[:DIGEST_CHARS]}…, code {run.code_version}, reports in"
                f" …/{Path(folder).name}"
            ),
            help=escape_markdown(f"Plan {digest}, reports in {folder}"),
        )


@cached.cache_by_store(32)
def _restated_report(run_id: str, revision: int, _run: RunView) -> dict[str, Any]:
    return {"restated_steps": stored_restated_steps(cached.cached_run_view(_run))}


def render_reply_notes(run: RunView) -> None:
    """Show how many replies were cut off, and how many restate the step that was removed."""
    report = _restated_report(run.id, run.revision, run) | cut_reply_report(run)
    warnings = restated_step_warnings(report)
    for line in (*cut_reply_lines(report), *warnings):
        st.warning(escape_markdown(line))
    is_silent = bool(warnings) or run.id in cached.unmeasured_runs()
    for line in () if is_silent else restated_step_lines(report):
        st.caption(escape_markdown(line))
