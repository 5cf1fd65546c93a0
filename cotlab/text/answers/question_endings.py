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
from cotlab.text.answers.question import (
    EIGENVALUES_QUESTION_RE,
    LIMIT_QUESTION_RE,
    is_yes_no_question,
    last_question,
)
from cotlab.text.answers.reading import tidy_answer
from cotlab.text.answers.statements import DENIAL_RE, after_conclusion, plain_sentence
from cotlab.text.steps import sentence_spans
from cotlab.text.written_numbers import ORDINAL_PATTERN, read_ordinal, word_list

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
WHO_RE = re.compile(
    r"(?i)\b(?:who|whom|which (?:author|artist|painter|composer|scientist|person|inventor|king"
    r"|queen|president|writer|poet|explorer|physicist|chemist|mathematician|astronomer))\b"
)
# " in 1813", " on 5 May 1813" at the end of a reply
_YEAR_RE = re.compile(
    r",?\s(?:in|around|about|on)\s(?:the year\s)?(?:[A-Z][a-z]{2,8}\s)?(?:\d{1,2},?\s)?"
    r"(?:[A-Z][a-z]{2,8}\s)?\d{3,4}[\s.*]{0,4}$"
    r"|\sin the (?:early |late |mid-)?\d{1,2}(?:st|nd|rd|th) century[\s.*]{0,4}$"
)
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
    r"(?:\b(?:is|are|as|be|equals|gives|becomes|to|ratio|ratio of)|[:=])\s"
    r"(\d{1,9} to \d{1,9})$"
)
# "2 cats to every 5 dogs"
_TO_EVERY_RE = re.compile(
    r"\b(\d{1,9}) ([a-z]{3,15}) (?:to|for) (?:every )?(\d{1,9}) ([a-z]{3,15})$"
)
_RATIO_OF_RE = re.compile(
    r"(?i)\bratio of (?:the )?(?:number of )?([a-z]{3,15}) to (?:the )?(?:number of )?"
    r"([a-z]{3,15})\b"
)
_CENTURY_QUESTION_RE = re.compile(r"(?i)\b(?:which|what) century\b")
_CENTURY_RE = re.compile(
    r"\b(?:in|is|was|to|of|during|from|so|thus|hence|i\.e\.) the"
    r" ((?:\d{1,2}(?:st|nd|rd|th)|[a-z]{5,11}(?:-[a-z]{5,7})?)"
    r" century(?: (?:BC|BCE))?)(?: AD| CE)?$"
)
_ORDINAL = rf"(?:\d{{1,3}}(?:st|nd|rd|th)|{ORDINAL_PATTERN})"
_ORDINAL_RE = re.compile(rf"(?i)\b{_ORDINAL}\b")
# "In which place", "on what floor"
_RANK_QUESTION_RE = re.compile(
    r"(?i)\b(?:what|which) (place|position|rank|floor|grade|row|day|lane)\b"
)
_FRACTION_RE = re.compile(r"(?i)(?:one|an?|\d+|two|three|four|five|\w*[-/])")
# "ahead of the " before an ordinal
_BESIDE_RE = re.compile(r"(?i)\b(?:of|than|before|after|behind|above|below|under|over) (?:the )?$")
_COMPASS = r"(?:north|south)[- ]?(?:east|west)|north|south|east|west"
_DIRECTION_RE = re.compile(rf"(?i)\b(?:{_COMPASS})(?:ern|erly|wards?)?\b")
_DIRECTION_QUESTION_RE = re.compile(
    r"(?i)\b(?:(?:which|what|in which|in what) direction|which way|what (?:is|was) the direction)\b"
)
# "is called “Biscuit”", "is *mice*" at the end of a sentence
_QUOTED_RE = re.compile(
    r"(?P<subject>[^“”\"«»*\n]{1,120}?)\b(?:is|was|are|were|called|named|titled|gives|yields|spells)\s(?:simply\s|just\s)?"
    r"(?:“(?P<a>[^“”\n]{1,60})”|\"(?P<b>[^\"\n]{1,60})\"|«(?P<c>[^«»\n]{1,60})»|\*(?P<d>[^*\n]{1,60})\*|'(?P<e>[^'\n]{1,60})')[\s.!]{0,3}$"
)
_SUBJECTS = frozenset(
    word_list(
        "it he she they this that answer name word title form term spelling so thus therefore hence"
        " the a an its his her their correct"
    )
)
"""What a subject may say beside the terms of the question."""
_EIGENVALUE_RE = re.compile(
    r"(?:\\lambda|λ)_?\{?([1-9])\}?\s?=\s?([^=,;]{1,40}?)\s?(?=,|;|\sand\s|$)"
)
# "1101_2 = 13_{10}"
_DECIMAL_RE = re.compile(r"=\s?(\d{1,60}\s?_\{?10\}?)$")
_TRUE_OR_FALSE_RE = re.compile(r"(?i)\btrue or false\b|\btrue/false\b|\(T/F\)")
_STATEMENT_RE = re.compile(
    r"(?i)(?:(?:so|thus|therefore|hence),?\s)?(?:(?:the|this|that)\s(?:given\s|above\s)?"
    r"(?:statement|claim|assertion|proposition)\sis|(?:that|this|it)(?:['’]s|\sis))\s"
    r"(?:therefore\s|thus\s|indeed\s|clearly\s)?(?P<not>not\s)?"
    r"(?:(?P<yes>correct|right|true)|false|wrong|incorrect|untrue)"
    r"(?P<rest>(?:,?\s(?:because|since|as)\s|[;:]\s)[^\n]{1,300})?"
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
    if WHO_RE.search(last) and not re.search(r"(?i)\b(?:when|years?|dates?)\b", last):
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
    if not DENIAL_RE.search(plain) and not re.search(r"\b(?:or|nor)\b", plain):
        for rule in (_ratio, _century, _rank, _direction):
            if stated := rule(plain, question):
                return stated
    if LIMIT_QUESTION_RE.search(question) and (match := _NO_LIMIT_RE.search(plain)):
        clause = after_conclusion(plain[: match.start()])
        if not _NEGATION_RE.search(clause) and not _ONE_SIDED_RE.search(question):
            return "does not exist"
    if EIGENVALUES_QUESTION_RE.search(question) and (values := _eigenvalue_list(plain)):
        return values
    if (match := _DECIMAL_RE.search(plain)) and expects_decimal(question):
        return match[1]
    if remainder := remainder_of_congruence(plain, question):
        return None if DENIAL_RE.search(plain) else remainder
    maths = closing_mathematics(text).rpartition("=")[2]
    if maths and is_unit_vector_sum(maths):
        return tidy_answer(maths)
    return _quoted_name(sentence, question)


def _ratio(plain: str, question: str) -> str | None:
    """Return "3 to 4" at the end of a sentence, in the order that a question has."""
    if not _RATIO_QUESTION_RE.search(question):
        return None
    nouns = [noun.lower().rstrip("s") for noun in (_RATIO_OF_RE.findall(question) or [()])[-1]]
    if (match := _TO_EVERY_RE.search(plain)) and nouns:
        pair = [match[2].lower().rstrip("s"), match[4].lower().rstrip("s")]
        values = (match[1], match[3]) if pair == nouns else (match[3], match[1])
        return f"{values[0]}:{values[1]}" if sorted(pair) == sorted(nouns) else None
    match = _RATIO_RE.search(plain)
    if match is None:
        return None
    positions = [plain[: match.start(1)].lower().rfind(noun) for noun in nouns]
    is_reversed = len(positions) == 2 and -1 not in positions and positions[0] > positions[1]
    return None if is_reversed else match[1]


def _century(plain: str, question: str) -> str | None:
    """Return "eighteenth century" at the end of a sentence that names one."""
    match = _CENTURY_RE.search(plain) if _CENTURY_QUESTION_RE.search(question) else None
    is_only = match and not _ORDINAL_RE.search(plain[: match.start(1)])
    return match[1] if match and is_only else None


def _rank(plain: str, question: str) -> str | None:
    """Return "third" of "She finished third" where a question asks "In which place"."""
    nouns = _RANK_QUESTION_RE.findall(question[-_MAX_CHARACTERS:])
    if not nouns:
        return None
    match = re.search(rf"(?i)(\S+)\s({_ORDINAL})(?:\s{re.escape(nouns[-1])})?$", plain)
    if match is None or read_ordinal(match[2]) is None or _FRACTION_RE.fullmatch(match[1]):
        return None
    before = plain[: match.start(2)]
    return None if _ORDINAL_RE.search(before) or _BESIDE_RE.search(before) else match[2]


def _direction(plain: str, question: str) -> str | None:
    """Return the one direction of a sentence, at its end, where a question asks for one."""
    if not _DIRECTION_QUESTION_RE.search(question[-_MAX_CHARACTERS:]):
        return None
    directions = _DIRECTION_RE.findall(plain)
    match = re.search(rf"(?:(?<!\S)(\S+)\s)?(?:the\s)?({_COMPASS})$", plain, re.IGNORECASE)
    if match is None or len(directions) != 1 or (match[1] or "").lower() in ("from", "of"):
        return None
    return match[2]


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
    subject = re.sub(r"\b(?:is|was|are|were)\s?$|['’]s\b", "", match["subject"].strip()).lower()
    terms = set(re.findall(r"[a-z]+", question.lower())) | _SUBJECTS
    if not set(re.findall(r"[a-z]+", subject)) <= terms:
        return None
    return tidy_answer(next(match[name] for name in "abcde" if match[name]))


def _stated_truth(text: str, sentence: str, question: str) -> str | None:
    """Return yes, no, true or false of "The statement is correct", "Indeed it is", "Impossible"."""
    spans = sentence_spans(text)
    last = last_question(question).strip()
    if _TRUE_OR_FALSE_RE.search(question):
        for i, statement in enumerate((sentence, text[slice(*spans[0])] if spans else "")):
            match = _STATEMENT_RE.fullmatch(statement.replace("*", "").strip(" .!\n"))
            rest = text.replace(statement, "") if i else ""
            rest += (match["rest"] or "") if match else ""
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
