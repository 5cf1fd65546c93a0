r"""Questions that ask for a rounded number, and replies that give the exact one before it.

Of ``25\pi \approx 78.54`` the answer is 78.54 where two decimal places are asked for, else 25 pi.
"""

from __future__ import annotations

import re

_LAST_CHARACTERS, _MAX_CHARACTERS = 600, 4000
# "Round to two decimal places", "to the nearest tenth", "3 significant figures"
_ROUNDED_QUESTION_RE = re.compile(
    r"(?i)\b(?:decimals?|decimal places?|d\.p\.|significant (?:figures|digits)|sig\.? figs?"
    r"|round(?:ed|ing)?|approximat(?:e|es|ed|ely|ion)|(?:to )?the nearest (?:whole|integer|ten"
    r"|tenth|hundred|hundredth|thousand|thousandth|cent|degree|percent|unit|[a-z]+th))\b"
)
_EXACT_RE = re.compile(r"(?i)\b(?:exact(?:ly)?|simplest radical form|in terms of)\b")
_SIGN_RE = re.compile(r"\s?(?:≈|\\approx\b|\\simeq\b)\s?")
_NUMBER_AFTER = r"(?=\s?\$?-?[$€£]?\d)"
# "x = \\sqrt{2} ≈ " within "$...$", "\\(...\\)", "\\boxed{...}" and at the start of a line
_WITHIN_RE = re.compile(
    rf"(?m)(?P<start>\$|\\\(|\\\[|\\boxed\{{|^)(?P<exact>[^$\n≈]{{1,200}})≈{_NUMBER_AFTER}"
)
# "22/7 ≈ " in a sentence
_TOKEN = r"[^\s,;:≈]{1,60}+"
_EXACT_TOKENS_RE = re.compile(
    rf"(?<!\S)(?:\\?[A-Za-z]{{1,12}}\s)?{_TOKEN}"
    rf"(?:\s(?:[-+*/=^]|\\cdot|\\times)\s{_TOKEN}){{0,6}}\s≈{_NUMBER_AFTER}"
)
_ROUNDING_RE = re.compile(r"(?<!\\)\b[A-Za-z]{3,}\s[A-Za-z]{2,}")


def is_rounding_question(question: str) -> bool:
    """Return whether a question asks for a rounded or approximate number."""
    end = question[-_LAST_CHARACTERS:]
    return bool(_ROUNDED_QUESTION_RE.search(end)) and not _EXACT_RE.search(end)


def without_exact_forms(text: str, question: str) -> str:
    r"""Return a reply with 78.54 for ``25\pi \approx 78.54`` where a rounded number is asked for.

    Examples
    --------
    >>> without_exact_forms("x = 7/3 ≈ 2.3", "Find x to one decimal place.")
    '2.3'
    """
    if not is_rounding_question(question):
        return text
    head, end = text[:-_MAX_CHARACTERS], text[-_MAX_CHARACTERS:]
    end = _SIGN_RE.sub(" ≈ ", end)
    for _ in range(3):
        end = _WITHIN_RE.sub(_start_alone, end)
    return head + re.sub(r" {2,9}", " ", _EXACT_TOKENS_RE.sub("", end))


def _start_alone(match: re.Match[str]) -> str:
    """Return the opening sign of a formula whose exact part is dropped; words stay."""
    return match[0] if _ROUNDING_RE.search(match["exact"]) else match["start"]
