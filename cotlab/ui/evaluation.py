"""The tab Your labels: what tells, each signal with its worst mistakes, first wrong steps, runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.evaluation.held_out import load_fitted_data
from cotlab.analysis.evaluation.measure import evaluate_chains, signal_details
from cotlab.analysis.evaluation.results import Evaluation, SignalResult, TargetResult, headline
from cotlab.analysis.evaluation.signals import EvaluationData, load_labelled_chains
from cotlab.analysis.tables.evaluation import MAX_SIGNALS, signal_table
from cotlab.review.labelling.truth import LABEL_KEYS, TARGETS
from cotlab.stats.intervals import Interval
from cotlab.store.item_metadata import list_runs_with_metadata
from cotlab.store.pending import labelled_runs, last_label_number
from cotlab.ui import cached, charts, components
from cotlab.ui.address import write_address
from cotlab.ui.components import interval_or_reason
from cotlab.ui.linked import show_linked_frame
from cotlab.ui.more import render_more
from cotlab.ui.pickers import pick_options, run_labels, select_option, without_archived
from cotlab.ui.places import run_link
from cotlab.ui.text import display_errors, escape_markdown

MEASURE_LABELS = {
    "auroc": "AUROC",
    "average_precision": "Average precision",
    "tpr_at_1": "TPR at 1 % FPR",
    "tpr_at_5": "TPR at 5 % FPR",
}
N_FIRST_SIGNALS = 16
"""Signals of the figure that the page opens with; it has the baselines among them."""
CALIBRATION_LABELS = {"brier": "Brier", "ece": "ECE"}


def render_evaluation_tab() -> None:
    """Show which signals tell on labelled chains."""
    view = select_evaluation()
    if view is not None:
        render_finding(view)
        render_aurocs(view)
        render_signal(view)
        render_locations(view)
        render_run_differences(view)
        render_notes(view)


def render_finding(view: EvaluationView) -> None:
    """Show what tells in one sentence, and what a reader must know of it."""
    result = view.result
    tells = any(signal.beaten for signal in result.candidates)
    (st.success if tells else st.info)(
        escape_markdown(headline(result)),
        icon=":material/check_circle:" if tells else ":material/info:",
    )
    st.caption(
        f"{result.n} of {view.evaluation.n_chains} chains have a label of this target, from"
        f" {result.n_questions} questions; {result.n_false} of them are to be found."
    )


def render_aurocs(view: EvaluationView) -> None:
    """Show the AUROC of the signals that tell most; a click chooses the signal below."""
    _show_aurocs(view, N_FIRST_SIGNALS, "signal-aurocs")
    if len(view.result.signals) > N_FIRST_SIGNALS:
        all_aurocs = partial(_show_aurocs, view, MAX_SIGNALS, "all-aurocs")
        render_more(f"all {len(view.result.signals)} signals", all_aurocs, name="signals")


def _show_aurocs(view: EvaluationView, max_signals: int, key: str) -> None:
    def choose_signal(customdata: Sequence[Any]) -> None:
        write_address({"signal": str(customdata[0])})

    n_hidden = len(view.result.signals) - max_signals
    charts.show_figure(
        "signal_aurocs",
        signal_table(view.result, max_signals),
        key=key,
        note=f"{n_hidden} signals of lower AUROC are in the list below." if n_hidden > 0 else "",
        evidence=run_link(view.evaluation.runs[0]),
        on_click=choose_signal,
    )


def render_signal(view: EvaluationView) -> None:
    """Choose a signal, and show its numbers, its domains and its worst mistakes."""
    st.header("One signal")
    by_name = {signal.name: signal for signal in view.result.signals}
    default = max(
        view.result.candidates or view.result.signals,
        key=lambda signal: (len(signal.beaten), signal.auroc.point or 0.0),
    )
    labels = {name: f"{name}: {signal.verdict}" for name, signal in by_name.items()}
    signal = view.signal_details(select_option("Signal", labels, "signal", default.name))
    direction = " Lower is sounder, as these labels have it." if signal.is_flipped else ""
    st.caption(escape_markdown(f"{signal.what}. {signal.verdict.capitalize()}.{direction}"))
    rows = [(label, signal.measures[name]) for name, label in MEASURE_LABELS.items()]
    rows += [(CALIBRATION_LABELS[name], i) for name, i in (signal.calibration or {}).items()]
    rows += [(f"AUROC over {name}", i) for name, i in signal.differences.items()]
    _show_intervals("measure", rows, f"measures-{signal.name}")
    render_more(
        "by domain, and its worst mistakes",
        partial(_render_domains, signal),
        partial(_render_worst_mistakes, signal),
        name="mistakes",
    )


def _render_domains(signal: SignalResult) -> None:
    if signal.by_domain:
        st.markdown("**By domain**")
        _show_intervals("domain", list(signal.by_domain.items()), f"domains-{signal.name}")


def _show_intervals(column: str, rows: Sequence[tuple[str, Interval]], key: str) -> None:
    frame = pd.DataFrame(
        {
            column: [name for name, _ in rows],
            "value [95 % interval]": [interval_or_reason(interval) for _, interval in rows],
            "questions": [interval.n for _, interval in rows],
        }
    )
    show_linked_frame(column, frame, {}, key=key, number_names=frame.columns[1:])


def _render_worst_mistakes(signal: SignalResult) -> None:
    st.markdown("**Worst mistakes**")
    for title, keys in (
        ("Ranked as soundest, though the target is false", signal.missed),
        ("Ranked as least sound, though the target is true", signal.false_alarms),
    ):
        st.caption(f"{title}:")
        if keys:
            frame = pd.DataFrame(keys, columns=["run", "item"])[["item", "run"]]
            links = [run_link(run, "items", item=item) for run, item in keys]
            key = f"mistakes-{signal.name}-{title}"
            show_linked_frame(title, frame, {"item": links}, key=key)
        else:
            st.caption("none.")


def render_locations(view: EvaluationView) -> None:
    """Show how often each method names the first wrong step, or none."""
    locations = view.result.locations
    if not locations:
        return
    st.header("First wrong step")
    frame = pd.DataFrame(
        {
            "method": [location.name for location in locations],
            "exact": [interval_or_reason(location.measures.exact) for location in locations],
            "none right": [interval_or_reason(r.measures.none_right) for r in locations],
            "PB-F1": [interval_or_reason(location.measures.pb_f1) for location in locations],
            "over position and length": [
                "; ".join(interval_or_reason(i) for i in r.differences.values()) for r in locations
            ],
            "chains": [location.n for location in locations],
            "undefined": [location.n_undefined for location in locations],
        }
    )
    numbers = ("exact", "none right", "PB-F1", "chains", "undefined")
    show_linked_frame(
        "First wrong step by method", frame, {}, key="locations", number_names=numbers
    )
    st.caption(
        "Exact: share of the chains with a mistake whose first wrong step is named. None right:"
        " share of the others for which none is. PB-F1: their harmonic mean, averaged over the"
        " domains that have both kinds of chain."
    )


def render_run_differences(view: EvaluationView) -> None:
    """Show the paired differences of each signal between the runs."""
    differences = view.result.run_differences
    if not differences:
        return
    st.header("Between runs")
    frame = pd.DataFrame(
        {
            "signal": [row.signal for row in differences],
            "run": [row.first for row in differences],
            "other run": [row.second for row in differences],
            "AUROC": [interval_or_reason(row.first_auroc) for row in differences],
            "its AUROC": [interval_or_reason(row.second_auroc) for row in differences],
            "difference": [interval_or_reason(row.difference) for row in differences],
            "questions": [row.difference.n for row in differences],
            "the same": ["chains" if r.is_same_chains else "questions" for r in differences],
        }
    )
    show_linked_frame(
        "Signals between runs",
        frame,
        {},
        key="run-differences",
        number_names=("AUROC", "its AUROC", "difference", "questions"),
    )
    st.caption("AUROC of the other run minus that of the run, resampled together by question.")


def render_notes(view: EvaluationView) -> None:
    """Show the notes of the evaluation, and the command that prints the same."""
    components.show_escaped_lines(view.evaluation.notes)
    st.caption("The same from a terminal:")
    runs = " ".join(view.evaluation.runs)
    runs_text = f"--fit {' '.join(view.fit_runs)} --test {runs}" if view.fit_runs else runs
    command = f"cotlab evaluate {runs_text} --target {view.result.target} --seed {view.key.seed}"
    st.code(command, language="text", wrap_lines=True)
    if view.fit_runs:
        query = [*(("run", run) for run in view.fit_runs), ("target", view.result.target)]
        label = "Calibrate on the runs that were fitted on"
        components.page_link("calibrate", label, "query_stats", query)


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
    """What the tab Your labels shows."""

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
            "label",
            "Label",
        )
        components.page_link("upload", "Upload a suite", "upload")
        return None
    labels = run_labels(rows)
    runs = pick_options(
        "Runs",
        labels,
        "runs",
        list(labels)[:1],
        help="Runs on one suite's chains are joined by item; their signals are compared.",
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
