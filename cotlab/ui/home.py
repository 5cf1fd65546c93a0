"""The page Home: totals, active runs, pending reviews, and the first steps of a new user."""

from __future__ import annotations

import streamlit as st

from cotlab.core.errors import UnknownName
from cotlab.core.resources import page
from cotlab.run.config import DEMO
from cotlab.store import pending, read
from cotlab.ui import access, cached, components
from cotlab.ui.new_run import processes
from cotlab.ui.runs.list import show_runs
from cotlab.ui.text import as_code, shorten

MAX_LISTED = 5
"""Maximum number of queues and of alerts that are listed; the others are counted."""


def is_empty() -> bool:
    """Return whether the store has no run."""
    return read.store_totals(cached.store())["runs"] == 0


def first_use() -> None:
    """Show what to do where there is no run yet."""
    st.info(
        "There is no run yet. The shipped suite and the shipped organism (a tiny model)"
        " need no API key and take less than a minute."
    )
    label = "Run the shipped suite on the shipped organism"
    if st.button(label, type="primary", icon=":material/play_arrow:", **access.only("admin")):
        access.need("admin")
        run_id = processes.new_run_id()
        processes.spawn(cached.store(), run_id, DEMO)
        st.switch_page(page("run"), query_params={"run": run_id})
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
        st.page_link(page("suites"), label="Suites", icon=":material/list_alt:")
        st.page_link(page("new_run"), label="New run", icon=":material/play_arrow:")
        st.page_link(page("steps"), label="Steps", icon=":material/stairs:")


def render_totals() -> None:
    """Show how many suites, runs and scores there are, and the money spent."""
    counts = read.store_totals(cached.store())
    components.show_numbers(
        (
            ("Suites", f"{counts['suites']}"),
            ("Runs", f"{counts['runs']}"),
            ("Scores", f"{counts['scores']:,}"),
            ("Spent", components.money(counts["spent_micro"])),
        )
    )


@st.fragment(run_every=2.0)
def render_running_runs() -> None:
    """Show the active runs with their progress."""
    active = [live for live in cached.live_runs() if live.alive]
    for live in active:
        progress = live.progress
        share = progress.items_done / progress.items_total if progress.items_total else 0.0
        eta = f", {progress.eta_s:.0f} s left" if progress.eta_s is not None else ""
        st.progress(
            min(1.0, share),
            text=(
                f"{live.run}: {progress.items_done} of {progress.items_total} {_unit(live.run)},"
                f" {progress.rate:.0f} replies/s{eta}"
            ),
        )
        st.page_link(
            page("run"),
            label=f"Watch {live.run}",
            icon=":material/monitoring:",
            query_params={"run": live.run},
        )


def _unit(run_id: str) -> str:
    """Return the unit of a run's progress; a run that just started may not be in the store yet."""
    try:
        return components.progress_unit(run_id)
    except UnknownName:
        return "items"


def render_pending_reviews() -> None:
    """Show labels that the current user should give, and drift alerts."""
    queues = (
        pending.pending_queues(cached.store(), access.person().name).to_dict("records")
        if access.may("labeller")
        else []
    )
    alerts = pending.drift_alerts(cached.store()).to_dict("records")
    if queues:
        st.subheader("Labels due")
    for row in queues[:MAX_LISTED]:
        st.page_link(
            page("label"),
            icon=":material/rate_review:",
            query_params={"queue": str(row["id"])},
            label=(
                f"{as_code(shorten(row['name'], 60))}: {row['due']} of {row['n']} items left"
                " for you"
            ),
        )
    _more(len(queues), "queues")
    if alerts:
        st.subheader("Drift alerts")
    for row in alerts[:MAX_LISTED]:
        both = " to ".join(
            as_code(shorten(", ".join(row[side]), 60)) for side in ("reference", "current")
        )
        st.warning(f"{both}, {row['at_']:%Y-%m-%d %H:%M}: {as_code(shorten(row['reason'], 300))}")
        st.page_link(
            page("drift"),
            label=f"Drift from {both}",
            icon=":material/trending_up:",
            query_params=[(side, run) for side in ("reference", "current") for run in row[side]],
        )
    _more(len(alerts), "alerts")
    if not queues and not alerts:
        st.caption("No labels are due, and there is no drift alert.")


def _more(n: int, what: str) -> None:
    """Show how many more there are than are listed."""
    if n > MAX_LISTED:
        st.caption(f"and {n - MAX_LISTED} more {what}")


def render_recent_runs() -> None:
    """Show the latest runs."""
    st.subheader("Latest runs")
    show_runs(read.list_runs(cached.store()).head(5), key="home-runs")
    with st.container(horizontal=True):
        st.page_link(page("new_run"), label="New run", icon=":material/play_arrow:")
        st.page_link(page("runs"), label="All runs", icon=":material/history:")
