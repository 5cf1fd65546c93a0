"""The tabs Policy and Decisions: the effect of thresholds, and what was decided by them."""

from __future__ import annotations

from functools import partial

from cotlab.ui.decisions import decided, suggested, thresholds
from cotlab.ui.more import render_more


def render_policy_tab() -> None:
    """Show the effect of thresholds on a run, and save them as the policy."""
    view = decided.select_decision_run()
    if view is None:
        return
    decided.render_fit_warning(view)
    policy = thresholds.render_thresholds(view)
    thresholds.render_policy_form(view, policy)
    suggested.render_suggestions(view)
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
