"""What may be read from a reply that was cut off at its largest number of tokens."""

from __future__ import annotations

from cotlab.core.reasoning import own_text
from cotlab.core.requests import Response
from cotlab.text.answers.markers import stated_answer_text


def is_cut_off(reply: Response, text: str) -> bool:
    """Whether a reply was cut off before it stated an answer."""
    return ends_early(reply, text) and not stated_answer_text(text)


def ends_early(reply: Response, text: str) -> bool:
    """Whether ``text``, the reply or its first line, ends where the reply was cut off."""
    return reply.finish == "length" and text.endswith(own_text(reply.text or ""))


def readable_text(reply: Response, text: str) -> str:
    """Return the part of a reply that its answer is read from; every scorer reads it from there.

    All of ``text``, which is the reply or what it says after the cue. Of one that was cut off only
    up to the sentence that states the answer, empty where none does: the last number of a chain
    that did not end is no answer.
    """
    return stated_answer_text(text) if ends_early(reply, text) else text
