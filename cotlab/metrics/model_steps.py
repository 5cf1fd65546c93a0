"""The steps of a chain that a model wrote itself, and what may be read where it was cut off."""

from __future__ import annotations

import re

from cotlab.core.reasoning import own_text, read_reasoning
from cotlab.core.requests import Response
from cotlab.text.answers.extract import final_answer
from cotlab.text.answers.markers import stated_answer_text
from cotlab.text.steps import split_steps, step_spans

CUT_STEPS_NOTE = "The fragment in which a chain that was cut off ends is no step."
"""On the cards of scorers that read the steps of a chain."""
CUT_CHAIN_NOTE = "Also where the model's own chain was cut off before its answer."
"""On the cards of scorers that need the whole chain."""
_ANSWER_LINE_PATTERN = re.compile(  # "So the final answer is 9.", "Step 3: Conclusion: 9", "#### 9"
    r"(?i)\W*(?:step\s+\d+\W+)?(?:(?:so|thus|therefore|hence|finally|in"
    r" conclusion)\b\W*)?(?:(?:the|my|our)\s+)?"
    r"(?:(?:(?:final|correct|right)\s+)?(?:answer|conclusion|result)\b|boxed\b|(?:A|Ans)\s?:)|\s*####"
)


def model_reply_steps(reply: Response) -> tuple[str, ...]:
    """Return the steps of a model: its reasoning where the vendor gives it, else its reply.

    With the fragment in which a reply that was cut off ends: to show what the model wrote.
    """
    return model_steps(reply.reasoning or "") or model_steps(reply.text or "")


def complete_steps(reply: Response) -> tuple[str, ...]:
    """Return `model_reply_steps` without the fragment in which a reply that was cut off ends."""
    if reply.finish != "length":
        return model_reply_steps(reply)
    text = reply.text or ""
    # where a text follows, the reasoning came to its end
    read_steps = model_steps if own_text(text).strip() else steps_before_cut
    read_text = model_steps if has_whole_chain(text) else steps_before_cut
    return read_steps(reply.reasoning or "") or read_text(text)


def is_chain_cut_off(reply: Response) -> bool:
    """Whether a reply was cut off before the end of its chain and its answer."""
    text = reply.text or ""
    has_whole_reasoning = has_whole_chain(text) or (
        own_text(text).strip() and model_steps(reply.reasoning or "")
    )
    return not has_whole_reasoning and is_cut_off(reply, text)


def has_whole_chain(text: str) -> bool:
    """Whether a reply's text holds a chain between delimiters that came to its end."""
    reasoning = read_reasoning(text)
    return bool(reasoning.spans) and not reasoning.is_open


def model_steps(text: str) -> tuple[str, ...]:
    """Return the steps of a chain that a model wrote, without a last line that only answers."""
    return _without_answer_line(split_steps(text), text)


def steps_before_cut(text: str) -> tuple[str, ...]:
    """Return the steps of a text that was cut off, without the one in which it ends."""
    spans = step_spans(text)
    if not spans:
        return ()
    *steps, fragment = (text[start:end] for start, end in spans)
    if _ANSWER_LINE_PATTERN.match(fragment):
        return tuple(steps)
    return _without_answer_line(tuple(steps), text[: spans[-1][0]])


def _without_answer_line(steps: tuple[str, ...], text: str) -> tuple[str, ...]:
    if not steps or not (
        _ANSWER_LINE_PATTERN.match(steps[-1])
        or (len(steps[-1].split()) <= 3 and "=" not in steps[-1])
    ):
        return steps
    return steps[:-1] if final_answer(steps[-1]) == final_answer(text) else steps


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
