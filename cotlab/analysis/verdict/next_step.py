"""What would give a finding where a verdict is refused, as options of a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cotlab.analysis.verdict.measures import MIN_ITEMS, RunEvidence
from cotlab.analysis.verdict.refusals import count_needed_items
from cotlab.analysis.verdict.result import NOTHING_RULE, Verdict, headline_share

QUESTION_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "change": {"scorer": "ablation", "mode": ("corrupt", "paraphrase")},
    "control": {"scorer": "ablation", "mode": ("corrupt", "paraphrase")},
    "suggestion": {"scorer": "unfaithfulness"},
    "equations": {"scorer": "verification", "chain": "own"},
}
"""Scorer, modes and chain that ask for each measure of the verdict."""


def next_step_text(verdict: Verdict, evidence: RunEvidence) -> str:
    """Return what to run for a finding; "" where there is one, or nothing is known to give one."""
    if verdict.mark != "unknown" or evidence.status in ("planned", "running"):
        return ""
    if verdict.rule == NOTHING_RULE:
        if any(missing.kind for missing in evidence.missing):
            return "another model, or a suite in words that this one knows."
        return ""
    if verdict.measure_next == "items":
        n_needed = count_needed_items(evidence, headline_share(evidence))
        return f"{n_needed} items: --limit {n_needed}, or a suite of more." if n_needed else ""
    options = QUESTION_OPTIONS.get(verdict.measure_next or "")
    if options is None:
        return ""
    words = [f"--scorer {options['scorer']}", *(f"--mode {m}" for m in options.get("mode", ()))]
    if 0 < evidence.n_planned < MIN_ITEMS:
        words.append(f"--limit {MIN_ITEMS}")
    return f"{' '.join(words)} asks it."
