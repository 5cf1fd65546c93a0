"""The road of the page Decide, and its tabs Policy and Decisions: thresholds, and their effect."""

from __future__ import annotations

from functools import partial

import streamlit as st

from cotlab.analysis.verdict.wording import noun_count
from cotlab.store.decisions import review_counts
from cotlab.ui import cached
from cotlab.ui.decisions import decided, thresholds
from cotlab.ui.more import render_more


def render_policy_tab() -> None:
    """Show the effect of thresholds on a run, and save them as the policy."""
    view = decided.select_decision_run()
    if view is None:
        return
    decided.render_fit_warning(view)
    policy = thresholds.render_thresholds(view)
    thresholds.render_policy_form(view, policy)
    thresholds.render_suggestions(view)
    render_more(
        "effect of the thresholds, by domain too",
        partial(thresholds.render_effects, view, policy),
        partial(thresholds.render_domain_effects, view, policy),
        thresholds.render_decision_notes,
    )


def render_decisions_tab() -> None:
    """Show what was released, reviewed or escalated of a run, and the audit log."""
    view = decided.select_decision_run()
    if view is not None:
        decided.render_fit_warning(view)
        decided.render_decide_button(view)
        render_more(
            "items to review",
            partial(decided.render_review_queue, view),
            name="review",
            params=("order", "queue-page"),
        )
        render_more(
            "all decisions", partial(decided.render_all_decisions, view), params=("action",)
        )
    render_more(
        "phases of a rollout, and audit log",
        partial(decided.render_rollout, view),
        decided.render_audit_log,
        name="audit",
    )


def render_road() -> None:
    """Show labels, calibrator, policy and decisions, each with a tick or with what is missing."""
    counts = cached.read_once(review_counts)
    steps = (
        (counts["labels"], noun_count(counts["labels"], "label"), "no labels"),
        (counts["calibrated"], "calibrator", "no calibrator"),
        (counts["policies"], "policy", "no policy"),
        (counts["decided"], noun_count(counts["decided"], "decision"), "no decisions"),
    )
    texts = [f"✓ {text}" if n else f"**○ {missing}**" for n, text, missing in steps]
    st.markdown("  →  ".join(texts))
