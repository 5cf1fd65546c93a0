"""Drift: whether current items differ from those that the calibrator was fitted on."""

from functools import partial

from cotlab.ui import components, drift, drift_actions, drift_history
from cotlab.ui.more import render_more

components.render_heading(
    "Drift", ("Are current items still like those that the calibrator was fitted on?")
)
view = drift.select_drift_runs()
if view is not None:
    drift.render_drift_verdict(view)
    drift.render_drift_by_feature(view)
    drift_actions.render_drift_actions(view)
    render_more(
        "distribution of each feature, and drift over time",
        partial(drift.render_distributions, view),
        partial(drift_history.render_drift_over_time, view),
        partial(drift.render_drift_notes, view),
    )
render_more(
    "stored checks", drift_history.render_past_checks, name="history", params=("history-page",)
)
