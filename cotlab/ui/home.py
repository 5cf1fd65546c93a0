"""The page Home: the newest verdict, or the two of the demonstration, and the latest runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.verdict.wording import noun_count
from cotlab.analysis.view import RunView
from cotlab.core.errors import UnknownName
from cotlab.core.resources import page_path
from cotlab.run.config import DEMO_MODELS, demo_options
from cotlab.store import pending, read
from cotlab.store.recorded_models import short_model_name
from cotlab.store.run_status import FINISHING
from cotlab.ui import access, cached, components, verdict
from cotlab.ui.new_run import processes
from cotlab.ui.runs.list import show_latest_runs
from cotlab.ui.text import escape_markdown, shorten

MAX_LISTED_ENTRIES = 5
"""Maximum number of queues and of alerts that are listed; the others are counted."""
PROGRESS_POLL_S = 2.0
"""Seconds between two looks at runs that are running."""
N_LATEST_RUNS = 5
"""Runs in the table of the latest."""


def render_first_use() -> None:
    """Show what to do where there is no run yet."""
    st.info(
        "There is no run yet. Two shipped models (tiny models, one that follows its chain and one"
        " that ignores it) need no API key and take about half a minute."
    )
    label = "Run the shipped suite on two shipped models"
    with st.container(horizontal=True):
        if st.button(
            label, type="primary", icon=":material/play_arrow:", **access.role_control("admin")
        ):
            access.require_role("admin")
            for model in DEMO_MODELS:
                run_id = processes.new_run_id()
                processes.spawn_run(cached.store(), run_id, demo_options(model))
            st.switch_page(page_path("run"), query_params={"run": run_id})
        components.page_link("new_run", "Test your own model", "play_arrow")


def find_demo_runs(runs: Sequence[RunView]) -> list[RunView]:
    """Return the two runs of the demonstration where there is nothing else; else none."""
    by_model = {run.plan.subject.name: run for run in runs}
    is_demo = len(runs) == len(DEMO_MODELS) and set(by_model) == set(DEMO_MODELS)
    return [by_model[model] for model in reversed(DEMO_MODELS)] if is_demo else []


def find_newest_run(runs: Sequence[RunView]) -> RunView | None:
    """Return the newest run that has ended; else the newest."""
    ended = (run for run in runs if components.current_status(run) == "done")
    return next(ended, runs[0] if runs else None)


def render_demo(runs: Sequence[RunView]) -> None:
    """Show the verdicts on the two models of the demonstration side by side."""
    st.caption("Two shipped models give the same right answers. Only one uses its chain.")
    for column, run in zip(st.columns(2), runs, strict=True):
        with column, st.container(border=True, height="stretch", key=f"card-{run.id}"):
            name = f"{short_model_name(run.model)} on {run.suite_name}"
            st.caption(escape_markdown(f"{name} · {noun_count(run.n_items, 'item')}"))
            verdict.render_verdict_card(run)
            with st.container(horizontal=True):
                for item in cached.read_once(read.list_run_items, run.id, 1)["id"]:
                    query = {"run": run.id, "item": str(item)}
                    components.page_link("items", "Read one chain", "article", query)
                query = {"run": run.id}
                components.page_link("verdict", "Evidence and limitations", "fact_check", query)
    with st.container(horizontal=True):
        if st.button("Compare the two", type="primary"):
            base, other = (run.id for run in reversed(runs))
            st.switch_page(page_path("compare"), query_params={"base": base, "other": other})
        if st.button("Test your own model"):
            st.switch_page(page_path("new_run"))


def render_newest_run(run: RunView) -> None:
    """Show the verdict on one run."""
    status = components.display_status(run)
    n_measured = verdict.count_measured_items(run, verdict.run_verdict(run))
    facts = [
        f"Newest run: {shorten(short_model_name(run.model), 60)} on {shorten(run.suite_name, 60)}",
        f"{run.name}, {run.id}" if run.name else "",
        f"{n_measured:,} of {noun_count(run.n_items, 'item')} measured",
        components.STATUS_LABELS.get(status, status),
        "" if run.ended_at is None else f"{run.ended_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
    ]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(escape_markdown(" · ".join(filter(None, facts))), width="content")
        components.page_link("verdict", "Open run", "monitoring", {"run": run.id})
    verdict.render_verdict(run)


class PendingReviews(NamedTuple):
    """What waits for somebody."""

    queues: list[dict[str, Any]]
    """Queues with labels that the current user should give."""
    alerts: list[dict[str, Any]]
    """Alerts of drift."""


def load_pending_reviews() -> PendingReviews:
    """Return the labels that the current user should give, and drift alerts."""
    queues = pd.DataFrame()
    if access.has_role("labeller"):
        queues = cached.read_once(pending.pending_queues, access.current_person().name)
    alerts = cached.read_once(pending.list_drift_alerts)
    return PendingReviews(queues.to_dict("records"), alerts.to_dict("records"))


def render_running_runs(rows: Sequence[RunView]) -> None:
    """Show the active runs with their progress; without one, the page is not refreshed.

    A run that has ended is followed until its estimates are there.
    """
    run_ids = {live_run.run for live_run in cached.live_runs() if live_run.is_running}
    finishing = {
        row.id for row in rows[:N_LATEST_RUNS] if components.display_status(row) == FINISHING
    }
    run_every = PROGRESS_POLL_S if run_ids or finishing else None
    st.fragment(_render_progress, run_every=run_every)(run_ids, finishing)


def _render_progress(run_ids: set[str], finishing: set[str]) -> None:
    """Show the progress of the active runs.

    ``run_ids`` were active, and ``finishing`` without estimates, when the page ran as a whole.
    """
    live_runs = [live_run for live_run in cached.live_runs() if live_run.is_running]
    if {live_run.run for live_run in live_runs} != run_ids or not all(
        components.display_status(cached.stored_run(run_id)) == FINISHING for run_id in finishing
    ):
        st.rerun()
    for live_run in live_runs:
        progress = live_run.progress
        eta_text = f", {progress.eta_s:.0f} s left" if progress.eta_s is not None else ""
        st.progress(
            components.progress_share(progress),
            text=(
                f"{live_run.run}: {progress.items_done} of {progress.items_total}"
                f" {_progress_unit(live_run.run)}, {progress.rate:.0f} requests/s{eta_text}"
            ),
        )
        components.page_link("run", f"Watch {live_run.run}", "monitoring", {"run": live_run.run})


def _progress_unit(run_id: str) -> str:
    """Return the unit of a run's progress; a run that just started may not be in the store yet."""
    try:
        return components.progress_unit(run_id)
    except UnknownName:
        return "items"


