"""The page Decisions: whether the calibrator in use has seen the labels of the run."""

from __future__ import annotations

import streamlit as st

from cotlab.store.calibrators import current_calibrator
from cotlab.ui import cached, components
from cotlab.ui.decisions.decided import SCORERS_WITH_FEATURES, DecisionView
from cotlab.ui.text import escape_markdown, shorten

MAX_OFFERED_RUNS = 3
"""Runs that the fit has not seen which are offered, the newest first."""


def render_fit_warning(view: DecisionView) -> None:
    """Say where the calibrator was fitted on labels of this run, and offer runs that it has not.

    On these labels a calibrated score fits better than on new items.
    """
    calibrator = cached.read_once(current_calibrator)
    fit_runs = set() if calibrator is None else set((calibrator["report"] or {}).get("runs", []))
    if calibrator is None or view.run_id not in fit_runs:
        return
    st.warning(
        f"Calibrator version {calibrator['version']} was fitted on labels of this run. On them its"
        " scores fit better than on new items, so the figures below are no test of it."
    )
    others = [
        row
        for row in cached.stored_runs()
        if row.id not in fit_runs
        and not row.is_archived
        and cached.has_scorer(row, *SCORERS_WITH_FEATURES)
    ]
    with st.container(horizontal=True):
        for row in others[:MAX_OFFERED_RUNS]:
            name = escape_markdown(shorten(str(row.name or row.suite_name), 40))
            label = f"Decide on {name}, {row.id}"
            components.page_link("decisions", label, "gavel", {"run": row.id})
