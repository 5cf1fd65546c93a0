"""The page Drift: current items against the calibrator's reference, by feature and jointly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import drift as tables
from cotlab.analysis.tables.comparison import shared_scorers
from cotlab.analysis.view import RunView
from cotlab.core.resources import page_path
from cotlab.figures.style import format_number
from cotlab.review.release.drift import (
    DEFAULT_KS_LIMIT,
    DEFAULT_PSI_LIMIT,
    load_feature_values,
    measure_drift,
)
from cotlab.review.release.drift_check import (
    DriftCheck,
)
from cotlab.review.release.drift_state import (
    HEADLINES,
    DriftState,
    drift_doubts,
    drift_state,
    uncompared_text,
)
from cotlab.store.calibrators import current_calibrator
from cotlab.store.pending import last_label_number
from cotlab.store.recorded_models import short_model_name
from cotlab.ui import cached, charts, components
from cotlab.ui.address import bind_number
from cotlab.ui.opened_run import default_run
from cotlab.ui.pickers import (
    ANY,
    pick_options,
    run_labels,
    warn_of_unknown_runs,
    without_archived,
)
from cotlab.ui.text import display_errors, escape_markdown, shorten

RunRevisions = tuple[tuple[str, int], ...]
_BOX_BY_STATE: dict[DriftState, tuple[Callable[..., Any], str]] = {
    "drift": (st.error, "warning"),
    "none": (st.success, "check_circle"),
    "unclear": (st.warning, "help"),
}
"""The box of a check's result and its icon."""


class DriftView(NamedTuple):
    """What the page Drift shows."""

    check: DriftCheck
    """The drift check of the chosen runs."""
    run_revisions: RunRevisions
    """The runs of both sides with their revisions."""
    has_calibrator: bool
    """Whether a calibrator is in use."""
    printed_run: str | None
    """The run whose printed figures show this check, once it is stored."""

    def paper_figure(self, name: str) -> charts.PaperFigure | None:
        """Return the printed form of a figure; None before the check is stored."""
        return None if self.printed_run is None else charts.PaperFigure(self.printed_run, name)

    @property
    def evidence_link(self) -> tuple[str, dict[str, str]]:
        """The page and the query of the link "Evidence"."""
        return page_path("run"), {"run": self.check.current[0]}


def select_drift_runs() -> DriftView | None:
    """Choose the runs of both sides; None (with a message) where nothing can be compared."""
    rows = cached.stored_runs()
    if warn_of_unknown_runs(rows, "reference", "current", "run"):
        return None
    rows = without_archived(rows, "reference", "current", "run")
    if len(rows) < 2:
        message = "A drift check needs two runs: a reference and a later one."
        components.render_empty_state(message, page_path("new_run"), "Start one")
        return None
    labels = run_labels(rows)
    revision_by_run = {row.id: row.revision for row in rows}
    reference_runs = pick_options(
        "Reference",
        labels,
        "reference",
        _default_reference_runs(rows),
        help="By default the runs that the calibrator was fitted on.",
        stable_key="-".join(("drift-reference", *_requested_runs())),
    )
    other_labels = {run: label for run, label in labels.items() if run not in reference_runs}
    current_runs = pick_options(
        "Current",
        other_labels,
        "current",
        _default_current_runs(rows, reference_runs),
        help=(
            "The runs to check for drift: by default the one that is looked at, or the newest that"
            " shares numbers with the reference."
        ),
        stable_key="-".join(("drift-current", *reference_runs, *_requested_runs())),
    )
    if not reference_runs or not current_runs:
        st.info("Choose at least one run on each side.")
        return None
    for row in rows:
        if row.id in (*reference_runs, *current_runs):
            components.warn_if_partial(row)
    with st.container(horizontal=True):
        ks_threshold = _render_threshold_input("KS threshold", 1.0, DEFAULT_KS_LIMIT, "ks")
        psi_threshold = _render_threshold_input(
            "PSI threshold (nats)", 10.0, DEFAULT_PSI_LIMIT, "psi"
        )
    run_revisions = tuple((run, revision_by_run[run]) for run in (*reference_runs, *current_runs))
    with display_errors(st.info):
        check = _cached_drift_check(
            run_revisions,
            len(reference_runs),
            ks_threshold,
            psi_threshold,
            _quality_cache_key(),
        )
        return DriftView(
            check,
            run_revisions,
            cached.read_once(current_calibrator) is not None,
            tables.printed_run(cached.store(), check),
        )
    return None


