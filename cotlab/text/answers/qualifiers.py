"""What makes another value of a number beside it: "not 12", "at most 12", "12 or more", (12)_3."""

from __future__ import annotations

import re

from cotlab.text.written_numbers import COUNT_NUMERALS

_COMPARED = r"(?:less|fewer|more|greater|larger|smaller|higher|lower|bigger|older|younger)"
# "not ", "it is less than ", "at most ", "a multiple of ", "> " as all that stands before a number
_ALL_BEFORE_RE = re.compile(
    r"(?i)(?:\W{0,4}(?:it|that|this|they|there|he|she|the\s\w{1,20}|\$?[a-z]\$?|(?:some|any|every|a)\s(?:number|value)"
    r"|anything|something|somewhere)"
    r"(?:\s(?:is|are|was|were|has|have|must be|has to be|can be)|['’]s)?\s?)?"
    r"(?:(?:(?:is|are|was|were|do|does|did|has|have|ca|wo)?n['’]t|not|never|cannot (?:be|equal)"
    r"|anything but"
    r"|(?:all|everything|any number) (?:but|except)|other than|except(?: for)?"
    rf"|(?:strictly\s)?{_COMPARED} than(?: or equal to)?|no {_COMPARED} than"
    r"|at (?:most|least)|up to|(?:a|the)?\s?(?:minimum|maximum) of"
    r"|under|over|above|below|beyond|exceed(?:s|ing)|unknown,? but not"
    r"|either|neither|if|unless|nowhere near"
    r"|(?:an?\s)?(?:multiple|factor|power|divisor|third|quarter|fifth|fraction|part|sum|product"
    r"|reciprocal) of|divisible by|congruent to)\s(?:be\s|exactly\s|equal to\s)?"
    r"|~?\s?[<>≤≥]\s?|\\[gl](?:e|eq|t)\s?|[<>]=\s?)[$*\\(]{0,3}\s?"
)
# "isn't ", "less than " right before a number in a sentence
_DENIED_RE = re.compile(
    r"(?i)(?:\bnot|n['’]t|\bnever|\beither|\bcannot(?= (?:be|equal))|\banything but"
    r"|\bother than|\binstead of"
    rf"|\brather than|\b{_COMPARED} than(?: or equal to)?)\s"
    r"(?:be\s|exactly\s|equal to\s|equal\s|have\s|just\s)?[*$\\(]{0,3}$"
)
# " times as many", "-fold", "+" alone, ")_3", " plus", " BC"
_AFTER_RE = re.compile(
    r"(?i)\s*(?:\+(?!\s?[\w(\\$])|times\b|[-\s]?fold\b|plus\b|(?:squared|cubed|factorial)\b"
    r"|[)\]}]\s?_|['’](?!\w)|\(?\\?p?mod\b|\(?(?:in\s)?base\b|(?-i:B\.?C\.?(?:E\.?)?)(?![a-z]))"
)
_HALF = r"and\s(?:an?\s|one[-\s])?(?:half|third|quarter|fourth|fifth|sixth|eighth|tenth)\b"
_MORE = r"(?:more|less|fewer|above|below|over|under|higher|lower|greater|beyond|later|earlier)"
# " or more", " at most", " is not the answer", " but not quite" after a number and its unit
_TAIL_RE = re.compile(
    rf"(?i)(?:\s|^)(?:or\s{_MORE}\b|and\s(?:up|{_MORE})\W*$|at (?:most|least)\b"
    r"|(?:minimum|maximum|tops)$|(?:is|was)(?:n['’]t|\snot)\b|but not\b"
    r"|from (?:the )?(?:left|right|above|below)\b"
    r"|(?:is|was|seems|looks|would be)\s(?:wrong|incorrect|false|impossible|extraneous|rejected"
    r"|excluded|too\b|out\b)"
    r"|(?:is|was) (?:less|more|greater|fewer) than\b)"
)
# " times as many", "-fold", ")_3", " hours or more", " is not right" in a sentence
_AFTER_IN_SENTENCE_RE = re.compile(
    r"(?i)\s*(?:(times\s(?:as|more|less|larger|bigger|greater|smaller|the (?:size|number)))\b"
    rf"|{_HALF}"
    r"|\^|[-\s]?fold\b|[)\]}]\s?_|\(?(?:in\s)?base\b|(?-i:B\.?C\.?(?:E\.?)?)(?![a-z])"
    rf"|(?:\w{{1,20}}\s){{0,2}}or\s{_MORE}\b"
    r"|(?:is|was)(?:n['’]t|\snot)\s(?:the|right|correct|it)\b|(?:is|was)\s(?:wrong|incorrect|false)\b)"
)
# "1990" of "1990s"
_DECADE_RE = re.compile(r"(?<!\d)(?:1\d|20)\d0s\b|(?<=the )['’]?\d0s\b|(?<=['’])\d0s\b")
# "sin x" after a number
_FUNCTION_RE = re.compile(
    r"\s*(?:sin|cos|tan|cot|sec|csc|log|ln|exp)\s?[\s(\\]\s?(?:[a-z]\b|[\d(\\])"
)
_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]{0,6}\.?"
# "before 1990", "the day after June 5", "until 3 PM": a time beside the one that stands there
_BESIDE_TIME_RE = re.compile(
    r"(?i)(?:[a-z']{1,12}\s){0,4}?(before|after|later than|earlier than|since|until|till|by|late"
    r"|early|mid|prior to)[\s-](?:the\s)?(?:(?:1\d|20)\d\d|\d{1,2}"
    r"(?::\d\d|(?::\d\d)?\s?(?:[ap]\.?m\b\.?"
    rf"|o['’]clock))|{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s\d{{4}})?"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?{_MONTH}(?:\s\d{{4}})?)[\s.]*"
)
# what a question asks for with "at most 12", "12 times"
_BOUND_QUESTION_RE = re.compile(
    r"(?i)\b(?:at (?:most|least)|minimum|maximum|min|max|up to|bound|inequality"
    rf"|{_COMPARED} than)\b"
)
_TIMES_QUESTION_RE = re.compile(r"(?i)\b(?:times|often|ratio|factor|by how)\b")
# "times " or "plus " and " or more" after a number, which a question may ask for
_TIMES_RE = re.compile(r"(?i)\s*(?:times|[-\s]?fold|plus)\b")
_BOUND_AFTER_RE = re.compile(
    rf"(?i)\+|(?:\s|^)(?:or\s{_MORE}\b|and\s(?:up|{_MORE})|at (?:most|least)\b|(?:min|max)imum)"
)
_MAX_CHARACTERS = 80


