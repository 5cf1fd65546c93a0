"""Days, properties and names that the last sentence of a reply states: "It will be a Tuesday"."""

from __future__ import annotations

import re

from cotlab.text.answers.dates import find_dates
from cotlab.text.answers.question import is_yes_no_question, last_question, yes_or_no
from cotlab.text.answers.reading import YES_NO_RE
from cotlab.text.answers.statements import COPULA_RE, DENIAL_RE, after_conclusion, plain_sentence
from cotlab.text.written_numbers import word_list

_OPINION_RE = re.compile(
    r"(?i)(?<!\bi\s)(?<!\bwe\s)\b(?:thinks?|believes?|says?|said|claims?|claimed|thought)\b"
)
_DAYS = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
# "It will be a Tuesday", "that day falls on a Sunday"
_DAY_RE = re.compile(
    r"(?:^|[\s,])(?:[Ii]t|[Tt]hat|[Tt]his|[Tt]oday|[Tt]omorrow|(?:[Tt]he|[Hh]er|[Hh]is|[Tt]heir)\s"
    r"(?:[\w']+\s){0,6}?(?:day|date|birthday|party|meeting|month|Christmas|one|weekday)"
    rf"|(?:{_MONTHS})\s\d{{1,2}}(?:,?\s\d{{4}})?)(?:\s[a-z]+){{0,3}}?"
    r"(?:['’]s|\s(?:is|be|was|falls|fell|lands))\s(?:(?:on|in|a|an|therefore|thus)\s){0,2}"
    rf"({_DAYS}|{_MONTHS})$"
)
# "bring us to " before the date that a sentence ends with
_ARRIVES_RE = re.compile(
    r"(?i)\b(?:(?:brings?|takes?|gets?|leads?|carr(?:y|ies)|moves?) (?:us|you|one|it|me)"
    r" (?:forward |on |up )?to|(?:we|you) (?:reach|arrive at|get to|land on|come to)"
    r"|lands? on|leads? to)\s(?:the\s)?$"
)
_DATE_QUESTION_RE = re.compile(r"(?i)\b(?:which|what)(?:\sis\sthe|\scalendar)?\sdate\b")
_DAY_QUESTION_RE = re.compile(r"(?i)\b(?:which|what) (?:day|weekday|month)\b")
_ADJECTIVES = (
    "even|odd|increasing|decreasing|convergent|divergent|rational|irrational|continuous"
    "|discontinuous|prime|composite|injective|surjective|bijective|linear|quadratic|cubic"
    "|isosceles|equilateral|scalene|acute|obtuse|symmetric|reflexive|transitive|consistent"
    "|inconsistent|dependent|independent|geometric|arithmetic"
)
# "is an even function", "is an irrational number"
_PROPERTY_RE = re.compile(
    rf"(?i)\b(?:is|are)\s(?:an?\s)?({_ADJECTIVES})"
    r"(?:\s(?:function|number|triangle|series|integer|system|equation|matrix|relation|events?"
    r"|sequence|progression|integral|set|variables?|polynomial|map))?s?$"
)
# "is an ellipse", "is called Maria", "was Marie Curie"
_PREDICATE_RE = re.compile(
    r"(?i:\b(?:is|was|are|be|called|named))\s(?:(?:therefore|thus|then|clearly|called|named)\s)?"
    r"(?:(?P<article>an?|the)\s)?(?P<words>[A-Za-z][\w'’.-]*(?:\s[A-Za-z][\w'’.-]*){0,3})$"
)
# "Lake Baikal" of "Lake Baikal is the deepest lake"
_SUBJECT_RE = re.compile(
    r"^(?:(?:So|Thus|Hence|Therefore),?\s)?((?!It\b|That\b|This\b|The\b|These\b|There\b|So\b|He\b"
    r"|She\b|They\b|We\b|You\b|I\b|Its\b|His\b|Her\b|My\b|Our\b)"
    r"[A-Z][\w'’.-]{1,20}(?:\s(?:(?:of|de|van|da)\s)?[A-Z][\w'’.-]{0,20}){0,3})"
    r"\s(?:is|was)\s(?:therefore\s)?the\s[a-z][^,;:=\d]{2,60}$"
)
# "Jane Austen" of "It was written by Jane Austen"
_AGENT_RE = re.compile(
    r"\b(?:was|is|were|are)\s(?:first\s|originally\s)?[a-z]{3,14}\sby\s"
    r"([A-Z][\w'’.-]{0,20}(?:\s(?:(?:of|de|van|da)\s)?[A-Z][\w'’.-]{0,20}){0,3})$"
)
_VAGUE = frozenset(
    word_list(
        "answer solution result value number one it true false correct incorrect right wrong yes no"
        " same different possible impossible following unique clear given finite infinite empty"
        " undefined unknown zero none many few enough complete done proof left"
    )
)
_PRONOUN_RE = re.compile(r"(?i)\b(?:i|we|you|he|she|they|one|some|there|which|who|that)\s\w+$")


