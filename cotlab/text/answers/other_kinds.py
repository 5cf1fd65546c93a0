"""Numbers of another kind than a question counts: Room 12, 12 o'clock, £12, 75% failed."""

from __future__ import annotations

import re

from cotlab.text.answers.question import counted_phrase, last_question

_MAX_CHARACTERS = 80
_LABEL_NOUNS = (
    "room|chapter|page|flat|apartment|suite|gate|platform|section|exercise|problem|question|figure"
    "|table|row|seat|route|highway|street|building|floor|volume|verse|lesson|act|scene|channel"
    "|version|step|grade|level|house|bus|train|line|no\\.|nr\\.|number|item|track|lane|door|locker"
    "|team|group|year|day|week|psalm|article|rule|law|theorem|case|unit|module|episode|season|form"
)
# "Room 12", "No. 6", "It is in room #12" as a whole reply
_LABELLED_RE = re.compile(
    rf"(?i)(?:(?:it|that|this|they|he|she)(?:['’]s|\s(?:is|are|was|were))\s)?(?:in\s|on\s|at\s)?"
    rf"(?:the\s)?({_LABEL_NOUNS})\s?#?\d{{1,5}}[.!]?"
)
# "12:00", "12 o'clock", "12 p.m.", "12 AD"
_CLOCK_RE = re.compile(r"(?i)\b\d{1,2}(?::[0-5]\d\b|\s?o['’]clock\b|(?::[0-5]\d)?\s?[ap]\.?m\b)")
_ERA_RE = re.compile(r"(?:\bA\.?D\.?\s\d{1,4}\b|\b\d{1,4}\s(?:A\.?D\b|C\.?E\b|B\.?C\b))")
_TIME_RE = re.compile(
    r"(?i)\b(?:when|time|times|o['’]clock|clock|watch|hours?|minutes?|seconds?|years?|centur(?:y|ies))\b"
)
_MONEY_RE = re.compile(
    r"[$€£]\s?\d|\b\d[\d.,]{0,40}\s?(?:[$€£]|dollars?\b|euros?\b|cents?\b|USD\b|EUR\b|GBP\b)"
)
_MONEY_NOUN_RE = re.compile(
    r"(?i)[$€£¢]|\b(?:money|dollars?|euros?|cents?|bucks|pence|penn(?:y|ies)|quarters|dimes|nickels"
    r"|pounds?|francs?|rupees?|yen)\b"
)
_PAY_RE = re.compile(
    r"(?i)\b(?:costs?|pays?|paid|price|spends?|spent|worth|earn\w{0,3}|charge\w?)\b"
)
# "How many pounds does it weigh?"
_WEIGHT_RE = re.compile(
    r"(?i)\b(?:weighs?|weight|weighed|heav(?:y|ier|iest)|lifts?|mass|lighter|pounds of)\b"
)
# "What is the score?"
_NUMBER_QUESTION_RE = re.compile(
    r"(?i)\bwhat (?:is|was|are) (?:the|its|his|her|their) (?:\w+\s){0,3}?"
    r"(?:score|sum|total|number|product|average|mean|median|area|length|weight|height|price|cost)\b"
)
_POINTS_RE = re.compile(r"(?i)\d\spoints?\b")
_PERCENT_RE = re.compile(r"(?i)percent|%")
_OPPOSITES = tuple(
    tuple(re.compile(rf"(?i)\b(?:{words})\b") for words in pair)
    for pair in (
        ("profit|profits|gain|gains|gained", "loss|losses|lost|loses"),
        ("pass|passes|passed", "fail|fails|failed"),
        ("increase[sd]?|rise|rises|rose", "decrease[sd]?|fell|falls|fall|drop(?:s|ped)?"),
        ("win|wins|won", "lose|loses|lost"),
        ("oldest|older", "youngest|younger"),
        ("most|more|largest|greatest", "least|fewer|fewest|smallest"),
        ("present|attended", "absent|missed"),
        ("boys?", "girls?"),
        ("men", "women"),
    )
)
# "There are no integer solutions" as a whole reply
_NO_SOLUTION_RE = re.compile(
    r"(?i)\W*(?:(?:there (?:is|are)|it has) \W*)?no (integer|rational|positive)"
    r" (?:solutions?|roots?|zeros|values?)\W*"
)
# "n!" at the end of a reply
_FACTORIAL_RE = re.compile(r"(?<![A-Za-z])[A-Za-z]!\W{0,3}$")
_FACTORIAL_QUESTION_RE = re.compile(r"(?<![A-Za-z])(?:[A-Za-z]|\d{1,3}|\))!(?!\s[A-Z]|$)")


