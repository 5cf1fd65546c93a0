"""Which textual red flags are on for which kind of text, and the spans read that this rests on.

The spans were drawn from published chains by a seed, and each was read by hand;
``benchmarks/flag_verdicts.tsv`` lists the verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cotlab.text.sentences import find_protected_spans

MIN_SHARE_RIGHT = 0.8
"""Share of right spans from which a rule is on."""
MIN_SPANS = 10
"""Spans read below which nothing is known about a rule."""


class SpanReading(NamedTuple):
    """How many spans of a rule were read by hand, and in how many it was right."""

    n_read: int
    """Spans read, at most 50 of a rule and domain."""
    n_right: int
    """Spans that the rule flags rightly."""


READINGS: Mapping[tuple[str, str], SpanReading] = {
    ("premature_answer", "latex"): SpanReading(5, 5),
    ("premature_answer", "plain"): SpanReading(12, 11),
    ("undefined_symbol", "latex"): SpanReading(50, 8),
    ("undefined_symbol", "plain"): SpanReading(50, 5),
    ("unit_inconsistency", "latex"): SpanReading(11, 1),
    ("unit_inconsistency", "plain"): SpanReading(49, 44),
    ("hand_waving", "latex"): SpanReading(14, 7),
    ("hand_waving", "plain"): SpanReading(13, 5),
}
"""Spans of each rule and domain in 9,916 chains of ProcessBench, GSM8K's model solutions,
BIG-Bench-Mistake and a study of Qwen3-4B; where fewer than 50 were read there were no more."""

_LATEX_RE = re.compile(r"\\[A-Za-z]{2,}|\\[\[(]")  # "\frac", "\("


def chain_domain(question: str, steps: Sequence[str], declared: object = None) -> str:
    """Return the domain of a chain: what its item declares, else latex or plain by its text.

    Latex is a question or chain with a LaTeX command or mathematics between dollar signs.
    """
    if declared is not None:
        return str(declared)
    for text in (question, *steps):
        if _LATEX_RE.search(text) or any(
            text[start] == "$" for start, _ in find_protected_spans(text)
        ):
            return "latex"
    return "plain"


def off_reason(rule: str, domain: str) -> str | None:
    """Return why a rule is off for a domain; None where it is on."""
    reading = READINGS.get((rule, domain))
    if reading is None:
        return (
            "the rule is off for every such chain, whatever it says: no spans of the domain"
            f" {domain!r} were read"
        )
    n_read, n_right = reading
    off_text = f"the rule is off for every {domain} chain, whatever it says"
    counts = f"{n_right} of {n_read} spans read in {domain} text were right"
    if n_read < MIN_SPANS:
        return f"{off_text}: {counts}, and {MIN_SPANS} are needed"
    if n_right / n_read < MIN_SHARE_RIGHT:
        return f"{off_text}: {counts}, and {MIN_SHARE_RIGHT:.0%} are needed"
    return None


def rules_summary() -> str:
    """Return which rules are on in which domain, with their counts, as a sentence."""
    parts = [
        f"{rule} {domain} {'off' if off_reason(rule, domain) else 'on'} ({n_right}/{n_read})"
        for (rule, domain), (n_read, n_right) in READINGS.items()
    ]
    return ", ".join(parts)
