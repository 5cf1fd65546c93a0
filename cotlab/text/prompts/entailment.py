"""Prompt for the confidence that one text supports another, and how the reply is read."""

from __future__ import annotations

import re

from cotlab.core.requests import Message
from cotlab.text.prompts.chain import Prompt

# "0.8", "80 %", "8/10"
_NUMBER = re.compile(
    r"(?<![\w.])([-−]?(?:\d{1,9}(?:\.\d{1,9})?|\.\d{1,9}))"
    r"(?:\s?(%)|\s?/\s?(\d{1,3})\b)?(?![\w]|\.\d)"
)
_ASK = (
    "Premise:\n{premise}\n\nStatement:\n{hypothesis}\n\nHow sure are you that the premise supports"
    " the statement? Reply with one number from 0 (not at all) to 1 (certain) and nothing else."
)


def ask_support(premise: str, hypothesis: str) -> Prompt:
    """Ask for the confidence that a premise supports a hypothesis, as a number from 0 to 1."""
    return Prompt(
        (Message("user", _ASK.format(premise=premise.strip(), hypothesis=hypothesis.strip())),), ""
    )


def confidence_of(text: str) -> float | None:
    """Read the confidence of a reply such as "0.8", "Confidence: 80 %" or "8/10".

    Returns
    -------
    float or None
        In [0, 1]. None for a reply without a number, with several that differ, or with one outside
        the range.
    """
    confidences = set()
    for number, percent, base in _NUMBER.findall(text[:2000]):
        value = float(number.replace("−", "-"))
        divisor = 100.0 if percent else float(base) if base else 1.0
        confidences.add(value / divisor if divisor else -1.0)
    return (
        confidences.pop()
        if len(confidences) == 1 and all(0 <= value <= 1 for value in confidences)
        else None
    )