# "≡ " of "x ≡ 5", "→" of "x → 5", "5-" of "5-10"
_RELATION_BEFORE_RE = re.compile(
    r"(?:[≡→≠≢∈]|\\(?:to|equiv|neq?|in|rightarrow)|\d[-–—])\s?[$*]{0,2}$"
)
# "n+" of "(n+1)!"
_OPERAND_BEFORE_RE = re.compile(r"(?:[A-Za-z)][+*^·]|\b[A-Za-z][-/])$")
_CONGRUENCE_RE = re.compile(r"(?i)\s*(?:[$)]{1,2}\s*)?\(?\\?p?mod\b")
_REMAINDER_QUESTION_RE = re.compile(r"(?i)\bmod|remainder|congruen|limit")
_NUMERAL = rf"(?:{'|'.join(sorted(COUNT_NUMERALS))}|thousand|million)\b"
# "5-10", "1990–1995", "June 5-7", "six to seven", "from 5 to 10 years" as a whole reply
_RANGE_RE = re.compile(
    rf"(?i)(?:from\s|between\s)?(?:{_MONTH}\s)?\d[\d,.]{{0,15}}(?:[-–—]|\s?(?:to|through)\s?)\d[\d,.]{{0,15}}(?:\s[a-z]+){{0,3}}"
    rf"|(?:from\s)?{_NUMERAL}\sto\s{_NUMERAL}(?:\s[a-z]+){{0,3}}"
)
# "does not exist", "undefined", "we reject x = 3": a sentence that states no number
_NO_VALUE_RE = re.compile(
    r"(?i)\b(?:reject|discard|exclude|rule out)\w{0,3}\s\$?[a-z]\s?=\s?[^\s=,]{1,20}[\s.$]*$"
    r"|\b(?:(?:does not|doesn['’]t|do not|don['’]t) exist|undefined)\b"
)
_NUMERAL_RE = re.compile(rf"(?i)(?:a\s)?{_NUMERAL}")


def is_range(text: str) -> bool:
    """Return whether a text is a range: "5-10", "from 5 to 10 years"."""
    return len(text) <= _MAX_CHARACTERS and _RANGE_RE.fullmatch(text) is not None


def denies_existence(sentence: str) -> bool:
    """Return whether a sentence says that there is no value."""
    return _NO_VALUE_RE.search(sentence) is not None


def is_other_value(before: str, after: str, question: str = "") -> bool:
    """Return whether the texts around a number in a sentence deny it or make it another value."""
    if _DENIED_RE.search(before[-40:]):
        return True
    if _RELATION_BEFORE_RE.search(before[-12:]) or _CONGRUENCE_RE.match(after):
        return not _REMAINDER_QUESTION_RE.search(question)
    if _OPERAND_BEFORE_RE.search(before[-12:]):
        return True
    match = _AFTER_IN_SENTENCE_RE.match(after)
    return bool(match and not (match[1] and "times" in question.lower()))


def follows_other_value(after: str) -> bool:
    """Return whether what follows a number makes another value of it: "12 or more"."""
    return bool(
        _AFTER_RE.match(after)
        or _FUNCTION_RE.match(after)
        or _TAIL_RE.search(after[:_MAX_CHARACTERS])
    )


def is_decade(text: str, start: int) -> bool:
    """Return whether a number in a text is a decade: 1990 in "1990s", 90 in "the 90s"."""
    return _DECADE_RE.match(text, start) is not None


def names_decade(text: str) -> bool:
    """Return whether a text names a decade: "it was in the 90s"."""
    return _DECADE_RE.search(text) is not None


def qualified_number(text: str, question: str = "") -> bool:
    """Return whether a short reply is one number with what makes another value of it.

    "At most 12" is 12 where the question asks for a maximum.

    Examples
    --------
    >>> qualified_number("at most 12"), qualified_number("12 eggs")
    (True, False)
    """
    if len(text) > _MAX_CHARACTERS:
        return False
    if beside := _BESIDE_TIME_RE.fullmatch(text):
        return beside[1].lower() not in question.lower()
    bound = _ALL_BEFORE_RE.match(text)
    if bound and _NUMERAL_RE.match(text, bound.end()):
        return not _BOUND_QUESTION_RE.search(question)
    numbers = list(re.finditer(r"\d(?:[\d.,/]*\d)?", text))
    if len(numbers) != 1:
        return False
    before, after = text[: numbers[0].start()], text[numbers[0].end() :]
    if re.search(r"(?i)\bnot|n['’]t|but|except", before) and _ALL_BEFORE_RE.fullmatch(before):
        return True
    if follows_other_value(after):
        if _TIMES_RE.match(after):
            return not _TIMES_QUESTION_RE.search(question)
        return not (_BOUND_AFTER_RE.search(after) and _BOUND_QUESTION_RE.search(question))
    return bool(_ALL_BEFORE_RE.fullmatch(before)) and not _BOUND_QUESTION_RE.search(question)
