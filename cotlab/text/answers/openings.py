"""A reply that opens with its answer in the words of the question, and goes on with background.

"The capital of Australia is Canberra. Many people assume that it is Sydney." The last sentence,
which closes other replies with their answer, is about something else there.
"""

from __future__ import annotations

import re

from cotlab.text.answers.cues import RETRACTION_PATTERN
from cotlab.text.answers.question_endings import without_details
from cotlab.text.answers.restated import restates_question
from cotlab.text.steps import sentence_spans

_MAX_CHARACTERS, _MAX_SENTENCES = 1500, 6
_CONCLUDES_RE = re.compile(
    rf"(?i)\b(?:so|thus|therefore|hence|then|next|finally|answer|instead|now|total|altogether"
    rf"|correct|option|choice|{RETRACTION_PATTERN})\b|[→⟹]|\btoo (?:big|small|large|high|low)\b"
)
_DOUBT_RE = re.compile(
    r"(?i)\b(?:not|never|no|nor|neither|cannot|if|whether|unless|would|might|could|may|often"
    r"|sometimes|commonly|let|need|find|first,|step|given|consider|know|recall|some|claims?"
    r"|believes?|thinks?|says?)\b|n['’]t\b"
)
# ", who reigned from 1643", ", which is the largest city", ", 28 years after it was built"
_APPENDED_RE = re.compile(
    r",\s(?:who|which|where|when|whose|since|because|though|although|located|born|meaning|named"
    r"|published|written|completed|also known|formerly|home to|based on"
    r"|\d{1,4}\s\w+\s(?:after|before))\b.*$|,\s(?:the|an?)\s[^,.]{3,60}\.?$"
)
# "Sydney is often mistaken for the capital" takes nothing back
_MISTAKEN_FOR_RE = re.compile(r"(?i)\bmistaken for\b")
# " (5,895 m)"
_ASIDE_RE = re.compile(r"\s\([^()\n]{1,60}\)")
_WHEN_RE = re.compile(r"(?i)\b(?:which|what) year\b|\bwhen\b|\bdate\b")


def opening_sentence(text: str, question: str) -> str | None:
    """Return the first sentence of a reply that restates the question; None for other replies.

    Parameters
    ----------
    text : str
        A reply without an answer marker.
    question : str
        The question. A first sentence with a number may repeat what is given, so it counts only
        where the question asks when.

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
    first = _APPENDED_RE.sub(".", _ASIDE_RE.sub("", text[slice(*spans[0])].strip()))
    sentence = without_details(first, question)
    rest = text[spans[0][1] :]
    if is_doubtful(sentence) or "=" in sentence or ":" in sentence:
        return None
    if re.search(r"\d", sentence) and not _WHEN_RE.search(question):
        return None
    if not restates_question(sentence, question) or concludes(rest):
        return None
    if any(restates_question(text[slice(*span)], question) for span in spans[1:]):
        return None
    return sentence


def is_doubtful(sentence: str) -> bool:
    """Return whether a sentence denies, doubts, supposes or cites what it says."""
    return _DOUBT_RE.search(sentence) is not None


def concludes(rest: str) -> bool:
    """Return whether what follows a first sentence draws a conclusion or takes it back."""
    return _CONCLUDES_RE.search(_MISTAKEN_FOR_RE.sub("", rest)) is not None
