"""What a form has where its answer goes: "<answer>", "[your answer]"."""

from __future__ import annotations

import re

_LABEL_PATTERN = (
    r"(?:(?:insert|put|write|state|your|the|a|final|correct|numeric(?:al)?|single)[ _-]){0,4}"
    r"(?:answer|ans|number|value|result|option|letter|choice)(?:[ _-](?:here|goes here))?"
)
_PLACEHOLDER_RE = re.compile(
    rf"(?i)(?:<\s?{_LABEL_PATTERN}\s?>|\[\s?{_LABEL_PATTERN}\s?\]|\{{\s?{_LABEL_PATTERN}\s?\}}"
    r"|(?:(?:insert|put|write|your|the|final)[ _-]){0,4}answer(?: is|[ _-](?:goes )?here)?|_{2,80})"
)


def is_placeholder(answer: str) -> bool:
    """Return whether what stands for an answer is only the place of one.

    A model that repeats the instruction "Finish with the line: The final answer is <answer>" has
    given no answer.
    """
    return _PLACEHOLDER_RE.fullmatch(answer.strip(" \t\n.:*`\"'$#")) is not None
