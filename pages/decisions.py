"""Decisions: what each threshold would do, the policy that holds, and what was decided on a run."""

from cotlab.ui import components as parts
from cotlab.ui.decisions import decided
from cotlab.ui.decisions import what_if as decisions

parts.head("Decisions", "What may be released without a person?")
shown = decisions.found()
if shown is not None:
    policy = decisions.what_if(shown)
    decisions.save(shown, policy)
    decisions.suggestions(shown)
    decisions.by_domain(shown, policy)
    decided.queue(shown)
    decided.all_of(shown)
decided.rollout_box(shown)
decided.audit_log()
decisions.fine_print()
