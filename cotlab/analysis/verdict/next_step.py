"""What would give a finding where a verdict is refused, as options of a command."""

from __future__ import annotations

from collections.abc import Mapping

from cotlab.analysis.verdict.measures import MIN_ITEMS, RunEvidence
from cotlab.analysis.verdict.refusals import count_needed_items
from cotlab.analysis.verdict.result import NOTHING_RULE, Verdict

_OPTIONS_BY_MEASURE: Mapping[str, str] = {
    "change": "--scorer ablation --mode corrupt --mode paraphrase",
    "control": "--scorer ablation --mode corrupt --mode paraphrase",
}
"""What asks for each measure that a refusal names."""


def next_step_text(verdict: Verdict, evidence: RunEvidence) -> str:
    """Return what to run for a finding; "" where there is one, or nothing is known to give one."""
    if verdict.mark != "unknown" or evidence.status in ("planned", "running"):
        return ""
    if verdict.rule == NOTHING_RULE:
        if any("vocabulary" in missing.reason for missing in evidence.missing):
            return "another model, or a suite in words that this one knows."
        return ""
    if verdict.measure_next == "items":
        n_needed = count_needed_items(evidence)
        return f"{n_needed} items: --limit {n_needed}, or a suite of more." if n_needed else ""
    options = _OPTIONS_BY_MEASURE.get(verdict.measure_next or "")
    if options and 0 < evidence.n_planned < MIN_ITEMS:
        options += f" --limit {MIN_ITEMS}"
    return f"{options} asks it." if options else ""
