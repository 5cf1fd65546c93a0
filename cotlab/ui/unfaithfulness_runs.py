"""The runs that the page Unfaithfulness shows."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from cotlab.analysis.tables.unfaithfulness import UNFAITHFULNESS_SCORERS
from cotlab.analysis.view import MAX_RUNS, RunView
from cotlab.core.resources import page_path
from cotlab.ui import cached, components
from cotlab.ui.address import store_default
from cotlab.ui.opened_run import default_run
from cotlab.ui.pickers import (
    ANY,
    pick_options,
    render_other_runs,
    render_unmeasured_run,
    run_labels,
    warn_of_unknown_runs,
    without_archived,
)


class ChosenRuns(NamedTuple):
    """Runs with a score of unfaithfulness."""

    rows: list[RunView]
    """Those that can be chosen, the newest first."""
    run_ids: list[str]
    """Ids of the chosen ones."""


def pick_unfaithfulness_runs() -> ChosenRuns | None:
    """Choose runs; None (with a message) where there is none.

    An address without a run opens the run that the session is about; where there is none, the
    newest and others on the same suite, since rates on other items differ by them.
    """
    all_rows = cached.stored_runs()
    if warn_of_unknown_runs(all_rows, "run"):
        return None
    rows = [row for row in all_rows if cached.has_scorer(row, *UNFAITHFULNESS_SCORERS)]
    requested_ids = st.query_params.get_all("run")
    run_ids = {row.id for row in all_rows if not row.is_archived}
    opened = default_run("unfaithfulness-run", ANY, run_ids)
    if not requested_ids and opened != ANY:
        requested_ids = [opened]
        store_default("run", opened)
    if requested_ids and not set(requested_ids) & {row.id for row in rows}:
        render_unmeasured_run(requested_ids[0], UNFAITHFULNESS_SCORERS)
        render_other_runs(run_labels(without_archived(rows, "run")))
        return None
    rows = without_archived(rows, "run")
    if not rows:
        message = (
            "No run has the scorer 'unfaithfulness' or 'judge' yet. Tag runs (epoch=1,"
            " condition=base) to group them."
        )
        query = {"measure": UNFAITHFULNESS_SCORERS[0]}
        components.render_empty_state(message, page_path("new_run"), "Start one", query)
        return None
    newest = [row.id for row in rows if row.suite == rows[0].suite][:MAX_RUNS]
    chosen_ids = pick_options(
        "Runs",
        run_labels(rows),
        "run",
        newest if opened == ANY else [opened],
        help="By default the run that was opened last, else the newest and others on its suite.",
        stable_key="unfaithfulness-runs" if opened == ANY else "",
    )
    if not chosen_ids:
        st.info("Choose a run.")
        return None
    return ChosenRuns(rows, chosen_ids)
