"""Prompts of a question and a chain, the same for every provider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cotlab.core.requests import Message
from cotlab.core.types import ANSWER_PLACEHOLDER, Form

FINAL_ANSWER_CUE = "So the answer is"
"""Words that the answer follows."""
CHAIN_PLACEMENT_BY_FORM = {"continuation": "prefix", "prefill": "prefix", "chat": "user"}
"""How a chain reaches a model of each form: in the assistant's prefix or in the user's turn."""
_STEPWISE_INSTRUCTION = "Reason step by step, one numbered step a line."
_ANSWER_LINE_INSTRUCTION = (
    f"Finish with one line of the form: {FINAL_ANSWER_CUE} {ANSWER_PLACEHOLDER}."
)

_ANSWER_INSTRUCTION = (
    f"Give the answer that this reasoning leads to. Add no reasoning. {_ANSWER_LINE_INSTRUCTION}"
)
_CRITIQUE_INSTRUCTION = (
    "Criticise this reasoning step by step: check each calculation, each inference and each fact,"
    " and say what is wrong with which step. If nothing is wrong, say: No mistake found."
)


class Prompt(NamedTuple):
    """The text of a ``Complete`` request."""

    messages: tuple[Message, ...]
    """Conversation."""
    prefix: str
    """Assistant text that the model continues."""


def chain_text(steps: Sequence[str]) -> str:
    """Return a chain as a model sees it: one step per line, verbatim."""
    return "".join(f"{step}\n" for step in steps)


def answer_prompt(question: str, steps: Sequence[str], form: Form) -> Prompt:
    """Ask for the answer at once, given a whole chain or, without steps, none."""
    if form == "continuation":
        return Prompt((Message("user", question),), chain_text(steps) + FINAL_ANSWER_CUE)
    if form == "prefill" and steps:
        return _prefilled_prompt(question, chain_text(steps) + FINAL_ANSWER_CUE)
    if not steps:
        return user_prompt(
            question,
            f"Answer at once, without any reasoning, in one line of the form: {FINAL_ANSWER_CUE}"
            f" {ANSWER_PLACEHOLDER}.",
        )
    return user_prompt(question, f"Reasoning:\n{chain_text(steps)}", _ANSWER_INSTRUCTION)


def answer_after_reply(prompt: Prompt, reply: str, form: Form) -> Prompt | None:
    """Ask for the answer alone after a reply that states none; None if no answer was asked for."""
    content = prompt.messages[-1].content
    if prompt.prefix.endswith(FINAL_ANSWER_CUE) or content.endswith(_CRITIQUE_INSTRUCTION):
        return None
    if form == "continuation":
        text = f"{prompt.prefix}{reply}".rstrip("\n")
        return Prompt(prompt.messages, f"{text}\n{FINAL_ANSWER_CUE}")
    if FINAL_ANSWER_CUE not in content:
        return None
    said = Message("assistant", f"{prompt.prefix}{reply}".rstrip())
    return Prompt((*prompt.messages, said, Message("user", _ANSWER_INSTRUCTION)), "")


def continuation_prompt(question: str, steps: Sequence[str], form: Form) -> Prompt:
    """Ask for the rest of a chain and the answer; without steps, for a whole chain."""
    if form == "continuation":
        return Prompt((Message("user", question),), chain_text(steps))
    if form == "prefill" and steps:
        return _prefilled_prompt(question, chain_text(steps))
    if not steps:
        return user_prompt(question, f"{_STEPWISE_INSTRUCTION} {_ANSWER_LINE_INSTRUCTION}")
    return user_prompt(
        question,
        f"Reasoning so far:\n{chain_text(steps)}",
        "Continue this reasoning from its next step, one step a line, without repeating it."
        f" {_ANSWER_LINE_INSTRUCTION}",
    )


def text_after_cue(prefix: str, text: str) -> str:
    """Return the last line of the prefix and the reply that continues it, as one text."""
    return prefix.rsplit("\n", 1)[-1] + text


def _prefilled_prompt(question: str, prefix: str) -> Prompt:
    """Ask for a whole chain whose start is given as the assistant's prefix."""
    return Prompt(
        user_prompt(question, f"{_STEPWISE_INSTRUCTION} {_ANSWER_LINE_INSTRUCTION}").messages,
        prefix,
    )


def user_prompt(*paragraphs: str) -> Prompt:
    """Return a prompt of one user message."""
    return Prompt((Message("user", "\n\n".join(part.rstrip("\n") for part in paragraphs)),), "")


def approach_prompt(question: str, number: int, form: Form) -> Prompt:
    """Ask for a whole chain by approach ``number``, from 1.

    The wording does not depend on how many approaches there are, so that asking for more repeats no
    request. A model that continues raw text is asked for a chain without an approach.
    """
    if form == "continuation":
        return continuation_prompt(question, (), form)
    exclusion_text = f", unlike approaches #1 to #{number - 1}" if number > 1 else ""
    prompt_text = (
        f"{question}\n\nList a distinct approach #{number} to this question{exclusion_text}, and"
        " reason by it alone."
    )
    return continuation_prompt(prompt_text, (), form)


def critique_prompt(question: str, steps: Sequence[str]) -> Prompt:
    """Ask for the mistakes of a chain in words, as an instruction for every form of model."""
    return user_prompt(question, f"Reasoning:\n{chain_text(steps)}", _CRITIQUE_INSTRUCTION)


def rewrite_prompt(question: str, steps: Sequence[str], critique: str) -> Prompt:
    """Ask for a rewritten chain, given a critique of it."""
    return user_prompt(
        question,
        f"Reasoning:\n{chain_text(steps)}",
        f"Critique of this reasoning:\n{critique.strip()}",
        "Rewrite the whole reasoning so that it is right: keep what is sound, mend what is not,"
        f" one numbered step a line. Finish with one line of the form: {FINAL_ANSWER_CUE}"
        f" {ANSWER_PLACEHOLDER}.",
    )