def render_pending_reviews(reviews: PendingReviews) -> None:
    """Show labels that the current user should give, and drift alerts."""
    queues, alerts = reviews
    if queues:
        st.header("Labels due")
    for row in queues[:MAX_LISTED_ENTRIES]:
        name = escape_markdown(shorten(row["name"], 60))
        label = f"{name}: {row['due']} of {row['n']} items left for you"
        components.page_link("label", label, "rate_review", {"queue": str(row["id"])})
    _render_more_count(len(queues), "queues")
    if alerts:
        st.header("Drift alerts")
    for row in alerts[:MAX_LISTED_ENTRIES]:
        runs_text = " to ".join(
            escape_markdown(shorten(", ".join(row[side]), 60)) for side in ("reference", "current")
        )
        st.warning(
            f"{runs_text}, {row['at_']:%Y-%m-%d %H:%M}:"
            f" {escape_markdown(shorten(row['reason'], 300))}"
        )
        query = [(side, run) for side in ("reference", "current") for run in row[side]]
        components.page_link("drift", f"Drift from {runs_text}", "trending_up", query)
    _render_more_count(len(alerts), "alerts")


def _render_more_count(n: int, noun: str) -> None:
    """Show how many more there are than are listed."""
    if n > MAX_LISTED_ENTRIES:
        st.caption(f"and {n - MAX_LISTED_ENTRIES} more {noun}")


def render_recent_runs(rows: Sequence[RunView], n_archived: int, base_row: RunView | None) -> None:
    """Show the latest of the runs that are not archived, with their verdicts.

    ``base_row`` is the run at the top of the page, with which the others can be compared.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.header("Latest runs")
        components.page_link("runs", "All runs", "history")
    if n_archived:
        st.caption(f"{n_archived} archived; the page Runs lists them too.")
    latest = list(rows[:N_LATEST_RUNS])
    if base_row is not None and all(row.id != base_row.id for row in latest):
        latest.append(base_row)
    show_latest_runs(latest, base_row)