def is_of_other_kind(text: str, other: str, question: str) -> bool:
    """Return whether a short reply gives a number of another kind than the question asks for.

    Parameters
    ----------
    text : str
        A whole reply or an answer.
    other : str
        The answer that it is compared with; where both are of that kind, the kind is right.
    question : str
        The question; without one nothing is of another kind.

    Examples
    --------
    >>> is_of_other_kind("Room 12", "12", "How many students are there?")
    True
    >>> is_of_other_kind("Room 12", "12", "Which room is it?")
    False
    """
    text = text.strip(" \n*_$.") if text.endswith(("*", "_")) else text.strip()
    if not question.strip() or not text or len(text) > _MAX_CHARACTERS:
        return False
    last = last_question(question)
    return (
        _is_no_count(text, other, last)
        or _is_money(text, other, last)
        or _is_opposite(text, other, last)
        or _is_of_other_numbers(text, other, question)
        or (
            bool(_FACTORIAL_RE.search(text))
            and "!" not in other
            and bool(_FACTORIAL_QUESTION_RE.search(question))
        )
        or (
            bool(_POINTS_RE.search(text))
            and "point" not in f"{question} {other}".lower()
            and bool(_PERCENT_RE.search(last))
        )
    )


def _is_no_count(text: str, other: str, last: str) -> bool:
    """Return whether a label, a time of day or a year stands where something is counted."""
    if counted_phrase(last) and _LABELLED_RE.fullmatch(text):
        return not _LABELLED_RE.fullmatch(other.strip())
    if not (counted_phrase(last) or _WEIGHT_RE.search(last) or _NUMBER_QUESTION_RE.search(last)):
        return False
    time = _CLOCK_RE.search(text) or _ERA_RE.search(text)
    if time is None or re.search(r"\d", text[: time.start()] + text[time.end() :]):
        return False
    is_same_kind = _CLOCK_RE.search(other) or _ERA_RE.search(other)
    return not is_same_kind and not _TIME_RE.search(last)


def _is_of_other_numbers(text: str, other: str, question: str) -> bool:
    """Return whether "no integer solutions" stands where real ones are asked for."""
    match = _NO_SOLUTION_RE.fullmatch(text)
    return match is not None and not re.search(rf"(?i)\b{match[1]}", f"{question} {other}")


def _is_money(text: str, other: str, last: str) -> bool:
    """Return whether an amount of money stands where things or weights are counted."""
    numbers = re.findall(r"\d[\d.,]*", text)
    if not _MONEY_RE.search(text) or len(numbers) != 1 or _MONEY_RE.search(other):
        return False
    if _WEIGHT_RE.search(last):
        return not _PAY_RE.search(last)
    counted = counted_phrase(last)
    return bool(counted) and not _MONEY_NOUN_RE.search(counted) and not _PAY_RE.search(last)


def _is_opposite(text: str, other: str, last: str) -> bool:
    """Return whether a number is of the opposite of what a question asks for."""
    if not re.search(r"\d", text) or len(re.findall(r"\d[\d.,]*", text)) != 1:
        return False
    if "-" in other or re.search(r"(?i)\b(?:not|n['’]t|or)\b", text):
        return False
    for first, second in _OPPOSITES:
        for mine, its_opposite in ((first, second), (second, first)):
            if (
                mine.search(last)
                and not its_opposite.search(f"{last} {other}")
                and its_opposite.search(text)
                and not mine.search(text)
            ):
                return True
    return False
