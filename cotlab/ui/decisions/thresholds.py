"""The page Decisions, thresholds: their effect, suggestions, and saving them as a policy."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pandas as pd
import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.core.resources import page
from cotlab.figures.style import interval_text
from cotlab.reliability.policy import DEFAULT, Policy, Thresholds
from cotlab.reliability.thresholds import Costs
from cotlab.reliability.volumes import Volumes, policy_volumes, threshold_points
from cotlab.review.release.decide import set_policy
from cotlab.review.release.suggest import Suggestion, suggest_by_cost, suggest_by_precision
from cotlab.stats.intervals import Interval
from cotlab.ui import access, cached, components
from cotlab.ui.decisions.decided import DecisionView
from cotlab.ui.pickers import select_option
from cotlab.ui.text import as_code, shorten

FIRST = (0.5, 0.8)
"""Sliders' thresholds without a policy: a starting point, not a recommendation."""
NAMES = {DEFAULT: "All other domains"}


def render_thresholds(view: DecisionView) -> Policy:
    """Show the threshold sliders and their effect, and return the policy that they make."""
    top = st.container()
    domains = {
        DEFAULT: _name(DEFAULT),
        **{name: _name(name) for name in _threshold_domains(view.table)},
    }
    with st.container(horizontal=True, vertical_alignment="bottom"):
        domain = select_option("Thresholds of", domains, "domain", resets=("thresholds",))
        bounds = _bounds(view, domain)
        capacity = st.number_input(
            "Reviews a day",
            0,
            100_000,
            view.policy.capacity,
            key=f"capacity-{view.policy.version}",
            width=150,
            placeholder="not set",
            help="How many reviews people can do. Further reviews wait in the queue.",
        )
        minutes = st.number_input(
            "Minutes a review",
            0.1,
            600.0,
            view.policy.minutes,
            0.5,
            key=f"minutes-{view.policy.version}",
            width=150,
        )
    policy = replace(
        view.policy.with_domain(domain, bounds),
        capacity=None if capacity is None else int(capacity),
        minutes=float(minutes),
    )
    with top:
        _comparison(view, policy)
        rows = view.table if domain == DEFAULT else view.table[view.table["domain"] == domain]
        note = (
            f"{len(rows)}"
            f" answers{'' if domain == DEFAULT else f' of {as_code(shorten(domain, 40))}'}."
        )
        components.show_figure(
            "threshold_volumes",
            threshold_points(rows, bounds.low, bounds.high),
            key="volumes",
            note=note,
            evidence=(page("run"), {"run": view.run}),
        )
    return policy


def render_policy_form(view: DecisionView, policy: Policy) -> None:
    """Show the form that saves the thresholds as the policy; it needs a reason and an admin."""
    if not _moved(view, policy):
        st.caption(
            f"These are the thresholds of the policy in force, version {view.policy.version}."
        )
        return
    with st.form("policy", border=True):
        reason = st.text_input("Reason for the change", key="policy-reason", max_chars=500)
        pressed = st.form_submit_button(
            "Save as the policy",
            type="primary",
            icon=":material/gavel:",
            disabled=not access.may("admin"),
            help="Needs the role admin. The audit log records who, why, and the previous policy.",
        )
    if pressed:
        try:
            who = access.need("admin")
            saved = set_policy(
                cached.store(), replace(policy, how={"by": "hand"}), by=who.name, reason=reason
            )
        except CotlabError as error:
            st.error(as_code(str(error)))
            return
        st.query_params.pop("thresholds", None)
        st.session_state["policy-saved"] = (
            f"Policy {saved.version} is in force. Decide again to apply it."
        )
        st.rerun()


