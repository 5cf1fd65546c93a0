"""The unit that a question asks for, and bare numbers read in it: 5 is 5 km and not 5 miles."""

from __future__ import annotations

import re

from cotlab.text.answers.formulas import read_formula
from cotlab.text.answers.quantities import Quantity, read_quantity
from cotlab.text.answers.question import counted_phrase, last_question, read_expected
from cotlab.text.answers.reading import tidy_answer, to_plain_text
from cotlab.text.written_numbers import word_list
from cotlab.text.written_units import CURRENCIES, find_units

_MAX_CHARACTERS, _LAST_CHARACTERS = 1000, 200
_TERM_PATTERN = r"[a-z°µ$€£]{1,12}(?:\^?[23](?!\d)|[²³]|\ssquared\b|\scubed\b)?"
# "km", "square metres", "m^2", "miles per hour", "degrees Celsius"
_UNIT_PATTERN = (
    rf"(?:(?:square|cubic|sq\.?|cu\.?|degrees?)\s)?{_TERM_PATTERN}"
    rf"(?:\s?/\s?{_TERM_PATTERN}|\s(?:per|an?|each|every)\s{_TERM_PATTERN})?"
)
_UNIT_RE = re.compile(rf"(?i){_UNIT_PATTERN}(?![\w-])")
# "in km/h", "in square metres"
_IN_UNIT_RE = re.compile(rf"(?i)\bin\s+({_UNIT_PATTERN})(?![\w-])")
_ONE_TERM_RE = re.compile(rf"(?i)(?:(?:square|cubic|sq\.?|cu\.?)\s)?{_TERM_PATTERN}")
_PER_RE = re.compile(r"(?i)\s?/\s?|\s(?:per|an?|each|every)\s")
# "m" before the end of a clause, not the m of "in m games"
_SINGLE_LETTERS = frozenset("mgshl")
_CLAUSE_END_RE = re.compile(r"\s*(?:[?.,;:)$]|$)")
_AGE_RE = re.compile(r"(?i)\bhow old\b")
_HOW_MUCH_RE = re.compile(r"(?i)\bhow much\b")
# "/h" of "5 km/h"
_SPEED_RE = re.compile(r"(?i)\s?(?:/|per|an?)\s?(?:h|hr|hour|s|sec|second|min|minute)s?\.?")
_HOW_MANY_RE = re.compile(r"(?i)\bhow many\b")
_PERCENT_QUESTION_RE = re.compile(r"(?i)\b(?:how many|what) percent")
_PERCENT_RE = re.compile(r"(?i)percent|%")
_MONEY_RE = re.compile(r"(?i)\bhow much money\b")
_KIND_RE = re.compile(r"(?i)\bhow (?:long|old|heavy|far|tall|wide|high|deep)\b|\bhow much money\b")
_DOZEN_RE = re.compile(r"\d\s?dozen\b")
_YEAR_UNITS = find_units("year")
_GENERIC_NOUNS = frozenset(
    word_list(
        "thing item piece unit one total object people person whole number value copy way time"
        " option possibility pc dozen"
    )
)


def question_unit(question: str) -> str:
    """Return the unit that a question wants ("minutes", "km/h", "square meters"); else "".

    Examples
    --------
    >>> question_unit("What is its speed in m/s?")
    'm/s'
    """
    question = to_plain_text(question[-_MAX_CHARACTERS:])
    if phrase := counted_phrase(question):
        if phrase.split()[0].lower() in ("dozen", "dozens"):
            return "dozen"
        match = _UNIT_RE.match(phrase)
        return _longest_unit(match[0]) if match and len(phrase.split()[0]) > 1 else ""
    units = [
        unit
        for match in _IN_UNIT_RE.finditer(question[-_LAST_CHARACTERS:])
        if (unit := _longest_unit(match[1]))
        and (
            unit not in _SINGLE_LETTERS
            or _CLAUSE_END_RE.match(question[-_LAST_CHARACTERS:][match.end() :])
        )
    ]
    return units[-1] if units else ""


def _longest_unit(text: str) -> str:
    """Return what of a text is a unit, without a noun after it; "" for none and for percent."""
    head = _ONE_TERM_RE.match(text)
    for candidate in (text, head[0] if head else "", text.split()[0]):
        is_unit = (
            all(
                find_units(re.sub(r"\^?[23²³]$", "", term.split()[-1]))
                for term in _PER_RE.split(candidate)
                if term.strip()
            )
            and candidate.strip()
        )
        is_word = len(candidate) > 1 or candidate in _SINGLE_LETTERS
        unit = read_quantity(f"1 {candidate}") if is_unit and is_word else None
        if unit and unit.units and not _bases(unit) & {"percent"}:
            return candidate
    return ""


