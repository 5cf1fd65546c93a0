"""What a reply says at its end, or at its start, that only its question makes an answer.

"There is no two-sided limit" answers a question for a limit, "thus in the eighteenth century" one
for a century, "That's impossible" one that begins with "Can". What is denied, supposed or taken
back is no answer.
"""

from __future__ import annotations

import re

from cotlab.text.answers.closing_formulas import closing_mathematics
from cotlab.text.answers.mathematical_forms import (
    expects_decimal,
    is_unit_vector_sum,
    remainder_of_congruence,
)
from cotlab.text.answers.question import is_yes_no_question, last_question
from cotlab.text.answers.reading import tidy_answer
from cotlab.text.answers.statements import DENIAL_RE, after_conclusion, plain_sentence
from cotlab.text.steps import sentence_spans
from cotlab.text.written_numbers import word_list

_MAX_CHARACTERS = 400
# " for $n \\ge 1$", ", where n ≥ 0" after the formula of a sequence
_INDEX_RE = re.compile(
    r"(?<=[$)\]\w}]),?\s(?:for|where)\s(?:all\s|every\s|each\s|any\s)?\$?[nkm]\s?"
    r"(?:≥|>=?|\\geq?(?:slant)?\b|=)\s?[0-2](?:,\s?[1-3],\s?(?:[2-4],\s?)?(?:\\l?dots|\.{3}|…))?\$?[\s.]{0,4}$"
)
_SEQUENCE_QUESTION_RE = re.compile(
    r"(?i)\b(?:sequence|recurrence|closed form|general term|formula for)\b|\bn-?th\b|\$n\$-?th"
)
_INDEX_QUESTION_RE = re.compile(
    r"(?i)\b(?:which|what|all|values? of|smallest|largest|find) \$?[nkm]\b"
)
_WHO_RE = re.compile(
    r"(?i)\b(?:who|whom|which (?:author|artist|painter|composer|scientist|person))\b"
)
# " in 1813", " on 5 May 1813" at the end of a reply
_YEAR_RE = re.compile(
    r",?\s(?:in|around|about|on)\s(?:the year\s)?(?:[A-Z][a-z]{2,8}\s)?(?:\d{1,2},?\s)?"
    r"(?:[A-Z][a-z]{2,8}\s)?\d{3,4}[\s.*]{0,4}$"
)
_LIMIT_QUESTION_RE = re.compile(r"(?i)\blimit\b|\blim\b|\\lim(?![a-z])")
_ONE_SIDED_RE = re.compile(r"(?i)\b(?:left|right|one)[- ](?:hand|sided)|\^\{?[+-]\}?")
_NO_LIMIT_RE = re.compile(
    r"(?i)(?:\b(?:the|this|that)\s(?:two-sided\s|overall\s|given\s)?limit\s(?:therefore\s|thus\s)?"
    r"does(?:\snot|n['’]t)\sexist|\bthere is no (?:two-sided |overall )?limit)(?:\s\(DNE\))?$"
)
_NEGATION_RE = re.compile(
    r"(?i)\b(?:not|never|false|wrong|untrue|incorrect|if|whether|unless|would|might|could|suppose"
    r"|assum\w+|doubt\w*|nor|neither|claims?|says?|said|thinks?|thought)\b|n['’]t\b"
)
_RATIO_QUESTION_RE = re.compile(r"(?i)\bratio\b")
_RATIO_RE = re.compile(
    r"(?:\b(?:is|are|as|be|equals|gives|becomes|to)|[:=])\s(?:the ratio\s|a ratio of\s)?"
    r"(\d{1,9} to \d{1,9})$"
)
_CENTURY_QUESTION_RE = re.compile(r"(?i)\b(?:which|what) century\b")
_CENTURY_RE = re.compile(
    r"\b(?:in|is|was|to|of|during) the ((?:\d{1,2}(?:st|nd|rd|th)|[a-z]{5,11}(?:-[a-z]{5,7})?)"
    r" century(?: (?:AD|BC|BCE|CE))?)$"
)
# "is called “Biscuit”", "is *mice*" at the end of a sentence
_QUOTED_RE = re.compile(
    r"(?P<subject>[^“”\"«»*\n]{1,120}?)\b(?:is|was|are|were|called|named|titled)\s(?:simply\s|just\s)?"
    r"(?:“(?P<a>[^“”\n]{1,60})”|\"(?P<b>[^\"\n]{1,60})\"|«(?P<c>[^«»\n]{1,60})»|\*(?P<d>[^*\n]{1,60})\*)[\s.!]{0,3}$"
)
_SUBJECTS = frozenset(
    word_list(
        "it he she they this that answer name word title form term spelling so thus therefore hence"
        " the a an its his her their correct"
    )
)
"""What a subject may say beside the terms of the question."""
_EIGENVALUES_QUESTION_RE = re.compile(r"(?i)\beigenvalues\b")
_EIGENVALUE_RE = re.compile(
    r"(?:\\lambda|λ)_?\{?([1-9])\}?\s?=\s?([^=,;]{1,40}?)\s?(?=,|;|\sand\s|$)"
)
# "1101_2 = 13_{10}"
_DECIMAL_RE = re.compile(r"=\s?(\d{1,60}\s?_\{?10\}?)$")
_TRUE_OR_FALSE_RE = re.compile(r"(?i)\btrue or false\b|\btrue/false\b|\(T/F\)")
_STATEMENT_RE = re.compile(
    r"(?i)(?:(?:so|thus|therefore|hence),?\s)?(?:the|this|that)\s(?:given\s|above\s)?"
    r"(?:statement|claim|assertion|proposition)\sis\s(?:therefore\s|thus\s|indeed\s|clearly\s)?"
    r"(?P<not>not\s)?(?:(?P<yes>correct|right|true)|false|wrong|incorrect|untrue)"
)
_TURN_RE = re.compile(
    r"(?i)\b(?:but|however|although|though|unless|except|only|actually|wait|yes|no|true|false|if"
    r"|incorrect|wrong|correct|nevertheless|yet|mistake|still)\b"
)
# "Indeed it is;", "It does not."
_IT_IS_RE = re.compile(
    r"(?i)\W{0,4}(?:(?:indeed|certainly|of course|definitely|clearly),?\s)?"
    r"(?:it|he|she|they|one|there)\s(?P<verb>is|are|was|were|does|do|did|has|have|can|could|will|would|should|must)"
    r"(?P<not>n['’]t|\snot)?(?:\s(?:indeed|certainly|definitely))?\s?(?:[.;:!]|[–—]|$)"
)
_CAN_RE = re.compile(r"(?i)(?:can|could|is it possible)\b")
# "That's impossible:", "This is not possible."
_POSSIBLE_RE = re.compile(
    r"(?i)\W{0,4}(?:that|this|it)(?:['’]s|\sis)\s(?:clearly\s|simply\s|mathematically\s)?"
    r"(?P<not>not\s)?(?P<im>im)?possible\s?(?:[.;:!,]|[–—]|$)"
)
_NOT_IN_QUESTION_RE = re.compile(r"(?i)\b(?:not|never|no|impossible|false|incorrect)\b|n['’]t\b")


