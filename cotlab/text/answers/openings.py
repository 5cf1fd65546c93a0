"""A reply that opens with its answer in the words of the question, and goes on with background.

"The capital of Australia is Canberra. Many people assume that it is Sydney." The last sentence,
which closes other replies with their answer, is about something else there.
"""

from __future__ import annotations

import re

from cotlab.text.answers.emphasis import is_about_amount
from cotlab.text.answers.question import last_question
from cotlab.text.answers.verbs import verb_base
from cotlab.text.steps import sentence_spans
from cotlab.text.written_numbers import word_list

_MAX_CHARACTERS, _MAX_SENTENCES = 1500, 6
_MIN_SHARE = 0.5
"""Share of the question's terms that a sentence has which restates it."""
_STOPWORDS = frozenset(
    word_list(
        "the a an is are was were be been do does did has have had of in on at to for by that it"
        " this which what who whom whose when where why how many much long year and or as with from"
        " its his her their you your we following these those there would will can could name"
    )
)
_CONCLUDES_RE = re.compile(
    r"(?i)\b(?:so|thus|therefore|hence|then|next|finally|answer|however|actually|wait|instead|now"
    r"|left|total|altogether|correct|option|choice)\b|[→⟹]"
)
_DOUBT_RE = re.compile(
    r"(?i)\b(?:not|never|no|nor|neither|cannot|if|whether|unless|would|might|could|may|often"
    r"|sometimes|commonly|let|need|find|first,|step|given|consider|know|recall)\b|n['’]t\b"
)
# ", who reigned from 1643", ", which is the largest city", ", 28 years after it was built"
_APPENDED_RE = re.compile(
    r",\s(?:who|which|where|when|whose|since|because|though|although|located|born|meaning|named"
    r"|published|written|completed|also known|formerly|home to|based on"
    r"|\d{1,4}\s\w+\s(?:after|before))\b.*$|,\s(?:the|an?)\s[^,.]{3,60}\.?$"
)
# "\n(A) Paris\n(B) Rome" at the end of a question
_OPTIONS_RE = re.compile(r"(?s)\n\s{0,4}\(?[Aa1][).:]\s.*")
_NUMBER_RE = re.compile(r"\d+(?:[.,]\d+)*")


def opening_sentence(text: str, question: str) -> str | None:
    """Return the first sentence of a reply that restates the question; None for other replies.

    Parameters
    ----------
    text : str
        A reply without an answer marker.
    question : str
        The question. One for an amount needs the same number in a sentence after it, as a check
        has it: the first sentence of a computation restates what is given.

    Returns
    -------
    str or None
        The sentence up to the clause that adds to it.
    """
    if not question.strip() or len(text) > _MAX_CHARACTERS:
        return None
    spans = sentence_spans(text)
    if not 2 <= len(spans) <= _MAX_SENTENCES:
        return None
    first, rest = text[slice(*spans[0])], text[spans[0][1] :]
    sentence = _APPENDED_RE.sub(".", first.strip())
    question_terms = _terms(last_question(_OPTIONS_RE.sub("", question)))
    if _DOUBT_RE.search(sentence) or "=" in sentence or ":" in sentence:
        return None
    if not _restates(sentence, question_terms) or _CONCLUDES_RE.search(rest):
        return None
    if is_about_amount(question):
        if not question_terms <= _terms(sentence):
            return None  # it may be given of somebody else
        numbers = _NUMBER_RE.findall(sentence)
        is_checked = len(numbers) == 1 and numbers[0] in _NUMBER_RE.findall(rest) and "=" in rest
        return sentence if is_checked else None
    if any(_restates(text[slice(*span)], question_terms) for span in spans[1:]):
        return None
    return sentence


def _restates(sentence: str, question_terms: frozenset[str]) -> bool:
    return len(question_terms & _terms(sentence)) >= max(1, _MIN_SHARE * len(question_terms))


def _terms(text: str) -> frozenset[str]:
    tokens = re.findall(r"[^\W\d_]{2,}", text.lower())
    return frozenset(verb_base(token) for token in tokens if token not in _STOPWORDS)
