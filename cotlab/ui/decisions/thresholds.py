"""The tab Decisions, thresholds: their effect, suggestions, and saving them as a policy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.calibration import threshold_domains
from cotlab.analysis.tables.declare import FigureChoice
from cotlab.core.errors import CotlabError
from cotlab.reliability.policy import DEFAULT_DOMAIN, Policy, Thresholds, parse_thresholds
from cotlab.reliability.thresholds import Costs
from cotlab.reliability.volumes import PolicyEffects, policy_effects, threshold_points
from cotlab.review.release.decide import set_policy
from cotlab.review.release.suggest import ThresholdSuggestion, suggest_by_cost, suggest_by_precision
from cotlab.store.calibrators import current_calibrator
from cotlab.store.item_metadata import list_runs_with_metadata
from cotlab.store.pending import labelled_runs
from cotlab.suites.importers.benchmarks import FAITHFUL_KEY, MISTAKE_KEY
from cotlab.ui import access, cached, charts, components
from cotlab.ui.address import bind_switch, report_unknown_value, write_address
from cotlab.ui.components import interval_or_reason
from cotlab.ui.decisions.decided import SCORERS_WITH_FEATURES, DecisionView
from cotlab.ui.pickers import pick_options, run_labels, select_option
from cotlab.ui.places import run_link
from cotlab.ui.text import display_errors, escape_markdown, shorten

SLIDER_HELP = (
    "Two handles: low and high. Arrow keys move them by 0.01. Nothing is saved until you save the"
    " policy."
)
CAPACITY_HELP = "How many reviews people can do. Further reviews wait in the queue."
SAVE_HELP = "The audit log records who, why, and the previous policy."
DEFAULT_THRESHOLDS = (0.5, 0.8)
"""Sliders' thresholds without a policy: a starting point, not a recommendation."""


def render_thresholds(view: DecisionView) -> Policy:
    """Show the threshold sliders and their effect, and return the policy that they make."""
    top_container = st.container()
    domain_labels = {DEFAULT_DOMAIN: "All other domains"}
    domain_labels |= {
        name: shorten(name, 40) for name in threshold_domains(view.answers["domain"])[1:]
    }
    with st.container(horizontal=True, vertical_alignment="bottom"):
        domain = select_option(
            "Thresholds of", domain_labels, "domain", cleared_params=("thresholds",)
        )
        domain_thresholds = _render_threshold_slider(view, domain)
        capacity = st.number_input(
            "Reviews a day",
            0,
            100_000,
            view.policy.capacity,
            key=f"capacity-{view.policy.version}",
            width=150,
            placeholder="not set",
            help=CAPACITY_HELP,
        )
        minutes_per_review = st.number_input(
            "Minutes a review",
            0.1,
            600.0,
            view.policy.minutes,
            0.5,
            key=f"minutes-{view.policy.version}",
            width=150,
        )
    policy = replace(
        view.policy.with_domain(domain, domain_thresholds),
        capacity=None if capacity is None else int(capacity),
        minutes=float(minutes_per_review),
    )
    with top_container:
        _render_effect_sentence(view, policy)
        rows = view.answers
        if domain != DEFAULT_DOMAIN:
            rows = rows[rows["domain"] == domain]
        if rows["r_cal"].notna().any():
            _render_volumes(view, rows, domain, domain_labels[domain], domain_thresholds)
        else:
            _render_no_scores(view)
    return policy


def _render_volumes(
    view: DecisionView,
    rows: pd.DataFrame,
    domain: str,
    domain_label: str,
    thresholds: Thresholds,
) -> None:
    """Show the share of answers, and of their errors, at or above each threshold."""
    domain_suffix = "" if domain == DEFAULT_DOMAIN else f" of {escape_markdown(domain_label)}"
    table = threshold_points(rows, thresholds.low, thresholds.high)
    choice = FigureChoice(
        domain=domain, thresholds=thresholds_text(thresholds.low, thresholds.high)
    )
    paper = charts.PaperFigure(view.run_id, "threshold_volumes", choice)
    charts.show_figure(
        "threshold_volumes",
        table,
        key="volumes",
        note=f"{len(rows)} answers{domain_suffix}. {charts.source_text([view.row])}",
        evidence=run_link(view.run_id, "items"),
        paper=paper if cached.has_scorer(view.row, "composite") else None,
    )


def _render_no_scores(view: DecisionView) -> None:
    """Say that no answer of a domain has a calibrated score; of a run, link to where one is fitted.

    That a whole run has none stands at the top of the page.
    """
    if view.has_calibrated_scores:
        st.info(
            "No answer of this domain has a calibrated score (r_cal): each is escalated, whatever"
            " the thresholds."
        )
        return
    components.page_link(
        "calibrate", "Fit a calibrator on labelled chains", "query_stats", {"run": view.run_id}
    )


