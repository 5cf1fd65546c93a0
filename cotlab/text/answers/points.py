"""Points with a name before their coordinates: P'(3, 4) is (3, 4) where a point is wanted."""

from __future__ import annotations

import re

from cotlab.text.answers.formulas import read_formula
from cotlab.text.answers.notation import split_items
from cotlab.text.answers.question import last_question
from cotlab.text.answers.reading import CompoundAnswer, read_answer, tidy_answer, to_plain_text

_NAMED_POINT = r"([A-Z]'{0,2})\s?(\([^()]{1,60}\))"
_NAMED_POINT_RE = re.compile(_NAMED_POINT)
# "the image is the point P'(3, 4)" at the end of a sentence
_CLOSING_POINT_RE = re.compile(
    r"(?:^|(?:\b(?:[Pp]oint|is|are|at|to|becomes|gives)|[=:→])\s)"
    r"(?:the\s)?(?:(?:point|image|vertex)\s)?"
    rf"({_NAMED_POINT})$"
)
# "(3, -2)" of "The point is (3, -2)."
_FINAL_LIST_RE = re.compile(
    r"((?:(?<![\w'])[A-Z]'{0,2}\s?)?[(\[](?:[^()\[\],]{1,40},){1,9}[^()\[\],]{1,40}[)\]])[\s.]{0,3}$"
)
# "it may be that the image is " before "(3, 4)"
_UNCERTAIN_RE = re.compile(
    r"(?i)\b(?:may|might|could) be\b|\b(?:is|are) not\b|\b(?:is|are)n['’]t\b"
)
_POINT_QUESTION_RE = re.compile(
    r"(?i)\b(?:points?|coordinates|vertex|vertices|reflect\w*|rotat\w+|translat\w+|image|midpoint"
    r"|cent(?:re|er)|intersect\w*|foot|meets?|cross(?:es)?|where (?:do|does|is|are)"
    r"|triangle|moved|shift\w+)\b|(?<![A-Za-z])(?-i:[A-Z])['′](?![A-Za-z])"
)
# "P'" of "Find P' where P is (3, -4)", not "A" of "A point is reflected"
_NAME_RE = re.compile(r"(?<![A-Za-z'])(?!A\s[a-z])([A-Z])['′]{0,2}(?![A-Za-z])")
_QUESTION_POINT_RE = re.compile(
    r"(?i:\b(?:of|find|is|are|locate|determine)\s(?:the\s)?(?:(?:point|image|vertex|midpoint)\s)?)"
    r"\$?([A-Z])['′]{0,2}(?![A-Za-z])"
)


def closing_point(plain: str, question: str) -> str | None:
    """Return the named point that ends a plain sentence, where a question asks for a point."""
    match = _CLOSING_POINT_RE.search(plain) if _POINT_QUESTION_RE.search(question) else None
    return _as_point(match[1]) if match and _has_coordinates(match[3]) else None


def closing_list(sentence: str) -> str | None:
    """Return "(3, -2)" or "P(3, -2)" at the end of a sentence; "" where it is denied."""
    match = _FINAL_LIST_RE.search(sentence[-200:])
    if match is None:
        return None
    items = read_answer(to_plain_text(match[1].lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ' ")))
    if not isinstance(items, CompoundAnswer) or not items.kind:
        return None
    return "" if _UNCERTAIN_RE.search(match.string[: match.start()]) else _as_point(match[1])


def without_point_name(text: str, other: str, question: str) -> str:
    """Return "(3, 4)" for "P'(3, 4)" beside a point without a name; other text as it is.

    A name of which the question has several must be that which it asks for.
    """
    match = _NAMED_POINT_RE.fullmatch(to_plain_text(tidy_answer(text)))
    if match is None or not _POINT_QUESTION_RE.search(question):
        return text
    if not _has_coordinates(to_plain_text(tidy_answer(other))) or not _has_coordinates(match[2]):
        return text
    letter, letters = match[1][0], set(_NAME_RE.findall(question))
    if letter in letters and len(letters) > 1:
        letters = set(_QUESTION_POINT_RE.findall(last_question(question)))
        return match[2] if letters == {letter} else text
    return match[2]


def _as_point(text: str) -> str:
    """Return "(6, 3)" for "C(6, 3)", which would be a number of combinations; P likewise."""
    return text[1:].lstrip() if re.match(r"[CP]\s?\(", text) else text


def _has_coordinates(text: str) -> bool:
    """Return whether a text is two or three expressions in round brackets, with a number."""
    items = split_items(text[1:-1]) if text[:1] == "(" and text[-1:] == ")" else ()
    return len(items) in (2, 3) and bool(re.search(r"\d", text)) and all(map(read_formula, items))
