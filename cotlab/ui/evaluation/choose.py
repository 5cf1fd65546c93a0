"""The page Evaluation: choose runs, what to fit on, and the target."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from cotlab.analysis.evaluation.held_out import load_fitted_data
from cotlab.analysis.evaluation.measure import evaluate_chains, signal_details
from cotlab.analysis.evaluation.results import Evaluation, SignalResult, TargetResult
from cotlab.analysis.evaluation.signals import EvaluationData, load_labelled_chains
from cotlab.core.resources import page_path
from cotlab.review.labelling.truth import LABEL_KEYS, TARGETS
from cotlab.store.item_metadata import list_runs_with_metadata
from cotlab.store.pending import labelled_runs, last_label_number
from cotlab.ui import cached, components
from cotlab.ui.pickers import pick_options, run_labels, select_option, without_archived
from cotlab.ui.suites import UPLOAD_TAB_LABEL
from cotlab.ui.text import display_errors

RunRevisions = tuple[tuple[str, int], ...]


class EvaluationKey(NamedTuple):
    """What an evaluation depends on, by which it is cached for all users."""

    run_revisions: RunRevisions
    """Each chosen run and its revision."""
    fit_revisions: RunRevisions
    """Each run that is fitted on, and its revision."""
    target: str
    """The target of the fits; "" where none is fitted."""
    label_number: int
    """Number of the newest label."""
    seed: int
    """Seed of the resampling: that of the first run."""


class EvaluationView(NamedTuple):
    """What the page Evaluation shows."""

    evaluation: Evaluation
    """The evaluation of the chosen runs, without details of each signal."""
    result: TargetResult
    """The chosen target."""
    key: EvaluationKey
    """What the evaluation depends on."""

    @property
    def fit_runs(self) -> tuple[str, ...]:
        """The ids of the runs that were fitted on."""
        return tuple(run for run, _ in self.key.fit_revisions)

    def signal_details(self, name: str) -> SignalResult:
        """Return all measures of a signal."""
        return _cached_signal(self.key, self.result.target, name)


def select_evaluation() -> EvaluationView | None:
    """Choose runs and a target; None (with a message) where nothing can be evaluated."""
    store = cached.store()
    labelled = labelled_runs(store) | list_runs_with_metadata(store, LABEL_KEYS)
    rows = [row for row in cached.stored_runs() if row.id in labelled]
    rows = without_archived(rows, "run")
    if not rows:
        components.render_empty_state(
            "No run has labelled chains yet: import a suite with its labels, or label chains.",
            page_path("label"),
            "Label",
        )
        components.page_link("suites", "Upload a suite", "upload", {"view": UPLOAD_TAB_LABEL})
        return None
    labels = run_labels(rows)
    runs = pick_options(
        "Runs",
        labels,
        "runs",
        list(labels)[:1],
        help="Runs on one suite's chains are joined by item; their signals are compared.",
        stable_key="evaluation-runs",
    )
    with st.container(horizontal=True):
        target = select_option(
            "Target", {name: text for name, (text, _) in TARGETS.items()}, "target"
        )
    other_labels = {run: label for run, label in labels.items() if run not in runs}
    fit_runs = (
        pick_options(
            "Fit on (optional)",
            other_labels,
            "fit",
            [],
            help=(
                "Combined features and the hazard of a mistake are fitted on these runs' labels and"
                " measured on the runs above alone."
            ),
        )
        if other_labels
        else []
    )
    if not runs:
        st.info("Choose at least one run.")
        return None
    for row in rows:
        if row.id in (*runs, *fit_runs):
            components.warn_if_partial(row)
    revision_by_run = {row.id: row.revision for row in rows}
    run_revisions, fit_revisions = (
        tuple((run, revision_by_run[run]) for run in chosen) for chosen in (runs, fit_runs)
    )
    key = EvaluationKey(
        run_revisions,
        fit_revisions,
        target if fit_runs else "",
        last_label_number(store),
        cached.stored_run(runs[0]).plan.seed,
    )
    with display_errors(st.info):
        evaluation = _cached_evaluation(key, target)
        return EvaluationView(evaluation, evaluation.targets[0], key)
    return None


@cached.cache_by_store(32, "Comparing each signal with the labels", copies_results=False)
def _cached_evaluation(key: EvaluationKey, target: str) -> Evaluation:
    return evaluate_chains(_cached_data(key), targets=[target], with_details=False)


@cached.cache_by_store(64, "Measuring the signal", copies_results=False)
def _cached_signal(key: EvaluationKey, target: str, name: str) -> SignalResult:
    return signal_details(_cached_data(key), target, name)


@cached.cache_by_store(8, "Reading scores and labels, and fitting on them", copies_results=False)
def _cached_data(key: EvaluationKey) -> EvaluationData:
    store = cached.store()
    runs, fit_runs = ([run for run, _ in chosen] for chosen in key[:2])
    if fit_runs:
        return load_fitted_data(store, fit_runs, runs, targets=[key.target], seed=key.seed)
    return EvaluationData(load_labelled_chains(store, runs, seed=key.seed), key.seed)
