"""Calibration: how well calibrated scores predict labels, the labels, and calibrator versions."""

from functools import partial

from cotlab.ui import components
from cotlab.ui.calibration import fit, runs, steps, versions
from cotlab.ui.more import render_more

components.render_heading(
    "Calibration", "Does a score of 0.8 mean that 8 of 10 such chains are acceptable?"
)
view = runs.select_calibration_runs()
if view is not None:
    if view.version is not None:
        versions.render_calibration_verdict(view, view.version)
    fit.render_label_counts(view)
    if view.version is None:
        fit.render_score_histogram(view)
    else:
        render_more(
            "distribution of the scores",
            partial(fit.render_score_histogram, view),
            name="scores",
            params=("score",),
        )
        render_more(
            "calibration methods, domains and weights",
            partial(versions.render_methods, view, view.version),
            partial(versions.render_domains, view.version),
            partial(versions.render_weights, view.version),
        )
        render_more(
            "versions, and putting another into use",
            partial(versions.render_versions, view, view.version),
            name="versions",
        )
    fit.render_calibration_notes(view)
render_more("first mistake by step", steps.render_step_models, name="steps")
