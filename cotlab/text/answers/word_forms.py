"""Forms in which one word is written: Southwest, SW, "P L A N E T", H_2O, "the eighteenth century".

Each is read so only where the question or the other answer says that it is meant.
"""

from __future__ import annotations

import re

from cotlab.text.answers.mathematical_forms import in_mathematical_form
from cotlab.text.answers.question import LIMIT_QUESTION_RE
from cotlab.text.answers.reading import tidy_answer, to_plain_text
from cotlab.text.written_numbers import ORDINAL_PATTERN, read_ordinal

_MAX_CHARACTERS = 100
_COMPASS_NAMES = {"N": "north", "S": "south", "E": "east", "W": "west"}
# "SW", "N.E."
_COMPASS_RE = re.compile(r"([NS])\.?([EW])\.?|([NSEW])\.?")
_DIRECTION_QUESTION_RE = re.compile(r"(?i)\b(?:direction|compass|which way|facing)\b")
_DIRECTION_RE = re.compile(r"(?i)(?:north|south)?[- ]?(?:east|west)?")
# "P L A N E T", "p-l-a-n-e-t"
_SPACED_LETTERS_RE = re.compile(r"[A-Za-z](?:(?: [A-Za-z]){3,30}|(?:-[A-Za-z]){3,30})")
_LETTERS_QUESTION_RE = re.compile(r"(?i)\b(?:unscrambl\w+|anagrams?|spell\w*|rearrang\w+)\b")
# "H_2O", "Ca(OH)_2", "SO_4^{2-}": elements with indices
_CHEMICAL_RE = re.compile(r"(?:[A-Z][a-z]?\d{0,3}|[()\[\]]\d{0,3})+(?:\^\{?\d?[+-]\}?)?")
_CHEMISTRY_QUESTION_RE = re.compile(
    r"(?i)\b(?:chemical|molecular|empirical|compounds?|molecules?|ions?|acid|oxide)\b"
)
_KINDS = "river|ocean|sea|lake|desert|language|continent|century|day"
"""Nouns that add nothing to a name, or to an ordinal, beside a question that asks for one: the
Amazon river. Not city and country, which tell names apart (Kansas City)."""
_COUNTED_KINDS = frozenset({"century", "day"})
"""Kinds of which an ordinal alone is the name: the seventh day, but not Boxing Day."""
_KIND_QUESTION_RE = re.compile(
    rf"(?i)\b(?:which|what)(?:['’]s|\s(?:is|was|are)\sthe)?\s(?:[a-z-]+\s){{0,3}}?({_KINDS})\b"
)
_CURRENCY_OR_LANGUAGE_RE = re.compile(r"(?i)\b(?:which|what) (?:is the )?(?:currency|language)\b")
# "the Japanese Yen (¥)": an adjective of the country that the question names
_OF_COUNTRY_RE = re.compile(
    r"(?:[Tt]he )?(?P<adjective>[A-Z][a-z]{3,14}(?:an|ese|ish|ic|i|se|ch)) (?P<name>[A-Za-z]{3,15})"
    r"(?: \([^\w()\s]{1,2}\))?"
)
# "place" of "In which place did she finish?"
_NOUN_QUESTION_RE = re.compile(r"(?i)\b(?:which|what)\s([a-z]{3,12})\b")
_YEAR_QUESTION_RE = re.compile(r"(?i)\b(?:which|what) year\b")
_YEAR_RE = re.compile(r"\b[12]\d{3}\b")
_MONTH_RE = re.compile(
    r"(?i)\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\b|\b\d{1,2}[/.-]\d{1,2}\b"
)
_NO_LIMIT_RE = re.compile(r"(?i)D\.?N\.?E\.?|(?:the )?limit does(?: not|n['’]t) exist|no limit")
_ORDINAL_WORD_RE = re.compile(rf"(?i)\b{ORDINAL_PATTERN}\b")
_ORDINAL_DIGITS_RE = re.compile(r"(?i)\b\d{1,3}(?:st|nd|rd|th)\b")


def in_other_form(text: str, other: str, question: str) -> str:
    """Return an answer in the form that the other answer, or the question, has.

    Mathematics is read by `in_mathematical_form`, words here.
    """
    text = in_mathematical_form(text, other, question)
    if max(len(text), len(other)) > _MAX_CHARACTERS:
        return text
    for rewrite in (
        _year_of_date,
        _without_kind,
        _without_country,
        _with_digits,
        _as_nonexistence,
        _as_direction,
        _as_word,
        _as_chemical,
    ):
        text = rewrite(text, other, question)
    return text


