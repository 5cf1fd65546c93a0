"""The value that a sentence gives before its period: $225 of "she spends $225 over 5 weeks"."""

from __future__ import annotations

import re

from cotlab.text.answers.dates import find_values

# " over " of "$225 on dry cleaning over 5 weeks", " in " of "34 hours in 4 weeks"
_PERIOD_RE = re.compile(
    r"(?i)\s(over|in|for|during|within|across|throughout|after)\s(?:the\s|a total of\s|all\s)?$"
)
_PERIOD_UNIT_RE = re.compile(r"(?i)\d\s?-?(?:second|minute|hour|day|week|month|year)s?$")
# "Therefore, she spends", "a total of"
_CONCLUSION_RE = re.compile(
    r"(?i)^\W{0,3}(?:therefore|thus|so|hence|in total|altogether|finally)\b|\btotal\b"
)


def value_before_period(sentence: str) -> str | None:
    """Return the value of "Therefore she spends $225 on it over 5 weeks"; None for other text."""
    spans = find_values(sentence) if len(sentence) <= 400 else []
    if len(spans) < 2:
        return None
    (start, end), (last_start, last_end) = spans[-2:]
    value, before, tail = sentence[start:end], sentence[:last_start], sentence[last_end:]
    preposition = _PERIOD_RE.search(before)
    concludes = _CONCLUSION_RE.search(sentence)
    if not preposition:
        return None
    if _PERIOD_UNIT_RE.search(sentence[last_start:last_end]) and not tail.strip(" .!*"):
        is_over = preposition[1].lower() in ("over", "during", "throughout")
        return value if is_over or (concludes and len(spans) == 2) else None
    is_price = value[0] in "$€£" and preposition[1].lower() == "for" and concludes
    return value if is_price and re.fullmatch(r"(?:\s[a-z]+){1,2}[\s.!*]*", tail) else None
