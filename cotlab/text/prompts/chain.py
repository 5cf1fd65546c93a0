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