def render_suggestions(view: DecisionView) -> None:
    """Suggest thresholds from costs or from a target precision, using the labels of all runs."""
    if message := st.session_state.pop("policy-saved", None):
        st.success(message)
    with st.expander("Thresholds from costs or from a target precision", icon=":material/balance:"):
        basis = st.radio(
            "From",
            ["Costs", "Target precision"],
            key="suggest-by",
            horizontal=True,
            label_visibility="collapsed",
        )
        try:
            suggested = _by_cost(view) if basis == "Costs" else _by_target(view)
        except CotlabError as error:
            st.info(as_code(str(error)))
            return
        for suggestion in suggested:
            st.markdown(as_code(suggestion.text))
        best = next(
            (
                suggestion
                for suggestion in suggested
                if suggestion.domain == DEFAULT and suggestion.high is not None
            ),
            None,
        )
        if best is not None and best.high is not None:
            current = view.policy.of(DEFAULT)
            low = (
                best.low
                if best.low is not None
                else min(best.high, current.low if current else FIRST[0])
            )
            st.button(
                "Try these thresholds",
                key="try",
                icon=":material/tune:",
                on_click=_try,
                args=(float(low), float(best.high)),
                help="Moves the sliders; nothing is saved.",
            )
        st.caption(
            "Costs in any one unit. From the costs alone: right if r_cal is calibrated."
            " From labels: uses the labels of all runs, including those of the calibrator's"
            " fit, so it is optimistic; check it on later labels."
        )


def render_domain_volumes(view: DecisionView, policy: Policy) -> None:
    """Show the effect of the sliders' thresholds in each domain."""
    names = sorted(set(view.table["domain"]))
    if names == [""]:
        return
    st.subheader("By domain")
    rows = []
    for name in names:
        part, bounds = view.table[view.table["domain"] == name], policy.of(name)
        volumes = policy_volumes(part, policy)
        rows.append(
            {
                "domain": name or "(none)",
                "thresholds": (
                    "own" if name != DEFAULT and name in policy.thresholds else "default"
                ),
                "low": "n/a" if bounds is None else f"{bounds.low:.2f}",
                "high": "n/a" if bounds is None else f"{bounds.high:.2f}",
                "n": volumes.n,
                "released": volumes.release,
                "review": volumes.review,
                "escalated": volumes.escalate,
                "expected errors [95%]": _interval(volumes.expected),
                "observed error rate [95%]": _interval(volumes.observed),
            }
        )
    right = components.right_aligned(
        "low", "high", "expected errors [95%]", "observed error rate [95%]"
    )
    st.dataframe(pd.DataFrame(rows), hide_index=True, key="domains", column_config=right)


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


def _comparison(view: DecisionView, policy: Policy) -> None:
    """Compare the policy in force with the sliders' thresholds."""
    new = policy_volumes(view.table, policy)
    sets = {"These thresholds": new}
    if view.policy.thresholds and _moved(view, policy):
        sets = {
            f"Policy {view.policy.version} (in force)": policy_volumes(view.table, view.policy),
            **sets,
        }
    components.show_numbers(
        (
            ("Released", _part(new.release, new.n)),
            ("Review", _part(new.review, new.n)),
            ("Escalated", _part(new.escalate, new.n)),
            ("Expected errors", components.number_text(new.expected.point)),
            ("Review hours", f"{new.hours:.1f}"),
        )
    )
    frame = pd.DataFrame(
        {name: _volume_rows(volumes) for name, volumes in sets.items()},
        index=list(_volume_rows(new)),
    )
    frame.index.name = f"of {new.n} answers"
    right = components.right_aligned(*sets)
    st.dataframe(
        frame.reset_index(),
        hide_index=True,
        key="comparison",
        column_config=right,
        height="content",
    )


def _moved(view: DecisionView, policy: Policy) -> bool:
    """Return whether the sliders differ from the policy in force, in any domain."""
    current, names = view.policy, {DEFAULT, *view.policy.thresholds, *policy.thresholds}
    same = bool(current.thresholds) and all(current.of(name) == policy.of(name) for name in names)
    return not same or (current.capacity, current.minutes) != (policy.capacity, policy.minutes)


def _volume_rows(volumes: Volumes) -> dict[str, str]:
    days = "n/a: no capacity is set" if volumes.days is None else f"{volumes.days}"
    if volumes.days is None and volumes.waiting:
        days = "never: the capacity is 0"
    return {
        "Released": _part(volumes.release, volumes.n),
        "Review": _part(volumes.review, volumes.n),
        "Escalated": _part(volumes.escalate, volumes.n),
        "Expected errors among the released [95%]": _interval(volumes.expected),
        "Released answers with a label": volumes.observed.note or str(volumes.observed.n),
        "Observed error rate of those [95%]": _interval(volumes.observed),
        "Review, hours": f"{volumes.hours:.1f}",
        "Review, days at the capacity": days,
        "Reviews left after the first day": (
            "n/a" if volumes.days is None and not volumes.waiting else str(volumes.waiting)
        ),
    }


