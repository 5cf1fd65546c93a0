"""Calibration: whether calibrated scores mean what they say, the labels behind them, and the versions of the calibrator."""

from cotlab.ui import components as parts
from cotlab.ui.calibration import fit as calibration
from cotlab.ui.calibration import versions as calibration_versions

parts.head("Calibration", "Does a score of 0.8 mean that 8 of 10 such chains are acceptable?")
view = calibration.select_calibration_runs()
if view is not None:
    calibration.render_calibration_verdict(view)
    calibration.render_label_counts(view)
    calibration.render_score_histogram(view)
    calibration.render_methods(view)
    calibration.render_domains(view)
    calibration.render_weights(view)
    calibration_versions.render_versions(view)
    calibration.render_calibration_notes(view)
