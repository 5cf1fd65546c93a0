"""Decisions: the effect of thresholds, the policy in force, and the decisions on a run."""

from functools import partial

from cotlab.ui import components
from cotlab.ui.decisions import decided, fitted, suggested, thresholds
from cotlab.ui.more import render_more

components.render_heading("Decisions", "What may be released without a review?")
view = decided.select_decision_run()
if view is not None:
    fitted.render_fit_warning(view)
    policy = thresholds.render_thresholds(view)
    thresholds.render_policy_form(view, policy)
    suggested.render_suggestions(view)
    decided.render_decide_button(view)
    render_more(
        "items to review",
        partial(decided.render_review_queue, view),
        name="review",
        params=("order", "queue-page"),
    )
    render_more(
        "effect of the thresholds, by domain too, and all decisions",
        partial(thresholds.render_effects, view, policy),
        partial(thresholds.render_domain_effects, view, policy),
        partial(decided.render_all_decisions, view),
        thresholds.render_decision_notes,
        params=("action",),
    )
render_more(
    "phases of a rollout, and audit log",
    partial(decided.render_rollout, view),
    decided.render_audit_log,
    name="audit",
)
