"""The page Home: totals, active runs, pending reviews, and the first steps of a new user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.verdict.wording import noun_count
from cotlab.analysis.view import RunView
from cotlab.core.errors import UnknownName
from cotlab.core.resources import page_path
from cotlab.run.config import DEMO_MODELS, demo_options
from cotlab.store import pending, read
from cotlab.store.run_status import FINISHING
from cotlab.ui import access, cached, components, verdict
from cotlab.ui.new_run import processes
from cotlab.ui.runs.list import show_latest_runs
from cotlab.ui.text import escape_markdown, shorten
from cotlab.ui.verdict_cells import verdict_cell

MAX_LISTED_ENTRIES = 5
"""Maximum number of queues and of alerts that are listed; the others are counted."""


DEMO_QUESTION = "Which of these two would you trust?"
PROGRESS_POLL_S = 2.0
"""Seconds between two looks at runs that are running."""
N_LATEST_RUNS = 5
"""Runs in the table of the latest."""


def is_store_empty() -> bool:
    """Return whether the store has no run."""
    return cached.read_once(read.get_store_totals)["runs"] == 0


def render_first_use() -> None:
    """Show what to do where there is no run yet."""
    st.info(
        "There is no run yet. The shipped suite and two shipped organisms (tiny models, one that"
        " follows its chain and one that ignores it) need no API key and take about half a minute."
    )
    label = "Run the shipped suite on two shipped organisms"
    if st.button(
        label, type="primary", icon=":material/play_arrow:", **access.role_control("admin")
    ):
        access.require_role("admin")
        for model in DEMO_MODELS:
            run_id = processes.new_run_id()
            processes.spawn_run(cached.store(), run_id, demo_options(model))
        st.switch_page(page_path("run"), query_params={"run": run_id})
    render_first_steps()


def render_first_steps() -> None:
    """Explain the three steps: suite, run, look."""
    st.markdown(
        "1. **Suite**: choose a shipped suite or upload your own (one JSON object per"
        " line).\n2. **Run**: choose a model and what to measure; a dry run estimates"
        " requests and cost.\n3. **Look**: *Steps* shows which steps the answer depends on;"
        " every number links to the replies behind it."
    )
    with st.container(horizontal=True):
        components.page_link("suites", "Suites", "list_alt")
        components.page_link("new_run", "New run", "play_arrow")
        components.page_link("steps", "Steps", "stairs")


def is_demo_first(rows: Sequence[RunView]) -> bool:
    """Return whether the demonstration opens Home: no other run is there."""
    return len(rows) == len(DEMO_MODELS)


def render_demo_question(row_by_model: Mapping[str, RunView]) -> None:
    """Ask which of the two demonstration models is to be trusted, with both verdicts."""
    with st.container(key="demo", gap="xxsmall"):
        st.header(DEMO_QUESTION)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption("Both give right answers, and their chains look alike:", width="content")
            _render_demo_models(row_by_model)


def render_demo_line(row_by_model: Mapping[str, RunView]) -> None:
    """Show the demonstration on one line, where other runs have the page."""
    suite_name = shorten(row_by_model[DEMO_MODELS[0]].suite_name, 24)
    with st.container(horizontal=True, vertical_alignment="center", key="demo-line"):
        st.markdown(
            f"**Demonstration on {escape_markdown(suite_name)}**: {DEMO_QUESTION}", width="content"
        )
        _render_demo_models(row_by_model)


def _render_demo_models(row_by_model: Mapping[str, RunView]) -> None:
    """Link to both models with their verdicts, and to the comparison."""
    results = verdict.run_verdicts(row_by_model.values())
    for model, row in row_by_model.items():
        finding = verdict_cell(results[row.id])["text"]
        components.page_link("run", f"{model}: {finding}", "monitoring", {"run": row.id})
    base, other = (row_by_model[model].id for model in DEMO_MODELS)
    components.page_link(
        "compare",
        "Compare them",
        "compare_arrows",
        {"base": base, "other": other},
    )


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


def render_totals(reviews: PendingReviews) -> None:
    """Show on one line how many suites, runs and scores there are, and the money spent."""
    counts = cached.read_once(read.get_store_totals)
    n_runs, n_suites, n_scores = (
        noun_count(counts[f"{noun}s"], noun) for noun in ("run", "suite", "score")
    )
    is_waiting = bool(reviews.queues or reviews.alerts)
    no_reviews_text = "" if is_waiting else " No labels are due, and there is no drift alert."
    st.caption(
        f"In brackets: 95 % intervals. {n_runs} on {n_suites}, {n_scores},"
        f" spent {components.money_text(counts['spent_micro'])}.{no_reviews_text}"
    )


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
