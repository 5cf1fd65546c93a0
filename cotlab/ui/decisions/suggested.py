"""The page Decisions, suggestions: thresholds from costs or from a target precision."""

from __future__ import annotations

from functools import partial

import streamlit as st

from cotlab.reliability.policy import DEFAULT_DOMAIN, Thresholds
from cotlab.reliability.thresholds import Costs
from cotlab.review.release.suggest import ThresholdSuggestion
from cotlab.store.calibrators import current_calibrator
from cotlab.store.item_metadata import list_runs_with_metadata
from cotlab.store.pending import labelled_runs
from cotlab.suites.importers.benchmarks import FAITHFUL_KEY, MISTAKE_KEY
from cotlab.ui import cached
from cotlab.ui.address import bind_switch, write_address
from cotlab.ui.decisions.decided import SCORERS_WITH_FEATURES, DecisionView
from cotlab.ui.decisions.suggestions import cost_suggestions, target_suggestions
from cotlab.ui.decisions.thresholds import DEFAULT_THRESHOLDS, thresholds_text
from cotlab.ui.pickers import pick_options, run_labels
from cotlab.ui.text import display_errors, escape_markdown


def render_suggestions(view: DecisionView) -> None:
    """Suggest thresholds from costs or from a target precision, using the labels of all runs."""
    if message := st.session_state.pop("policy-saved", None):
        st.success(message)
    section = st.expander(
        "Thresholds from costs or from a target precision",
        icon=":material/balance:",
        **bind_switch("suggest", "labelled" in st.query_params),
    )
    if section.open:
        with section:
            _render_suggested_thresholds(view)


def _render_suggested_thresholds(view: DecisionView) -> None:
    basis = st.radio(
        "From",
        ["Costs", "Target precision"],
        key="suggest-by",
        horizontal=True,
        label_visibility="collapsed",
    )
    runs = _pick_labelled_runs(view)
    with display_errors(st.info):
        suggestions = (
            _suggest_from_costs(view, runs)
            if basis == "Costs"
            else _suggest_from_target(view, runs)
        )
        for suggestion in suggestions:
            st.markdown(escape_markdown(suggestion.text))
        default_suggestions = [s for s in suggestions if s.domain == DEFAULT_DOMAIN]
        default_bounds = [(s.low, s.high) for s in default_suggestions if s.high is not None]
        if default_bounds:
            _render_try_button(view, *default_bounds[0])
        st.caption(
            "Costs in any one unit. From the costs alone: right if r_cal is calibrated."
            " From labels: of the chosen runs, first those of the calibrator's fit, each with the"
            " r_cal of a fit without its question."
        )


def _pick_labelled_runs(view: DecisionView) -> tuple[str, ...]:
    """Choose runs with labels, those of the calibrator's fit by default; () means all raters'."""
    store = cached.store()
    labelled = labelled_runs(store) | list_runs_with_metadata(store, (MISTAKE_KEY, FAITHFUL_KEY))
    rows = [
        row
        for row in cached.stored_runs()
        if row.id in labelled and cached.has_scorer(row, *SCORERS_WITH_FEATURES)
    ]
    if not rows:
        return ()
    calibrator = current_calibrator(store)
    fit_runs = (calibrator["report"] or {}).get("runs", []) if calibrator is not None else []
    return tuple(
        pick_options(
            "Labels of",
            run_labels(rows),
            "labelled",
            fit_runs or [row.id for row in rows],
            help=f"A policy for {view.run_id} is best chosen on the labels of other runs.",
        )
    )


def _render_try_button(view: DecisionView, low: float | None, high: float) -> None:
    if low is None:
        low = min(
            high,
            (view.policy.domain_thresholds(DEFAULT_DOMAIN) or Thresholds(*DEFAULT_THRESHOLDS)).low,
        )
    move_sliders = partial(_move_sliders, low, high)
    button_help = "Moves the sliders; nothing is saved."
    st.button(
        "Try these thresholds",
        key="try",
        icon=":material/tune:",
        on_click=move_sliders,
        help=button_help,
    )


def _move_sliders(low: float, high: float) -> None:
    """Move the sliders to these thresholds."""
    write_address({"domain": DEFAULT_DOMAIN, "thresholds": thresholds_text(low, high)})


def _suggest_from_costs(view: DecisionView, runs: tuple[str, ...]) -> list[ThresholdSuggestion]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        error_cost = st.number_input(
            "Cost of a released error", 0.01, 1e9, 20.0, key="cost-error", width=160
        )
        review_cost = st.number_input(
            "Cost of a review", 0.0, 1e9, 1.0, key="cost-review", width=130
        )
        escalation_cost = st.number_input(
            "Cost of an escalation", 0.0, 1e9, 3.0, key="cost-escalation", width=130
        )
        missed_share = st.number_input(
            "Share of errors that a review misses",
            0.0,
            0.99,
            0.1,
            0.01,
            key="cost-missed",
            width=230,
        )
    costs = Costs(error_cost, review_cost, escalation_cost, missed_share)
    return cost_suggestions(runs, costs, _label_state(view))


def _suggest_from_target(view: DecisionView, runs: tuple[str, ...]) -> list[ThresholdSuggestion]:
    target_share = st.number_input(
        "Acceptable share of the released answers", 0.01, 0.999, 0.95, 0.01, key="target", width=240
    )
    return target_suggestions(runs, target_share, _label_state(view))


def _label_state(view: DecisionView) -> tuple[int, ...]:
    """Return what suggestions depend on besides runs: the labels and the calibrator in use."""
    calibrator = cached.read_once(current_calibrator)
    return (*view.label_counts, 0 if calibrator is None else int(calibrator["version"]))