def without_details(text: str, question: str) -> str:
    """Return a reply without what a question does not ask for at its end.

    That is "in 1813" where it asks who, and "for n ≥ 1" where it asks for the term of a sequence.
    """
    tail = text[-_MAX_CHARACTERS:]
    last = last_question(question)
    if _WHO_RE.search(last) and not re.search(r"(?i)\b(?:when|years?|dates?)\b", last):
        tail = _YEAR_RE.sub(".", tail)
    if _SEQUENCE_QUESTION_RE.search(question) and not _INDEX_QUESTION_RE.search(question):
        tail = _INDEX_RE.sub("", tail)
    return text[:-_MAX_CHARACTERS] + tail


def closing_by_question(text: str, sentence: str, question: str) -> str | None:
    """Return what a reply states in the words that its question calls for; None for other replies.

    Parameters
    ----------
    text, sentence : str
        The reply and its last sentence.
    question : str
        The question; without one nothing is stated.
    """
    if not question.strip() or len(sentence) > 2 * _MAX_CHARACTERS:
        return None
    if truth := _stated_truth(text, sentence, question):
        return truth
    plain = plain_sentence(sentence)
    for pattern, question_pattern in (
        (_RATIO_RE, _RATIO_QUESTION_RE),
        (_CENTURY_RE, _CENTURY_QUESTION_RE),
    ):
        match = pattern.search(plain) if question_pattern.search(question) else None
        if match and not DENIAL_RE.search(plain) and not re.search(r"\b(?:or|nor)\b", plain):
            return match[1]
    if _LIMIT_QUESTION_RE.search(question) and (match := _NO_LIMIT_RE.search(plain)):
        clause = after_conclusion(plain[: match.start()])
        if not _NEGATION_RE.search(clause) and not _ONE_SIDED_RE.search(question):
            return "does not exist"
    if _EIGENVALUES_QUESTION_RE.search(question) and (values := _eigenvalue_list(plain)):
        return values
    if (match := _DECIMAL_RE.search(plain)) and expects_decimal(question):
        return match[1]
    if remainder := remainder_of_congruence(plain, question):
        return None if DENIAL_RE.search(plain) else remainder
    maths = closing_mathematics(text).rpartition("=")[2]
    if maths and is_unit_vector_sum(maths):
        return tidy_answer(maths)
    return _quoted_name(sentence, question)