_YES_NO_WORD_RE = re.compile(r"(?i)\b(?:yes|no|true|false)\b")


_LIMIT_NOUNS = r"(?:series|sequence|integral|product|sum|limit)"
# "The harmonic series diverges"
_CONVERGES_RE = re.compile(r"(?:[A-Z]\w* ){1,3}(?:\w+ ){0,3}(?P<verb>converges|diverges)")
# ", so the series diverges", "By comparison, the series diverges" at the end of a sentence
_SO_CONVERGES_RE = re.compile(
    rf"(?i)(?P<so>\b(?:so|thus|therefore|hence),?\s|^|,\s)(?:it|(?:the|this|our)\s(?:(?:given|whole|original"
    rf"|improper|infinite)\s)?{_LIMIT_NOUNS})\s(?:must\s)?(?P<verb>converges?|diverges?)$"
)
_SUPPOSED_RE = re.compile(r"(?i)\b(?:if|whether|unless|would|might|could|suppose\w*|assum\w+)\b")
_CONVERGENCE_QUESTION_RE = re.compile(
    r"(?i)(?:^|[.?!:,]\s|\n)(?:does|do|will|is|are)\s([^?!\n]{2,200}?)\b(con|di)verge(?:nt)?\s?\?\s*$"
)
_QUALIFIED_RE = re.compile(
    r"(?i)\b(?:or|not|if|absolutely|conditionally|uniformly|pointwise|only|both|neither|either"
    r"|whether|where|when|which|radius|and)\b|n['’]t\b"
)
# "diverges", "it is divergent"
_BEHAVIOUR_RE = re.compile(
    rf"(?i)(?:(?:it|(?:the|this)\s{_LIMIT_NOUNS})\s)?(?:is\s)?(con|di)verge(?:s|nt)?"
)


def convergence_as_yes_or_no(text: str, other: str, question: str) -> str:
    """Return "no" for "diverges" beside yes or no where a question asks "Does it converge?"."""
    stated = _BEHAVIOUR_RE.fullmatch(text.strip(" .*$_"))
    question_match = _CONVERGENCE_QUESTION_RE.search(question) if stated else None
    if stated is None or question_match is None or _QUALIFIED_RE.search(question_match[1]):
        return text
    if not _YES_NO_WORD_RE.fullmatch(other.strip(" .*$_")):
        return text
    return "yes" if stated[1].lower() == question_match[2].lower() else "no"


def closing_behaviour(sentence: str, question: str) -> str | None:
    """Return "converges" or "diverges" of the end of a sentence, where a question asks for it."""
    if not _CONVERGENCE_QUESTION_RE.search(question):
        return None
    return _stated_behaviour(plain_sentence(sentence), question)


def _stated_behaviour(plain: str, question: str) -> str | None:
    """Return the verb of ", so the series diverges"; None of another noun than the question's."""
    match = _SO_CONVERGES_RE.search(plain) or _CONVERGES_RE.fullmatch(plain)
    if match is None or _SUPPOSED_RE.search(plain):
        return None
    is_concluded = len(match.groupdict().get("so") or "") > 2
    nouns = set(re.findall(_LIMIT_NOUNS, question))
    if nouns and set(re.findall(_LIMIT_NOUNS, match[0])) - nouns:
        return None
    return match["verb"] if is_concluded or not DENIAL_RE.search(plain) else None


