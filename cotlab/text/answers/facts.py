"""The answer to a question for a fact, in the sentence that opens a reply.

"**Brazil** (in Rio de Janeiro). It was the first time.", "It was written by Jane Austen and first
published in 1813.", "Neil Armstrong, on 20 July 1969." What follows is background.
"""

from __future__ import annotations

import re

from cotlab.text.answers.emphasis import BOLD_RE, is_about_amount
from cotlab.text.answers.openings import concludes, is_doubtful
from cotlab.text.answers.question import is_yes_no_question, last_question
from cotlab.text.answers.question_endings import WHO_RE
from cotlab.text.answers.reading import answer_key, has_content, tidy_answer
from cotlab.text.answers.restated import question_terms
from cotlab.text.steps import sentence_spans

_MAX_CHARACTERS, _MAX_SENTENCES = 1500, 6
_MAX_QUESTION_CHARACTERS = 300
_MIN_SHARE = 0.75
"""Share of the question's terms that stand beside the answer."""
_QUESTION_RE = re.compile(r"(?i)\b(?:who|whom|which|what|where|when)\b")
_WHEN_RE = re.compile(r"(?i)\b(?:which|what) (?:year|date|day)\b|\bwhen\b")
_NOT_A_FACT_RE = re.compile(r"[=$\\`^+]|\n\s{0,4}\(?[Aa1][).:]\s")
"""Mathematics, code and lists of options."""
# " (in Rio de Janeiro)." after the answer
_ASIDE_RE = re.compile(r"\s?(?:\([^()\n]{1,80}\))?\s?[.!]?\s{0,3}")
_NAME = (
    r"[A-Z][\w.'’-]{0,30}(?:\s(?:(?:de|da|di|del|della|van|von|der|den|of|the|al|ibn|bin|du|la|le)\s"
    r"){0,2}[A-Z][\w.'’-]{0,30}){0,4}"
)
# "by Jane Austen" of "was written by Jane Austen and first published"
_BY_RE = re.compile(rf"\b(?:was|were|is|are|been)\s(?:\w+\s){{1,3}}by\s({_NAME})")
_JOINED_RE = re.compile(r",?\s(?:and|&|with)\s[A-Z]|,\s[A-Z]")
_ANY_BY_RE = re.compile(r"\bby\s[A-Z]")
# "Neil Armstrong, on 20 July 1969"
_OPENING_NAME_RE = re.compile(rf"({_NAME}),\s(?:on|in|during|at|aboard|back)\s")
# "Almaty was the capital until 1997", "Neil Armstrong was the first; Buzz Aldrin was the second"
_TURNS_RE = re.compile(
    r"(?i)[:;]|\b(?:until|former|formerly|previous|previously|earlier|once|originally|historically"
    r"|runner-up|interim|but|while|whereas|although|though|than|so)\b"
)
_VERB_RE = re.compile(r"\b(?:is|are|was|were|had|has|[a-z]+ed|wrote|made|became)\b")
_MAX_TERMS = 6


def opening_fact(text: str, question: str) -> str | None:
    """Return what the first sentence of a reply answers to a question for a fact.

    Parameters
    ----------
    text : str
        A reply without an answer marker.
    question : str
        The question; where it is for an amount, yes or no, mathematics or code, there is no answer.

    Returns
    -------
    str or None
        What alone is in bold, who something was done by, or who opens the sentence; None where the
        sentence doubts or denies, or a later one draws a conclusion.
    """
    last = last_question(question)
    if (
        len(last) > _MAX_QUESTION_CHARACTERS
        or not _QUESTION_RE.search(last)
        or _NOT_A_FACT_RE.search(question)
        or is_about_amount(question)
        or is_yes_no_question(last)
    ):
        return None
    spans = sentence_spans(text) if len(text) <= _MAX_CHARACTERS else []
    if not 1 <= len(spans) <= _MAX_SENTENCES:
        return None
    first, rest = text[slice(*spans[0])].strip(), text[spans[0][1] :]
    if is_doubtful(first) or _TURNS_RE.search(first) or concludes(rest):
        return None
    return _bold_fact(first, text, last) or _named_person(first, last)


def _bold_fact(first: str, text: str, last: str) -> str | None:
    """Return what alone is in bold in a reply, where it opens or ends what the question asks."""
    bold = list(BOLD_RE.finditer(first))
    keys = {answer_key(match[1]) for match in BOLD_RE.finditer(text)}
    if len(bold) != 1 or len(keys) != 1:
        return None
    match, answer = bold[0], tidy_answer(bold[0][1])
    terms = question_terms(last)
    is_new = has_content(answer) and not _is_of_question(answer, terms)
    has_digits = re.search(r"\d", answer) is not None
    if not is_new or len(answer.split()) > _MAX_TERMS or has_digits != bool(_WHEN_RE.search(last)):
        return None
    before, after = first[: match.start()], first[match.end() :]
    if not before.strip(" \t>_-"):
        is_answer = _ASIDE_RE.fullmatch(after) or _restates(after, terms)
    else:
        is_answer = _restates(before, terms)
    return answer if is_answer else None


def _named_person(first: str, last: str) -> str | None:
    """Return who something was done by, or who opens a sentence before a date or a place."""
    if not WHO_RE.search(last):
        return None
    plain = first.replace("*", "")
    terms = question_terms(last)
    by = _BY_RE.search(plain)
    if by and _JOINED_RE.match(plain[by.end() :]):
        return None  # "by Bill Gates and Paul Allen"
    if by and len(_ANY_BY_RE.findall(plain)) == 1:
        return tidy_answer(by[1]) if _restates(plain[: by.start(1)], terms) else None
    opening = _OPENING_NAME_RE.match(plain)
    if opening is None or question_terms(opening[1]) & terms or len(opening[1].split()) < 2:
        return None
    if _VERB_RE.search(plain[opening.end() :]):
        return None  # "Stephen King, in 1977, published the novel"
    return tidy_answer(opening[1])


def _is_of_question(answer: str, terms: frozenset[str]) -> bool:
    answer_terms = question_terms(answer)
    return bool(answer_terms) and answer_terms <= terms


def _restates(text: str, terms: frozenset[str]) -> bool:
    return bool(terms) and len(question_terms(text) & terms) >= _MIN_SHARE * len(terms)