def read_in_question_unit(question: str, answer: str, bare: str) -> str | None:
    """Return a bare number with the unit that the question asks for, beside one with a unit.

    Parameters
    ----------
    question : str
        The question, which may say in which unit the answer is.
    answer : str
        The answer that the number is compared with.
    bare : str
        Another answer; returned as it is unless it is a number without a unit.

    Returns
    -------
    str or None
        None where the other answer's unit is of another kind than the question asks for: hours
        where it asks how many km.
    """
    plain_answer = to_plain_text(tidy_answer(answer))
    given, number = _quantity(answer), _quantity(bare)
    if not question or given is None or number is None or number.units or number.nouns:
        return bare
    unit = question_unit(question)
    if unit == "dozen":
        return f"{bare} dozen" if given.nouns or _DOZEN_RE.search(answer) else bare
    if not given.units:
        return bare
    dimensions = {dims for dims, _ in given.units}
    if _PERCENT_QUESTION_RE.search(last_question(question)) and "percent" not in _bases(given):
        return None
    if _bases(given) == {"percent"} and _HOW_MANY_RE.search(last_question(question)):
        return bare if _PERCENT_RE.search(question) else None
    expected = read_quantity(f"1 {unit}") if unit else None
    if expected is None:
        return _read_by_kind(question, answer, bare, given)
    numerator = _PER_RE.split(unit)[0]
    for name in (unit, numerator):
        quantity = read_quantity(f"1 {name}")
        if quantity and dimensions & {dims for dims, _ in quantity.units}:
            return f"{bare} {name}"
    given_numerator = _PER_RE.split(plain_answer)[0]
    counted = read_quantity(given_numerator) if given_numerator != plain_answer else None
    is_speed = _SPEED_RE.fullmatch(plain_answer[len(given_numerator) :])
    if (
        counted
        and not is_speed
        and {dims for dims, _ in counted.units} & {dims for dims, _ in expected.units}
    ):
        return f"{bare} {unit}{plain_answer[len(given_numerator) :]}"  # 5 pounds per day
    is_angle = any(dims == (("angle", 1),) for dims, _ in expected.units)
    if is_angle and (("radian", 1),) in dimensions:
        return f"{bare} {unit}"
    last = last_question(question)
    is_of_other = bool(counted_phrase(question)) and _HOW_MUCH_RE.search(last)
    return bare if is_of_other or question_unit(last) != unit else None


def _quantity(text: str) -> Quantity | None:
    """Read a number with its unit, also where the number is a formula: "5√2 km"."""
    plain = to_plain_text(tidy_answer(text))
    if quantity := read_quantity(plain):
        return quantity
    formula = read_formula(plain)
    return read_quantity(f"1 {formula.unit}".strip()) if formula else None


def _read_by_kind(question: str, answer: str, bare: str, given: Quantity) -> str | None:
    """Return a bare number beside a unit where the question names a kind and no unit."""
    last = last_question(question)
    is_radian = _bases(given) == {"radian"}
    if is_radian and "angle" in last.lower() and "radian" not in question.lower():
        return f"{bare} degrees"
    if not _KIND_RE.search(last) or "percent" in _bases(given):
        return bare
    kinds = CURRENCIES if _MONEY_RE.search(last) else read_expected(last).dimensions
    if kinds and _bases(given) and not _bases(given) & kinds:
        return None
    if _AGE_RE.search(last) and not set(given.units) & set(_YEAR_UNITS):
        named = [word for word in re.findall(r"[a-z]{3,}", answer.lower()) if find_units(word)]
        is_named = any(word.rstrip("s") in question.lower() for word in named)
        return bare if is_named else f"{bare} years"
    return bare


def _bases(quantity: Quantity) -> set[str]:
    """Return what the possible units of a quantity measure: "length", "time"."""
    return {base for dims, _ in quantity.units for base, _ in dims}


def counts_the_same(question: str, first: str, second: str) -> bool | None:
    """Return whether two numbers, one of them bare, count what the question counts.

    False for "5 oranges" where the question asks how many apples and names oranges too; None where
    it does not name them, since 12 children may be the 12 kids that are asked for.
    """
    last = last_question(question)
    quantities = [_quantity(first), _quantity(second)]
    if not counted_phrase(last) or not all(quantities) or " of " in f"{first} {second}":
        return True
    nouns = [quantity.nouns for quantity in quantities if quantity and not quantity.units]
    if len(nouns) != 2 or all(nouns) or not any(nouns):
        return True
    given, expected = nouns[0] | nouns[1], read_expected(last).nouns
    if not expected or expected & given or (expected | given) & _GENERIC_NOUNS:
        return True
    words = set(re.findall(r"[a-z]+", question[-_MAX_CHARACTERS:].lower()))
    is_named = any(word.startswith(noun) for noun in given if len(noun) > 3 for word in words)
    return False if is_named else None
