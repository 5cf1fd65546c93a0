"""Drift: today's items against those that the calibrator saw, feature by feature and jointly."""

from cotlab.ui import components as parts
from cotlab.ui import drift

parts.head("Drift", "Are today's items still like those that the calibrator saw?")
shown = drift.found()
if shown is not None:
    drift.answer(shown)
    drift.figures(shown)
    drift.over_time(shown)
    drift.actions(shown)
    drift.fine_print(shown)
drift.history()