def render_policy_form(view: DecisionView, policy: Policy) -> None:
    """Show the form that saves the thresholds as the policy; it needs a reason and an admin."""
    if not view.has_calibrated_scores:
        return  # there is nothing that it would decide on
    if not _differs_from_current(view, policy):
        st.caption(
            f"These are the thresholds of the policy in force, version {view.policy.version}."
        )
        return
    with st.form("policy", border=True):
        reason = st.text_input("Reason for the change", key="policy-reason", max_chars=500)
        is_pressed = st.form_submit_button(
            "Save as the policy",
            type="primary",
            icon=":material/gavel:",
            **access.role_control("admin", help=SAVE_HELP),
        )
    if is_pressed:
        with display_errors():
            user, new_policy = access.require_role("admin"), replace(policy, how={"by": "hand"})
            saved_policy = set_policy(cached.store(), new_policy, author=user.name, reason=reason)
            write_address({"thresholds": None})
            st.session_state["policy-saved"] = (
                f"Policy {saved_policy.version} is in force. Decide again to apply it."
            )
            st.rerun()


def render_domain_effects(view: DecisionView, policy: Policy) -> None:
    """Show the effect of the sliders' thresholds in each domain."""
    domains = sorted(set(view.answers["domain"]))
    if domains == [""]:
        return
    st.header("By domain")
    rows = []
    for name in domains:
        domain_answers = view.answers[view.answers["domain"] == name]
        domain_thresholds = policy.domain_thresholds(name)
        effects = policy_effects(domain_answers, policy)
        rows.append(
            {
                "domain": name or "(none)",
                "thresholds": "own"
                if name in {*policy.thresholds} - {DEFAULT_DOMAIN}
                else "default",
                "low": "n/a" if domain_thresholds is None else f"{domain_thresholds.low:.2f}",
                "high": "n/a" if domain_thresholds is None else f"{domain_thresholds.high:.2f}",
                "n": effects.n,
                "released": effects.n_released,
                "review": effects.n_reviews,
                "escalated": effects.n_escalated,
                "expected errors [95%]": interval_or_reason(effects.expected_error_count),
                "observed error rate [95%]": interval_or_reason(effects.observed_error_rate),
            }
        )
    right_aligned_names = ("low", "high", "expected errors [95%]", "observed error rate [95%]")
    components.show_table(pd.DataFrame(rows), "domains", right_aligned_names=right_aligned_names)


def render_decision_notes() -> None:
    """Explain the three actions and the two error estimates."""
    st.caption(
        "r_cal below low is escalated, from low to below high reviewed, from high on"
        " released. An answer without a calibrated score (undefined, refused, stopped,"
        " error, no calibrator, no policy for its domain) is always escalated. Expected"
        " errors: the sum of 1 − r_cal over the released answers; its interval is that of"
        " the Poisson-binomial, and does not include the calibrator's own uncertainty."
        " Observed error rate: Wilson interval over labelled answers, counting questions"
        " where one is answered more than once; labelled answers that were not chosen at"
        " random may differ from the others."
    )


def _render_effect_sentence(view: DecisionView, policy: Policy) -> None:
    """Say what the sliders' thresholds release, and how many errors are expected among that."""
    effects = policy_effects(view.answers, policy)
    errors_text = interval_or_reason(effects.expected_error_count)
    st.markdown(
        escape_markdown(
            f"These thresholds release {_share_text(effects.n_released, effects.n)} of"
            f" {effects.n} answers, send {effects.n_reviews} to a review and escalate"
            f" {effects.n_escalated}. Expected errors among the released [95 %]: {errors_text}."
        )
    )


def render_effects(view: DecisionView, policy: Policy) -> None:
    """Compare the policy in force with the sliders' thresholds."""
    new_effects = policy_effects(view.answers, policy)
    columns = {"These thresholds": _effect_rows(new_effects)}
    if view.policy.thresholds and _differs_from_current(view, policy):
        current_column = _effect_rows(policy_effects(view.answers, view.policy))
        columns = {f"Policy {view.policy.version} (in force)": current_column, **columns}
    frame = pd.DataFrame(columns).rename_axis(f"of {new_effects.n} answers").reset_index()
    components.show_table(frame, "comparison", right_aligned_names=columns)