def _year_of_date(text: str, other: str, question: str) -> str:
    """Return "1989" for "November 9, 1989" beside a year, where a question asks which year."""
    years = _YEAR_RE.findall(text) if _YEAR_QUESTION_RE.search(question[-400:]) else []
    is_date = len(years) == 1 and _MONTH_RE.search(text) is not None
    return years[0] if is_date and _YEAR_RE.fullmatch(tidy_answer(other)) else text


def _without_kind(text: str, other: str, question: str) -> str:
    """Return "the Amazon" for "the Amazon River", "Thames" for "River Thames", of a river question.

    Only where the other answer does not say so itself.
    """
    kinds = {kind.lower() for kind in _KIND_QUESTION_RE.findall(question[-400:])}
    tidy = tidy_answer(text)
    head, _, last = tidy.rpartition(" ")
    nouns = {noun.lower() for noun in _NOUN_QUESTION_RE.findall(question[-400:])}
    if last.lower() in nouns and read_ordinal(head) and read_ordinal(tidy_answer(other)):
        return head  # the third place
    first, _, name = re.sub("^[Tt]he ", "", tidy).partition(" ")
    if len(kinds) == 1 and first.lower() in kinds - _COUNTED_KINDS and first not in other:
        return name if name[:1].isupper() else text
    is_kind = len(kinds) == 1 and last.lower() in kinds and re.search(r"[A-Za-z]{2}", head)
    if not is_kind or last.lower() in other.lower() or re.fullmatch(r"(?i)(?:the|an?)", head):
        return text
    if last.lower() in _COUNTED_KINDS and read_ordinal(head) is None:
        return text  # Boxing Day
    return head


def _without_country(text: str, other: str, question: str) -> str:
    """Return "Yen" for "the Japanese Yen (¥)" where a question asks for the currency of Japan.

    Beside another adjective, or a country that the question does not name, nothing is left out.
    """
    match = _OF_COUNTRY_RE.fullmatch(tidy_answer(text))
    if match is None or not _CURRENCY_OR_LANGUAGE_RE.search(question):
        return text
    if " " in tidy_answer(other).removeprefix("the ").removeprefix("The "):
        return text
    stem = match["adjective"][:4]
    is_named = re.search(rf"(?<![A-Za-z]){stem}[a-z]*", question)
    return match["name"] if is_named else text


def _with_digits(text: str, other: str, _question: str) -> str:
    """Return "the eighteenth century" as "the 18th century" beside an ordinal in digits."""
    if not _ORDINAL_DIGITS_RE.search(other) or _ORDINAL_DIGITS_RE.search(text):
        return text
    ordinals = [m for m in _ORDINAL_WORD_RE.finditer(text) if read_ordinal(m[0]) is not None]
    if len(ordinals) != 1:
        return text
    number, tens = read_ordinal(ordinals[0][0]) or 0, "th"
    if number % 100 not in (11, 12, 13):
        tens = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    start, end = ordinals[0].span()
    return f"{text[:start]}{number}{tens}{text[end:]}"


def _as_nonexistence(text: str, _other: str, question: str) -> str:
    """Return "DNE" as "does not exist" where a question asks for a limit."""
    is_none = _NO_LIMIT_RE.fullmatch(tidy_answer(text)) and LIMIT_QUESTION_RE.search(question)
    return "does not exist" if is_none else text


def _as_direction(text: str, other: str, question: str) -> str:
    """Return "SW" as "southwest" beside a direction in words."""
    match = _COMPASS_RE.fullmatch(text.strip(" *"))
    if match is None or not _DIRECTION_QUESTION_RE.search(question[-400:]):
        return text
    if not _DIRECTION_RE.fullmatch(tidy_answer(other)):
        return text
    return "".join(_COMPASS_NAMES[letter] for letter in match.groups() if letter)


def _as_word(text: str, other: str, question: str) -> str:
    """Return "P L A N E T" as "PLANET" beside one word, where a question is about letters."""
    tidy = tidy_answer(text)
    if not _SPACED_LETTERS_RE.fullmatch(tidy) or not re.fullmatch(
        r"[A-Za-z]{4,}", tidy_answer(other)
    ):
        return text
    return re.sub(r"[ -]", "", tidy) if _LETTERS_QUESTION_RE.search(question) else text


def _as_chemical(text: str, other: str, question: str) -> str:
    """Return "H_2O" as "H2O" beside a formula of chemistry without index signs."""
    if not _CHEMISTRY_QUESTION_RE.search(question):
        return text
    compact, compact_other = (
        re.sub(r"_\{?(\d{1,3})\}?|\s", r"\1", to_plain_text(tidy_answer(side)))
        for side in (text, other)
    )
    is_formula = _CHEMICAL_RE.fullmatch(compact) and re.search(r"\d", compact)
    return compact if is_formula and compact == compact_other else text  # CO2 is not Co2
