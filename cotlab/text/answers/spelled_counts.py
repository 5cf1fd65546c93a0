"""Counts that a sentence spells: "so there is one solution", "the equation has no real roots".

The digits of such a sentence are often what is counted and not how many: "x = 3 and x = -3 both
work, so there are two solutions".
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cotlab.text.answers.quantities import read_noun, read_quantity
from cotlab.text.answers.question import counted_phrase, last_question, read_expected
from cotlab.text.answers.reading import tidy_answer, to_plain_text
from cotlab.text.answers.statements import DENIAL_RE, after_conclusion, plain_sentence
from cotlab.text.written_numbers import NUMERAL_VALUES, TENS_VALUES, word_list

_TENS = "|".join(TENS_VALUES)
_NUMERAL = rf"(?:(?:{_TENS})(?:-[a-z]{{3,5}})?|{'|'.join(sorted(NUMERAL_VALUES, reverse=True))})"
# "there are exactly ", "has ", "giving " before "two solutions", and "there are two" at the end
_FRAME_RE = re.compile(
    r"(?i)(?:\bthere(?:['’]s|\s(?:is|are|was|were|will be|must be))"
    r"|\b(?:has|have|gives?|giving|get|yields?|yielding|leaves?|leaving|makes?|making|totals?"
    r"|total of|exactly|only))\s"
    r"(?:(?:therefore|thus|then|hence|also|exactly|precisely|only|just|in total|a total of)\s){0,2}"
    rf"({_NUMERAL}|no|a (?:single|unique))\b(?=\s|$)"
)
# "the number of ducks is zero" at the end
_NUMBER_IS_RE = re.compile(
    rf"(?i)\b(?:number|count|total)\b[^.;=\d]{{0,60}}?\s(?:is|equals)\s(?:therefore\s|thus\s|exactly\s)?"
    rf"({_NUMERAL})$"
)
_ENDS_RE = re.compile(r"(?i)\s*(?:of them|in total|in all|altogether|left|such)?$")
# "no more than three", "one ... and another", "one for each"
_NO_MORE_RE = re.compile(r"(?i)\s(?:more|fewer|less|longer|other|greater|larger)\b")
_MORE_OF_THEM_RE = re.compile(
    r"(?i)\b(?:another|others?|each|every|per|either|or|and (?:one|two|three|a)"
    r"|such as|other than|except|besides|apart|but)\b"
)
# "no solutions", "none": a count of 0
_NONE_RE = re.compile(r"(?i)(?:there (?:is|are|were|was) )?(?:none|no\s([a-z][a-z\s-]{2,60}))")
# "it has none" at the end
_HAS_NONE_RE = re.compile(r"(?i)\b(?:has|have|there (?:is|are)) none$")
# what a question counts whose values are themselves numbers
_NUMBERED_NOUNS = frozenset(
    word_list(
        "solution root zero value intercept answer possibility number integer prime point asymptote"
        " extremum"
    )
)
# "x = 2", "y = -1/2"
_UNKNOWN_RE = re.compile(r"\\?[xyzt]\$?\s?=\s?\$?[^\s,;=]{1,30}")


def counts_numbers(question: str) -> bool:
    """Return whether a question asks how many solutions, roots or numbers there are."""
    last = last_question(question)
    return bool(counted_phrase(last)) and bool(read_expected(last).nouns & _NUMBERED_NOUNS)


def states_unknowns_only(sentence: str, question: str) -> bool:
    """Return whether "x = 2" is all that a sentence says where solutions are counted."""
    plain = plain_sentence(sentence)
    if not counts_numbers(question) or not _UNKNOWN_RE.search(plain):
        return False
    return not re.search(r"\d", _UNKNOWN_RE.sub("", plain))


def spelled_count(sentence: str, question: str) -> str | None:
    """Return how many of what a question counts a sentence spells: "one solution".

    None where the question counts nothing, where the sentence denies or supposes it, and where two
    counts of it differ.

    Examples
    --------
    >>> spelled_count("Only x = 0 works, so there is one solution.", "How many solutions?")
    'one solution'
    """
    if not counted_phrase(last_question(question)):
        return None
    nouns = read_expected(question).nouns
    plain = plain_sentence(sentence)
    if not plain:
        return None
    conclusion = after_conclusion(plain)
    if _HAS_NONE_RE.search(conclusion):
        return "none"
    counts = _counts(conclusion, nouns)
    if not counts and not (conclusion != plain and re.search(r"\d", conclusion)):
        conclusion, counts = plain, _counts(plain, nouns)
    values = {count.value for count in counts}
    if len(values) != 1 or _digits_count(conclusion, nouns):
        return None
    is_read = not counts[0].value or read_quantity(single_as_number(counts[0].text))
    return counts[0].text if is_read else counts[0].numeral


class _Count(NamedTuple):
    """A count that a text spells."""

    value: int
    numeral: str
    text: str


def _counts(text: str, nouns: frozenset[str]) -> list[_Count]:
    """Return the counts of some nouns that a text spells."""
    counts = []
    for match in _FRAME_RE.finditer(text):
        rest = text[match.end() :]
        counted, end = read_noun(re.split(r"[,;:(]", rest)[0])
        is_mine = bool(counted & nouns) or (
            bool(_ENDS_RE.fullmatch(rest)) and match[1].lower() != "no"
        )
        is_denied = DENIAL_RE.search(text[: match.start()]) or _NO_MORE_RE.match(rest)
        if is_mine and not is_denied and not _MORE_OF_THEM_RE.search(rest):
            counts.append(_Count(_value(match[1]), match[1], f"{match[1]}{rest[:end]}".strip()))
    if (stated := _NUMBER_IS_RE.search(text)) and not DENIAL_RE.search(text[: stated.start()]):
        counts.append(_Count(_value(stated[1]), stated[1], stated[1]))
    return counts


def _value(numeral: str) -> int:
    """Return the number of "no", "a single", "twenty-one"."""
    if numeral[:2].lower() in ("no", "a "):
        return 0 if numeral[1].lower() == "o" else 1
    tens, _, ones = numeral.lower().partition("-")
    return TENS_VALUES.get(tens, 0) + NUMERAL_VALUES.get(ones or tens, 0)


def _digits_count(text: str, nouns: frozenset[str]) -> bool:
    """Return whether digits before one of the nouns count it too: "9 ducks"."""
    return any(
        read_noun(re.split(r"[,;:(]", text[match.end() :])[0])[0] & nouns
        for match in re.finditer(r"(?<![\w.=-])\d[\d,.]*(?=\s[a-z])", text)
    )


def has_spelled_count(sentence: str, nouns: frozenset[str]) -> bool:
    """Return whether a sentence spells a number above one before one of the nouns."""
    for match in re.finditer(rf"(?i)\b({_NUMERAL})\b(?=\s[a-z])", sentence):
        rest = re.split(r"[,;:(]", sentence[match.end() :])[0]
        if match[1].lower() not in ("one", "zero") and read_noun(rest)[0] & nouns:
            return True
    return False


def spells_number(text: str) -> bool:
    """Return whether a text spells a number above one: "a dozen"."""
    return any(
        match[0].lower() not in ("one", "zero")
        for match in re.finditer(rf"(?i)\b(?:{_NUMERAL}|dozen)\b", text)
    )


def none_as_zero(text: str, question: str) -> str:
    """Return "no real roots" and "none" as 0 where a question counts real roots."""
    match = _NONE_RE.fullmatch(tidy_answer(to_plain_text(text)))
    last = last_question(question)
    if match is None or not counted_phrase(last):
        return text
    if match[1] and _MORE_OF_THEM_RE.search(match[1]):
        return text  # "no solutions but one"
    counted = read_noun(match[1])[0] if match[1] else frozenset[str]()
    return "0" if not match[1] or counted & read_expected(last).nouns else text


def single_as_number(text: str) -> str:
    """Return "a single point" as "1 point"."""
    return re.sub(r"(?i)^a (?:single|unique)\b", "1", text.strip())