def opening_yes_or_no(text: str, question: str) -> str | None:
    """Return the only yes or no of a reply, at its start, where the question asks for one."""
    match = YES_NO_RE.match(text) if is_yes_no_question(question) else None
    return match[1] if match and len(_YES_NO_WORD_RE.findall(text)) == 1 else None


def repeated_verb(sentence: str, question: str) -> str | None:
    """Return yes or no where a sentence repeats the verb of the question, its last sentence."""
    return yes_or_no(sentence, question) if is_yes_no_question(question) else None


def closing_day(sentence: str, question: str) -> str | None:
    """Return the day of the week or the month that a sentence ends by stating.

    Where the question asks for a day or a month, "They meet on Friday" states it.
    """
    plain = plain_sentence(sentence[-400:])
    if _DATE_QUESTION_RE.search(last_question(question)) and not (
        DENIAL_RE.search(plain.replace("May", ""))
    ):
        dates = list(find_dates(plain))
        if dates and dates[-1][1] == len(plain) and _ARRIVES_RE.search(plain[: dates[-1][0]]):
            return plain[slice(*dates[-1])]
    if _DAY_QUESTION_RE.search(question[-200:]) and not DENIAL_RE.search(plain):
        days = re.findall(rf"\b(?:{_DAYS}|{_MONTHS})\b", plain)
        ending = re.search(rf"\b(?:on|in)\s(?:an?\s)?({_DAYS}|{_MONTHS})$", plain)
        if ending and len(days) == 1:
            return ending[1]
    if DENIAL_RE.search(plain) or len(re.findall(rf"\b(?:{_DAYS})\b", plain)) > 1:
        return None
    match = _DAY_RE.search(plain)
    return match[1] if match else None


def closing_word(sentence: str, question: str = "") -> str | None:
    """Return the day, property, name or noun that a sentence ends by stating."""
    plain = re.sub(r"\s\([^()\d]{1,40}\)$", "", plain_sentence(sentence))
    if _CONVERGES_RE.fullmatch(plain) or _SO_CONVERGES_RE.search(plain):
        return _stated_behaviour(plain, question)
    if not plain or len(plain) > 200 or "?" in sentence:
        return None
    concluded = _SUBJECT_RE.search(after_conclusion(plain).strip())  # "so Ann is the tallest"
    if concluded and not _VAGUE & {word.lower() for word in concluded[1].split()}:
        return None if DENIAL_RE.search(concluded[0]) else concluded[1]
    if DENIAL_RE.search(plain):
        return None
    if match := _PROPERTY_RE.search(plain):
        others = re.findall(rf"\b(?:{_ADJECTIVES})\b", plain[: match.start()])
        return None if others or re.search(r"(?i)\b(?:or|and)\b", plain) else match[1]
    for pattern in (_SUBJECT_RE, _AGENT_RE):
        named = pattern.search(plain)
        if named and not _VAGUE & {word.lower() for word in named[1].split()}:
            return named[1]
    match = _PREDICATE_RE.search(plain)
    if (
        match is None
        or _OPINION_RE.search(plain)
        or re.search(r"\d", match[0])
        or _PRONOUN_RE.search(plain[: match.start()])
    ):
        return None
    tokens = match["words"].split()
    if len(tokens) > 1 and tokens[0] in ("in", "on", "at") and tokens[1][0].isupper():
        tokens = tokens[1:]  # "in March"
    subject = plain[: match.start()]
    if COPULA_RE.search(after_conclusion(subject)) or not re.search(r"[A-Za-z]{3,}", subject):
        return None
    if _VAGUE & {token.lower() for token in tokens} or tokens[-1].lower().endswith("ly"):
        return None
    is_name = all(token[0].isupper() or token in ("of", "the", "de", "van") for token in tokens)
    is_noun = bool(match["article"]) and len(tokens) <= 2 and len(subject.split()) <= 8
    is_short = len(plain.split()) <= 6 and len(tokens) <= 2
    return " ".join(tokens) if is_name or is_noun or is_short else None
