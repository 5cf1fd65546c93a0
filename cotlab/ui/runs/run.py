"""The page Run: its progress, actions, cost, findings, items, and how to repeat it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import streamlit as st

from cotlab.analysis.report import run_costs
from cotlab.analysis.view import RunView
from cotlab.core.errors import UnknownName
from cotlab.core.resources import page_path
from cotlab.review.labelling.truth import LABEL_KEYS
from cotlab.run.config import config_to_yaml, stored_options
from cotlab.run.summary import overshoot_warnings
from cotlab.store.item_metadata import has_item_metadata
from cotlab.store.item_scores import NOTHING_MEASURED
from cotlab.store.pending import labelled_runs, last_label_number
from cotlab.store.recorded_models import short_model_name
from cotlab.store.run_names import is_run_deleted
from cotlab.store.run_status import is_process_going_on
from cotlab.ui import access, cached, components
from cotlab.ui.item import evidence
from cotlab.ui.new_run import processes
from cotlab.ui.new_run.form import AGAIN_PARAM
from cotlab.ui.text import escape_markdown, shorten

LOADING_POLL_S = 1.0
PROGRESS_POLL_S = 1.0
"""Interval at which the page of an active run is refreshed."""
DIGEST_CHARS = 12
"""Characters of a plan's digest on the page; the whole one stands there on hovering."""
STOP_HELP = "Stops cleanly: finished work is stored, and the run can be resumed."


def load_run_row(run_id: str) -> RunView | None:
    """Return the run's row; None (with its process's output) while it is still loading."""
    try:
        return cached.stored_run(run_id)
    except UnknownName:
        if is_run_deleted(cached.store(), run_id) or not processes.has_started(
            cached.store(), run_id
        ):
            text = f"There is no run {escape_markdown(shorten(run_id))} in this store."
            components.render_empty_state(text, page_path("runs"), "All runs")
            return None
    output = processes.process_output(cached.store(), run_id)
    if "error:" in output or processes.has_ended(run_id):
        st.error(escape_markdown(output))
        components.page_link("new_run", "Back to New run", "arrow_back", {AGAIN_PARAM: "true"})
    else:
        _render_loading(run_id)
    return None


@st.fragment(run_every=LOADING_POLL_S)
def _render_loading(run_id: str) -> None:
    try:
        cached.stored_run(run_id)
    except UnknownName:
        output = processes.process_output(cached.store(), run_id)
        if "error:" not in output and not processes.has_ended(run_id):
            st.info("Loading the model and the suite …")
            return
    st.rerun()


def render_banner(row: RunView) -> None:
    """Show the run's name or its model and suite as the title, its status, and its note."""
    if st.session_state.pop("resumed", None) == row.id:
        st.toast("Resuming: the model is being loaded.")
    status = components.display_status(row)
    errors_text = " with errors" if status == "done" and row.n_errors else ""
    model, suite_name = short_model_name(row.model), row.suite_name
    title = row.name or f"{shorten(model, 60)} on {shorten(suite_name, 60)}"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.title(escape_markdown(title), width="content")
        st.header(f"{components.STATUS_LABELS.get(status, status)}{errors_text}", width="content")
    st.caption(escape_markdown(f"{row.model} on {suite_name}, run {row.id}"))
    if row.note:
        st.warning(escape_markdown(row.note))
    if status != "running":
        components.warn_if_partial(row)


def render_live_progress(row: RunView) -> None:
    """Show the run's counters.

    While the run may change they are refreshed every second, and the page runs again when it
    did change. Once it has ended they are shown once, without polling.
    """
    is_followed = run_may_change(row)
    if is_followed:
        st.session_state["followed"] = row.id
    with st.container(key="counters"):  # a place of their own, so that no old ones stand below
        st.fragment(_render_progress, run_every=PROGRESS_POLL_S if is_followed else None)(
            row.id, run_page_state(row), is_followed
        )


def run_may_change(row: RunView) -> bool:
    """Return whether a run may change by itself.

    It may while it is planned or running, and while its process still makes estimates.
    """
    run_id, status = row.id, row.status
    if (
        status == "planned"
        or components.current_status(row) == "running"
        or processes.is_running(run_id)
    ):
        return True
    if status == "running":  # its heartbeat is late, and may return
        live_run = cached.live_run(run_id)
        return live_run is not None and is_process_going_on(live_run)
    if not components.may_write_estimates(row):
        return False
    is_watched = st.session_state.get("followed") == run_id
    return is_watched or bool(cached.load_estimates(run_id, row.revision).empty)


