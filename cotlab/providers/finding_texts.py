"""What a check of a server found, on a line of a report or of the terminal."""

from __future__ import annotations

from cotlab.core.provider import Finding

CHECK_LABELS = {
    "prefix": "Assistant prefix",
    "logprobs": "Log-probabilities",
    "reasoning": "Reasoning before the reply",
    "long_prompt": "Longest prompt",
    "greedy": "Same request at temperature 0",
    "system": "System prompt",
    "seed": "Seed",
    "user_chain": "Chain in the user's turn",
    "stop": "Stop texts",
    "choices": "Two draws in one call",
}
"""Name of a check → its label in reports and on pages."""


def finding_text(name: str, finding: Finding) -> str:
    """Return a finding on one line, such as "Log-probabilities: given (20 alternatives)"."""
    unit = {"logprobs": "alternatives", "long_prompt": "words", "choices": "replies"}.get(name)
    count_text = f" ({finding.count:,} {unit})" if unit and finding.count else ""
    detail_text = f": {finding.detail}" if finding.detail else ""
    return f"{CHECK_LABELS[name]}: {finding.verdict}{count_text}{detail_text}"