def _bounds(view: DecisionView, domain: str) -> Thresholds:
    """Show the slider of a domain, which starts at the policy's thresholds."""
    key = "thresholds-slider"

    def chose() -> None:
        st.query_params["thresholds"] = "{:g},{:g}".format(*st.session_state[key])

    current = view.policy.of(domain)
    bounds = (
        _parse_thresholds(st.query_params.get("thresholds", "")) or current or Thresholds(*FIRST)
    )
    st.session_state[key] = (
        bounds.low,
        bounds.high,
    )  # from the address, so that the back button works
    low, high = cast(
        tuple[float, float],
        st.slider(
            "Escalate below, release from (r_cal)",
            0.0,
            1.0,
            step=0.01,
            key=key,
            width=420,
            on_change=chose,
            help=(
                "Two handles: low and high. Arrow keys move them by 0.01. Nothing is saved"
                " until you save the policy."
            ),
        ),
    )
    return Thresholds(float(low), float(high))


def _parse_thresholds(text: str) -> Thresholds | None:
    """Parse the thresholds of an address, "0.3,0.8"; None where there are none."""
    try:
        low, high = map(float, text.split(","))
        return Thresholds(low, high)
    except (ValueError, CotlabError):
        return None


def _try(low: float, high: float) -> None:
    """Move the sliders to these thresholds."""
    st.query_params["domain"] = DEFAULT
    st.query_params["thresholds"] = f"{low:.4g},{high:.4g}"


def _by_cost(view: DecisionView) -> list[Suggestion]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        error = st.number_input(
            "Cost of a released error", 0.01, 1e9, 20.0, key="cost-error", width=160
        )
        review = st.number_input("Cost of a review", 0.0, 1e9, 1.0, key="cost-review", width=130)
        escalation = st.number_input(
            "Cost of an escalation", 0.0, 1e9, 3.0, key="cost-escalation", width=130
        )
        missed = st.number_input(
            "Share of errors that a review misses",
            0.0,
            0.99,
            0.1,
            0.01,
            key="cost-missed",
            width=230,
        )
    stamp = view.counts
    return _cost_lines(
        str(cached.store().folder),
        (error, review, escalation, missed),
        stamp["said"],
        stamp["chosen"],
    )


def _by_target(view: DecisionView) -> list[Suggestion]:
    target = st.number_input(
        "Acceptable share of the released answers", 0.01, 0.999, 0.95, 0.01, key="target", width=240
    )
    stamp = view.counts
    return _target_lines(str(cached.store().folder), target, stamp["said"], stamp["chosen"])


@st.cache_data(show_spinner="Trying thresholds on the labels", max_entries=32)
def _cost_lines(
    folder: str, costs: tuple[float, float, float, float], n_labels: int, chosen: int
) -> list[Suggestion]:
    return suggest_by_cost(cached.store(), None, Costs(*costs), seed=42)


@st.cache_data(show_spinner="Trying thresholds on the labels", max_entries=32)
def _target_lines(folder: str, target: float, n_labels: int, chosen: int) -> list[Suggestion]:
    return suggest_by_precision(cached.store(), None, target)


def _threshold_domains(table: pd.DataFrame) -> list[str]:
    """Return the domains that can have their own thresholds.

    A domain named like the default's key is left out.
    """
    return sorted(set(table["domain"]) - {"", DEFAULT})


def _name(domain: str) -> str:
    return NAMES.get(domain, shorten(domain, 40))


def _part(n: int, total: int) -> str:
    return f"{n} ({n / total:.0%})" if total else "0"


def _interval(interval: Interval) -> str:
    return (
        f"n/a: {interval.reason}"
        if interval.point is None
        else interval_text(interval.point, interval.lo, interval.hi)
    )