def _render_progress(run_id: str, page_state: str, is_followed: bool) -> None:
    """Show the counters; ``page_state`` is what the rest of the page shows."""
    row = cached.stored_run(run_id)
    if run_page_state(row) != page_state or (is_followed and not run_may_change(row)):
        st.rerun()
    live_run = cached.live_run(run_id)
    if live_run is None:
        return
    progress, unit = live_run.progress, components.progress_unit(run_id)
    is_unmeasured = components.display_status(row) == NOTHING_MEASURED
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


def run_page_state(row: RunView) -> str:
    """Return what the page depends on: the status and, once nothing runs, the revision.

    While a run goes on, the page is drawn anew whenever another tenth of it has ended.
    """
    status = components.current_status(row)
    if status == "running":
        n_tenths = 10 * row.n_ended // max(1, components.n_evaluations(row))
        return f"{status}, {n_tenths} tenths"
    return f"{status} {row.revision}"


def render_run_actions(row: RunView) -> None:
    """Show the run's actions: stop, resume, retry, clone, and links to its other pages."""
    status, run_id = components.current_status(row), row.id
    with st.container(horizontal=True):
        _render_state_action(row, status)
        components.page_link("new_run", "Clone", "content_copy", {"from": run_id})
        for label, icon, link in evidence.run_page_links(row):
            components.page_link(link.page, label, icon, link.query)
        components.page_link("compare", "Compare", "compare_arrows", {"base": run_id})
        if _has_labels(run_id, cached.read_once(last_label_number)):
            components.page_link("evaluation", "Evaluation", "rule", {"runs": run_id})


@cached.cache_by_store(64)
def _has_labels(run_id: str, label_number: int) -> bool:
    """Return whether a run's chains have labels, from a file or from raters."""
    store = cached.store()
    return has_item_metadata(store, run_id, LABEL_KEYS) or run_id in labelled_runs(store)


def _render_state_action(row: RunView, status: str) -> None:
    """Show what can be done with a run in this state, in a place that is there in each state."""
    run_id = row.id
    with st.container(horizontal=True, width="content"):
        if status == "running":
            st.button(
                "Stop",
                icon=":material/stop:",
                on_click=_stop_run,
                args=(run_id,),
                **access.role_control("admin", help=STOP_HELP),
            )
        elif status in ("stopped", "budget", "failed", "interrupted", "planned"):
            max_cost = _render_cap_input(row) if status == "budget" else None
            if st.button(
                "Resume",
                type="primary",
                icon=":material/play_arrow:",
                **access.role_control("admin"),
            ):
                _resume_run(run_id, max_cost)
        elif row.n_errors and st.button(
            "Retry failed", icon=":material/refresh:", **access.role_control("admin")
        ):
            _resume_run(run_id)


def _render_cap_input(row: RunView) -> float:
    """Ask for the higher budget with which a run that reached its budget resumes."""
    previous_cap = float(json.loads(row.config_json).get("max_cost") or 0.0)
    return st.number_input(
        "New cap, US dollars",
        0.0,
        None,
        2 * previous_cap,
        format="%.4f",
        key="resume-cap",
        width=180,
        help="For the whole run.",
    )


def _stop_run(run_id: str) -> None:
    """Stop a run: a callback, so that nothing is lost where the page is left while it is drawn."""
    access.require_role("admin")
    cached.request_stop(run_id)


def _resume_run(run_id: str, max_cost: float | None = None) -> None:
    access.require_role("admin")
    processes.spawn_resume(cached.store(), run_id, max_cost=max_cost)
    st.session_state["resumed"] = run_id
    st.rerun()  # from now on the page polls the run


def render_cost(row: RunView) -> None:
    """Show expected and actual cost with tokens; nothing where the model is free."""
    cost_report = run_costs(row)
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


def render_repeat_command(row: RunView) -> None:
    """Show the configuration and the command that repeat this run."""
    text = config_to_yaml(stored_options(row.config_json) | {"output": None})
    models = [
        f"{role} {row.model if role == 'subject' else ref}" for role, ref in row.plan.models.items()
    ]
    with st.expander("Configuration and command"):
        st.code(text, language=None, wrap_lines=True)
        st.code("cotlab run --config run.yaml", language=None, wrap_lines=True)
        components.download_button("run.yaml", text, "run.yaml")
        digest, folder = row.plan_digest, row.output
        st.caption(
            escape_markdown(
                f"Models of this run: {', '.join(models)}; others above were not"
                f" asked. Plan {digest[:DIGEST_CHARS]}…, code {row.code_version}, reports in"
                f" …/{Path(folder).name}"
            ),
            help=escape_markdown(f"Plan {digest}, reports in {folder}"),
        )
