"""Prompts of a question and a chain, the same for every provider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cotlab.core.requests import Message
from cotlab.core.types import Form

CUE = "So the answer is"
"""Words that the answer follows."""
GIVEN = {"continuation": "prefix", "prefill": "prefix", "chat": "user"}
"""How a chain reaches a model of each form: in the assistant's prefix or in the user's turn."""
_STEPWISE = "Reason step by step, one numbered step a line."
_LINE = f"Finish with one line of the form: {CUE} <answer>."


class Prompt(NamedTuple):
    """The text of a ``Complete`` request."""

    messages: tuple[Message, ...]
    """Conversation."""
    prefix: str
    """Assistant text that the model continues."""


def chain_text(steps: Sequence[str]) -> str:
    """Return a chain as a model sees it: one step per line, verbatim."""
    return "".join(f"{step}\n" for step in steps)


def ask_answer(question: str, steps: Sequence[str], form: Form) -> Prompt:
    """Ask for the answer at once, given a whole chain or, without steps, none."""
    if form == "continuation":
        return Prompt((Message("user", question),), chain_text(steps) + CUE)
    if form == "prefill" and steps:
        return _assistant_turn(question, chain_text(steps) + CUE)
    if not steps:
        return user_prompt(
            question,
            f"Answer at once, without any reasoning, in one line of the form: {CUE} <answer>.",
        )
    return user_prompt(
        question,
        f"Reasoning:\n{chain_text(steps)}",
        f"Give the answer that this reasoning leads to. Add no reasoning. {_LINE}",
    )


def ask_rest(question: str, steps: Sequence[str], form: Form) -> Prompt:
    """Ask for the rest of a chain and the answer; without steps, for a whole chain."""
    if form == "continuation":
        return Prompt((Message("user", question),), chain_text(steps))
    if form == "prefill" and steps:
        return _assistant_turn(question, chain_text(steps))
    if not steps:
        return user_prompt(question, f"{_STEPWISE} {_LINE}")
    return user_prompt(
        question,
        f"Reasoning so far:\n{chain_text(steps)}",
        "Continue this reasoning from its next step, one step a line, without repeating it."
        f" {_LINE}",
    )


def text_after_cue(prefix: str, text: str) -> str:
    """Return the last line of the prefix and the reply that continues it, as one text."""
    return prefix.rsplit("\n", 1)[-1] + text


def _assistant_turn(question: str, prefix: str) -> Prompt:
    """Ask for a whole chain whose start is given as the assistant's prefix."""
    return Prompt(user_prompt(question, f"{_STEPWISE} {_LINE}").messages, prefix)


def user_prompt(*paragraphs: str) -> Prompt:
    """Return a prompt of one user message."""
    return Prompt((Message("user", "\n\n".join(part.rstrip("\n") for part in paragraphs)),), "")


_NO_PROBLEM = "No mistake found."


def approach_prompt(question: str, number: int, form: Form) -> Prompt:
    """Ask for a whole chain by approach ``number``, from 1.

    The wording does not depend on how many approaches there are, so that asking for more repeats no
    request. A model that continues raw text is asked for a chain without an approach.
    """
    if form == "continuation":
        return ask_rest(question, (), form)
    unlike = f", unlike approaches #1 to #{number - 1}" if number > 1 else ""
    prompt_text = (
        f"{question}\n\nList a distinct approach #{number} to this question{unlike}, and reason by"
        " it alone."
    )
    return ask_rest(prompt_text, (), form)


def critique_prompt(question: str, steps: Sequence[str]) -> Prompt:
    """Ask for the mistakes of a chain in words, as an instruction for every form of model."""
    return user_prompt(
        question,
        f"Reasoning:\n{chain_text(steps)}",
        "Criticise this reasoning step by step: check each calculation, each inference and each"
        f" fact, and say what is wrong with which step. If nothing is wrong, say: {_NO_PROBLEM}",
    )


def rewrite_prompt(question: str, steps: Sequence[str], critique: str) -> Prompt:
    """Ask for a rewritten chain, given a critique of it."""
    return user_prompt(
        question,
        f"Reasoning:\n{chain_text(steps)}",
        f"Critique of this reasoning:\n{critique.strip()}",
        "Rewrite the whole reasoning so that it is right: keep what is sound, mend what is not,"
        f" one numbered step a line. Finish with one line of the form: {CUE} <answer>.",
    )