def _eigenvalue_list(plain: str) -> str | None:
    """Return "λ_1 = 2, λ_2 = 5" at the end of a sentence; None where one is missing."""
    matches = list(_EIGENVALUE_RE.finditer(plain))
    if len(matches) < 2 or matches[-1].end() < len(plain):
        return None
    before = after_conclusion(plain[: matches[0].start()])
    indices = [match[1] for match in matches]
    if indices != [str(i + 1) for i in range(len(matches))] or DENIAL_RE.search(before):
        return None
    return ", ".join(f"\\lambda_{match[1]} = {match[2]}" for match in matches)


def _quoted_name(sentence: str, question: str) -> str | None:
    """Return the name in quotes that ends a sentence whose subject the question has."""
    match = _QUOTED_RE.fullmatch(sentence.strip().replace("**", "*"))
    if match is None or DENIAL_RE.search(sentence) or is_yes_no_question(question):
        return None
    subject = re.sub(r"\b(?:is|was|are|were)\s?$", "", match["subject"].strip()).lower()
    terms = set(re.findall(r"[a-z]+", question.lower())) | _SUBJECTS
    if not set(re.findall(r"[a-z]+", subject)) <= terms:
        return None
    return tidy_answer(next(match[name] for name in "abcd" if match[name]))


def _stated_truth(text: str, sentence: str, question: str) -> str | None:
    """Return yes, no, true or false of "The statement is correct", "Indeed it is", "Impossible"."""
    spans = sentence_spans(text)
    last = last_question(question).strip()
    if _TRUE_OR_FALSE_RE.search(question):
        for i, statement in enumerate((sentence, text[slice(*spans[0])] if spans else "")):
            match = _STATEMENT_RE.fullmatch(statement.replace("*", "").strip(" .!\n"))
            rest = text.replace(statement, "") if i else ""
            if match and not _TURN_RE.search(rest):
                return "true" if bool(match["yes"]) != bool(match["not"]) else "false"
    if _NOT_IN_QUESTION_RE.search(last) or not is_yes_no_question(question):
        return None
    match = _IT_IS_RE.match(text)
    if (
        match
        and not _TURN_RE.search(text[match.end() :])
        and last.lower().startswith(f"{match['verb'].lower()} ")
    ):
        return "no" if match["not"] else "yes"
    match = _POSSIBLE_RE.match(text) if _CAN_RE.match(last) else None
    if match and not _TURN_RE.search(text[match.end() :]) and not (match["not"] and match["im"]):
        return "no" if match["not"] or match["im"] else "yes"
    return None
