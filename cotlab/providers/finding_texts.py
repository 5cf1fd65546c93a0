"""What a check of a server found, on a line of a report or of the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from cotlab.core.provider import Finding
from cotlab.providers.probe import NOT_CHECKED

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


def unchecked_text(findings: Mapping[str, Finding]) -> str:
    """Return which checks were not made and why, on one line; "" where all were.

    Examples
    --------
    >>> finding = Finding("unknown", "not checked: at most 10 requests are made")
    >>> unchecked_text({"seed": finding})[:48]
    'Not checked (at most 10 requests are made): See'
    """
    reasons: dict[str, list[str]] = {}
    for name, label in CHECK_LABELS.items():
        finding = findings.get(name)
        if finding is None:
            reasons.setdefault("not a part of this check", []).append(label)
        elif finding.detail.startswith(NOT_CHECKED):
            reasons.setdefault(finding.detail.removeprefix(NOT_CHECKED), []).append(label)
    return " ".join(
        f"Not checked ({reason}): {', '.join(labels)}." for reason, labels in reasons.items()
    )


def finding_text(name: str, finding: Finding) -> str:
    """Return a finding on one line, such as "Log-probabilities: given (20 alternatives)"."""
    unit = {"logprobs": "alternatives", "long_prompt": "words", "choices": "replies"}.get(name)
    count_text = f" ({finding.count:,} {unit})" if unit and finding.count else ""
    detail_text = f": {finding.detail}" if finding.detail else ""
    return f"{CHECK_LABELS[name]}: {finding.verdict}{count_text}{detail_text}"
