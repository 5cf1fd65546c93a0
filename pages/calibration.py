"""Calibration: how well calibrated scores predict labels, the labels, and calibrator versions."""

from cotlab.ui import components
from cotlab.ui.calibration import fit, steps, versions

components.render_heading(
    "Calibration", "Does a score of 0.8 mean that 8 of 10 such chains are acceptable?"
)
view = fit.select_calibration_runs()
if view is not None:
    if view.version is not None:
        versions.render_calibration_verdict(view, view.version)
    fit.render_label_counts(view)
    fit.render_score_histogram(view)
    if view.version is not None:
        versions.render_methods(view, view.version)
        versions.render_domains(view.version)
        versions.render_weights(view.version)
        versions.render_versions(view, view.version)
    fit.render_calibration_notes(view)
steps.render_step_models()