def _render_threshold_input(label: str, max_value: float, default_value: float, key: str) -> float:
    bound = bind_number(key, default_value, 0.01, max_value)
    return float(st.number_input(label, 0.01, max_value, step=0.05, width=170, **bound))


def render_drift_verdict(view: DriftView) -> None:
    """Show whether there is an alert, and why."""
    check = view.check
    state = drift_state(check)
    doubts = drift_doubts(check)
    text = f"{'; '.join(doubts)}." if state == "unclear" else check.reason
    models = [_models_of(runs) for runs in (check.reference, check.current)]
    headline, (show_box, icon) = HEADLINES[state], _BOX_BY_STATE[state]
    if state == "drift" and models[0] != models[1]:  # no change over time of one model
        headline, (show_box, icon) = "These runs differ.", _BOX_BY_STATE["unclear"]
    show_box(f"**{headline}** {escape_markdown(text)}", icon=f":material/{icon}:")
    if not view.has_calibrator:
        st.caption(
            "No calibrator has been fitted, so no score depends on this: the reference is a run"
            " that you chose, or the oldest that can be one."
        )
    if models[0] != models[1]:
        st.warning(
            f"These are runs of different models ({escape_markdown(models[0])} and"
            f" {escape_markdown(models[1])}): what differs is the model, not what one model does"
            " over time.",
            icon=":material/info:",
        )
    if uncompared := uncompared_text(check):
        st.caption(escape_markdown(uncompared))
    n_features = len(tables.compared_features(check))
    joint_drift = check.joint
    quality = check.quality
    energy_text = format_number(joint_drift.energy.value)
    null_hi_text = format_number(joint_drift.energy.null_hi)
    numbers = [
        ("Features moved", f"{len(check.moved_features)} of {n_features}"),
        ("All features together, p", format_number(joint_drift.energy.p)),
        (
            "Distance of all features (energy, 0 to 1)",
            f"{energy_text}; by chance up to {null_hi_text}",
        ),
    ]
    measures = (("Brier", quality.brier), ("ECE", quality.ece)) if view.has_calibrator else ()
    for name, estimate in measures:
        value = "n/a" if estimate is None else components.estimate_text(estimate)
        numbers.append((f"{name} since the fit, n = {quality.n}", value))
    components.show_numbers(numbers)
    if view.has_calibrator:
        st.caption(escape_markdown(_quality_text(check)))


def render_drift_by_feature(view: DriftView) -> None:
    """Show how far each feature moved; nothing where none could be compared."""
    if not tables.compared_features(view.check):
        return
    st.header("Drift by feature")
    charts.show_figure(
        "drift_scores",
        tables.score_rows(view.check),
        key="drift-scores",
        evidence=view.evidence_link,
        paper=view.paper_figure("drift_scores"),
    )
    if view.printed_run is None:
        st.caption("To use this figure in a paper, store the check: its numbers are then kept.")


def render_distributions(view: DriftView) -> None:
    """Show each feature's distribution on both sides, and what the features are."""
    check = view.check
    names = tables.compared_features(check)
    components.render_feature_help(feature.name for feature in check.features)
    if not names:
        return
    st.header("Distributions")
    page = components.page_slice(len(names), "drift-page", tables.MAX_FEATURE_PANELS)
    table = tables.distribution_rows(
        _cached_feature_values(view.run_revisions, check), check, names[page]
    )
    charts.show_figure(
        "feature_distributions",
        table,
        key="distributions",
        evidence=view.evidence_link,
        paper=view.paper_figure("feature_distributions") if page.start == 0 else None,
    )


def render_drift_notes(view: DriftView) -> None:
    """Explain the statistics and the condition of an alert."""
    check = view.check
    shared_note = f"{check.shared} questions occur on both sides; each is compared with itself. "
    st.caption(
        f"{shared_note if check.shared else ''}Each statistic is compared with"
        f" {check.permutations} permutations of whole questions (seed {check.seed}). An alert"
        f" needs KS ≥ {check.ks:g} or PSI ≥ {check.psi:g}, and p ≤ {check.alpha:g} after"
        " Benjamini and Hochberg over PSI and KS of all features. PSI and KL: nats, bins by"
        " quantiles of the reference, 0.5 added to each count. All features together:"
        f" {check.joint.method}. Drift means that items differ from those of the reference; it"
        " does not mean that scores are wrong, and scores can become wrong without it."
    )


