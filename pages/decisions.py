"""Decisions: what each threshold would do, the policy that holds, and what was decided on a run."""

from cotlab.ui import components as parts
from cotlab.ui.decisions import decided
from cotlab.ui.decisions import what_if as decisions

parts.head("Decisions", "What may be released without a person?")
view = decisions.select_decision_run()
if view is not None:
    policy = decisions.render_thresholds(view)
    decisions.render_policy_form(view, policy)
    decisions.render_suggestions(view)
    decisions.render_domain_volumes(view, policy)
    decided.render_review_queue(view)
    decided.render_all_decisions(view)
decided.render_rollout(view)
decided.render_audit_log()
decisions.render_decision_notes()