def _differs_from_current(view: DecisionView, policy: Policy) -> bool:
    """Return whether the sliders differ from the policy in force, in any domain."""
    current_policy = view.policy
    domains = {DEFAULT_DOMAIN, *view.policy.thresholds, *policy.thresholds}
    has_same_thresholds = bool(current_policy.thresholds) and all(
        current_policy.domain_thresholds(name) == policy.domain_thresholds(name) for name in domains
    )
    return not has_same_thresholds or (current_policy.capacity, current_policy.minutes) != (
        policy.capacity,
        policy.minutes,
    )


def _effect_rows(effects: PolicyEffects) -> dict[str, str]:
    days_text = "n/a: no capacity is set" if effects.days is None else f"{effects.days}"
    if effects.days is None and effects.n_waiting:
        days_text = "never: the capacity is 0"
    return {
        "Released": _share_text(effects.n_released, effects.n),
        "Review": _share_text(effects.n_reviews, effects.n),
        "Escalated": _share_text(effects.n_escalated, effects.n),
        "Expected errors among the released [95%]": interval_or_reason(
            effects.expected_error_count
        ),
        "Released answers with a label": effects.observed_error_rate.note
        or str(effects.observed_error_rate.n),
        "Observed error rate of those [95%]": interval_or_reason(effects.observed_error_rate),
        "Review, hours": f"{effects.hours:.1f}",
        "Review, days at the capacity": days_text,
        "Reviews left after the first day": (
            "n/a" if effects.days is None and not effects.n_waiting else str(effects.n_waiting)
        ),
    }


def _render_threshold_slider(view: DecisionView, domain: str) -> Thresholds:
    """Show the slider of a domain, which starts at the policy's thresholds."""
    key = "thresholds-slider"

    def store_thresholds() -> None:
        write_address({"thresholds": thresholds_text(*st.session_state[key])})

    policy_thresholds = view.policy.domain_thresholds(domain)
    requested = st.query_params.get("thresholds")
    requested_thresholds = None if requested is None else _requested_thresholds(requested)
    if requested is not None and requested_thresholds is None:
        report_unknown_value("thresholds", requested)
    slider_thresholds = requested_thresholds or policy_thresholds or Thresholds(*DEFAULT_THRESHOLDS)
    # from the address, so that the back button works
    st.session_state[key] = (slider_thresholds.low, slider_thresholds.high)
    st.slider(
        "Escalate below, release from (r_cal)",
        0.0,
        1.0,
        step=0.01,
        key=key,
        width=420,
        on_change=store_thresholds,
        help=SLIDER_HELP,
    )
    low, high = st.session_state[key]
    return Thresholds(float(low), float(high))


def _requested_thresholds(text: str) -> Thresholds | None:
    """Return the thresholds of an address; None where there are none."""
    try:
        return parse_thresholds(text)
    except CotlabError:
        return None


def thresholds_text(low: float, high: float) -> str:
    """Return two thresholds as the address has them."""
    return f"{low:.4g},{high:.4g}"


def _share_text(n: int, n_total: int) -> str:
    return f"{n} ({n / n_total:.0%})" if n_total else "0"


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
    fields = (
        ("Cost of a released error", 0.01, 1e9, 20.0, "error"),
        ("Cost of a review", 0.0, 1e9, 1.0, "review"),
        ("Cost of an escalation", 0.0, 1e9, 3.0, "escalation"),
        ("Share of errors that a review misses", 0.0, 0.99, 0.1, "missed"),
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        numbers = [
            st.number_input(label, lo, hi, value, key=f"cost-{name}", width=230)
            for label, lo, hi, value, name in fields
        ]
    costs = Costs(*numbers)
    return _cost_suggestions(runs, costs, _label_state(view))


def _suggest_from_target(view: DecisionView, runs: tuple[str, ...]) -> list[ThresholdSuggestion]:
    target_share = st.number_input(
        "Acceptable share of the released answers", 0.01, 0.999, 0.95, 0.01, key="target", width=240
    )
    return _target_suggestions(runs, target_share, _label_state(view))


def _label_state(view: DecisionView) -> tuple[int, ...]:
    """Return what suggestions depend on besides runs: the labels and the calibrator in use."""
    calibrator = cached.read_once(current_calibrator)
    return (*view.label_counts, 0 if calibrator is None else int(calibrator["version"]))


@cached.cache_by_store(32, "Trying thresholds on the labels")
def _cost_suggestions(
    runs: tuple[str, ...], costs: Costs, label_state: tuple[int, ...]
) -> list[ThresholdSuggestion]:
    return suggest_by_cost(cached.store(), runs or None, costs, seed=42)


@cached.cache_by_store(32, "Trying thresholds on the labels")
def _target_suggestions(
    runs: tuple[str, ...], target_share: float, label_state: tuple[int, ...]
) -> list[ThresholdSuggestion]:
    return suggest_by_precision(cached.store(), runs or None, target_share)
