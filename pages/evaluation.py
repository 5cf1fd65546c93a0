"""Evaluation: which stored metrics, and fits on them, tell sound chains from faulty ones."""

from cotlab.ui import components
from cotlab.ui.evaluation import choose, signals

components.render_heading("Evaluation", "Which signals tell on labelled chains?")
view = choose.select_evaluation()
if view is not None:
    signals.render_finding(view)
    signals.render_aurocs(view)
    signals.render_signal(view)
    signals.render_locations(view)
    signals.render_run_differences(view)
    signals.render_notes(view)
