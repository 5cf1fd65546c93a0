"""Decisions: the effect of thresholds, the policy in force, and the decisions on a run."""

from cotlab.ui import components
from cotlab.ui.decisions import decided, thresholds

components.head("Decisions", "What may be released without a review?")
view = decided.select_decision_run()
if view is not None:
    policy = thresholds.render_thresholds(view)
    thresholds.render_policy_form(view, policy)
    thresholds.render_suggestions(view)
    thresholds.render_domain_volumes(view, policy)
    decided.render_review_queue(view)
    decided.render_all_decisions(view)
decided.render_rollout(view)
decided.render_audit_log()
thresholds.render_decision_notes()
