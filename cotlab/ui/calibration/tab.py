"""The tab Calibrate: whether scores match acceptance rates, labels, and calibrator versions."""

from __future__ import annotations

from functools import partial

from cotlab.ui.calibration import fit, runs, steps, versions
from cotlab.ui.more import render_more


def render_calibrate_tab() -> None:
    """Show how well the scores predict the labels, and fit a calibrator."""
    view = runs.select_calibration_runs()
    if view is not None:
        _render_view(view)
    render_more("first mistake by step", steps.render_step_models, name="steps")


def _render_view(view: runs.CalibrationView) -> None:
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
