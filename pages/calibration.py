"""Calibration: how well calibrated scores predict labels, the labels, and calibrator versions."""

from cotlab.ui import components
from cotlab.ui.calibration import fit, versions

components.head("Calibration", "Does a score of 0.8 mean that 8 of 10 such chains are acceptable?")
view = fit.select_calibration_runs()
if view is not None:
    versions.render_calibration_verdict(view)
    fit.render_label_counts(view)
    fit.render_score_histogram(view)
    versions.render_methods(view)
    versions.render_domains(view)
    versions.render_weights(view)
    versions.render_versions(view)
    fit.render_calibration_notes(view)
