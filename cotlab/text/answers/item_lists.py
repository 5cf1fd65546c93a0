"""A list at the end of a reply that is its answer: of sorted words, of all primes below 40."""

from __future__ import annotations

import re

from cotlab.text.answers.reading import tidy_answer
from cotlab.text.steps import sentence_spans

_QUESTION_RE = re.compile(
    r"(?i)\b(?:sort|arrange|alphabetical\w*|in (?:ascending|descending) order"
    r"|(?:name|list|find) all|what are (?:all )?the (?!chances|odds)\w+s)\b"
)
# "1. basin", "- 23"
_LINE_RE = re.compile(r"[ \t]{0,6}(?:\d{1,3}[.)]|[-*•])[ \t]{1,3}(\S[^\n]{0,60})")
# "Only nine is odd." after a list of candidates
_CHOOSES_RE = re.compile(
    r"(?i)\b(?:only|not|no|so|thus|therefore|hence|it is|answer|but)\b|n['’]t\b"
)
_MIN_ITEMS, _MAX_ITEMS, _MAX_TERMS = 2, 60, 4


def listed_items(text: str, question: str) -> str | None:
    """Return the items of the only list of a reply, joined by commas; None for other replies.

    Only where the question asks for several things, at most one sentence without a number follows,
    and no item is a sentence or has its explanation beside it.
    """
    if not _QUESTION_RE.search(question[-1500:]):
        return None
    lines = text.rstrip().split("\n")
    numbers = [i for i, line in enumerate(lines) if _LINE_RE.fullmatch(line)]
    if not _MIN_ITEMS <= len(numbers) <= _MAX_ITEMS or numbers[-1] - numbers[0] >= len(numbers):
        return None
    rest = "\n".join(lines[numbers[-1] + 1 :]).strip()
    if re.search(r"\d", rest) or len(sentence_spans(rest)) > 1 or _CHOOSES_RE.search(rest):
        return None
    matches = [_LINE_RE.fullmatch(lines[i]) for i in numbers]
    items = [tidy_answer(match[1]) for match in matches if match]
    is_plain = all(
        item and len(item.split()) <= _MAX_TERMS and not re.search(r"[:=;(–—]", item)
        for item in items
    )
    return ", ".join(items) if is_plain else None
