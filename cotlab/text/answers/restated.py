"""Whether a sentence says what a question asks, in the words of the question."""

from __future__ import annotations

import re

from cotlab.text.answers.question import is_yes_no_question, last_question
from cotlab.text.answers.verbs import verb_base
from cotlab.text.written_numbers import word_list

_MIN_SHARE = 0.75
"""Share of the question's terms that a sentence has which restates it."""
_MIN_SHARE_OF_CHOICE = 0.5
"""The same where the question lists options, one of which the sentence has to be."""
_STOPWORDS = frozenset(
    word_list(
        "the a an is are was were be been do does did has have had of in on at to for by that it"
        " this which what who whom whose when where why how many much long year and or as with"
        " from its his her their you your we following these those there would will can could name"
        " one so therefore thus hence then"
    )
)
_BE_RE = re.compile(r"(?i)\b(?:is|are|was|were)\b")
# "\n(A) Paris\n(B) Rome" at the end of a question
_OPTIONS_RE = re.compile(r"(?s)\n\s{0,4}\(?[Aa1][).:]\s.*")
_TOKEN_RE = re.compile(r"[^\W\d_]{2,}")


def restates_question(sentence: str, question: str) -> bool:
    """Return whether a sentence has the terms of a question on one side of its verb.

    What is new then stands on the other side: "The capital of Australia | is Canberra", "Thailand
    is | what was called Siam". Of "The symbol for silver is Ag" both sides have something new
    beside a question for gold. A question for yes or no is restated by neither answer.
    """
    stem = _OPTIONS_RE.sub("", question)
    last = last_question(stem)
    terms = question_terms(last)
    if not terms or is_yes_no_question(last):
        return False
    share = _MIN_SHARE if stem == question else _MIN_SHARE_OF_CHOICE
    if len(terms & question_terms(sentence)) < max(1, share * len(terms)):
        return False
    verb = _BE_RE.search(sentence)
    if verb is not None:
        sides = sentence[: verb.start()], sentence[verb.end() :]
        return any(question_terms(side) <= terms for side in sides)
    tokens = [verb_base(token) in terms for token in _content_tokens(sentence)]
    return tokens == sorted(tokens, reverse=True)  # those of the question come first


def question_terms(text: str) -> frozenset[str]:
    """Return the content words of a question or a sentence, verbs without their endings."""
    return frozenset(map(verb_base, _content_tokens(text)))


def _content_tokens(text: str) -> list[str]:
    return [token for token in _TOKEN_RE.findall(text.lower()) if token not in _STOPWORDS]