def _quality_text(check: DriftCheck) -> str:
    quality = check.quality
    if quality.brier is None:
        return f"Brier and ECE since the fit: n/a, {quality.reason}."
    fit_brier_text = (
        ""
        if quality.fitted is None
        else f" At the fit Brier was {format_number(quality.fitted)}, out of fold."
    )
    worse_text = " It is worse now: the whole interval lies above." if quality.is_worse else ""
    band_text = "" if quality.band is None else " to ".join(map(format_number, quality.band))
    band_sentence = (
        f" A perfectly calibrated forecaster's ECE lies from {band_text}." if band_text else ""
    )
    return (
        f"Brier and ECE of calibrator {quality.version} on {quality.n} items labelled since its"
        f" fit, lower is better, 95 % intervals.{fit_brier_text}{worse_text}{band_sentence} Items"
        " that were chosen near a threshold are harder than most."
    )


def _default_reference_runs(rows: list[RunView]) -> list[str]:
    """Return the default reference, without runs that the address holds against one.

    The runs of the current calibrator's fit, else the oldest run with a composite, else the
    oldest.
    """
    requested = _requested_runs()
    run_ids = [row.id for row in rows if row.id not in requested]
    calibrator = cached.read_once(current_calibrator) or {}
    fit_runs = [run for run in (calibrator.get("report") or {}).get("runs", ()) if run in run_ids]
    if fit_runs and len(fit_runs) < len(rows):
        return fit_runs
    composite_runs = [
        row.id for row in rows if row.id in run_ids and cached.has_scorer(row, "composite")
    ]
    return (composite_runs or run_ids)[-1:]


def _models_of(run_ids: Sequence[str]) -> str:
    """Return the models of some runs, each once."""
    names = dict.fromkeys(short_model_name(cached.stored_run(i).model) for i in run_ids)
    return shorten(", ".join(names), 60)


def _requested_runs() -> list[str]:
    """Return the runs that the address holds against a reference."""
    return st.query_params.get_all("current") or st.query_params.get_all("run")


def _default_current_runs(rows: list[RunView], reference_runs: list[str]) -> list[str]:
    """Return the run of the address, else the newest that shares most with the reference.

    Of those that share as many scorers, one of the reference's models comes before others.
    """
    others = [row for row in rows if row.id not in reference_runs]
    requested_id = st.query_params.get("run") or default_run(
        "drift-run", ANY, [row.id for row in others]
    )
    unmeasured = cached.unmeasured_runs()
    requested = [row.id for row in others if row.id == requested_id]
    references = [row for row in rows if row.id in reference_runs]
    models = {row.model for row in references}
    plans = [row.plan for row in references]

    def comparability(row: RunView) -> tuple[bool, int, bool]:
        n_shared = len(shared_scorers([*plans, row.plan]))
        return row.id not in unmeasured, n_shared, row.model in models

    return requested or ([str(max(others, key=comparability).id)] if others else [])


def _quality_cache_key() -> tuple[int, int]:
    """Return the newest label and the current calibrator, on which the quality depends."""
    row = cached.read_once(current_calibrator)
    return cached.read_once(last_label_number), 0 if row is None else int(row["version"])


@cached.cache_by_store(16, "Shuffling the runs")
def _cached_drift_check(
    run_revisions: RunRevisions,
    n_reference_runs: int,
    ks_threshold: float,
    psi_threshold: float,
    quality_cache_key: tuple[int, int],
) -> DriftCheck:
    run_ids = [run for run, _ in run_revisions]
    return measure_drift(
        cached.store(),
        run_ids[:n_reference_runs],
        run_ids[n_reference_runs:],
        ks=ks_threshold,
        psi=psi_threshold,
    )


@cached.cache_by_store(16, "Reading the features")
def _cached_feature_values(run_revisions: RunRevisions, _check: DriftCheck) -> pd.DataFrame:
    return load_feature_values(cached.store(), _check)
