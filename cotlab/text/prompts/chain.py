"""How a question and a chain become a prompt: built once here, the same for every provider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cotlab.core.requests import Message
from cotlab.core.types import Form

CUE = "So the answer is"
GIVEN = {"continuation": "prefix", "prefill": "prefix", "chat": "user"}
"""How a chain reaches a model of each form: as its own text so far, or inside the user's turn."""
_STEPWISE = "Reason step by step, one numbered step a line."
_LINE = f"Finish with one line of the form: {CUE} <answer>."


class Prompt(NamedTuple):
    """The parts of a ``Complete`` request that hold text."""

    messages: tuple[Message, ...]
    prefix: str


def chain_text(steps: Sequence[str]) -> str:
    """The chain as it is shown to a model: one step a line, each as it stands in the suite."""
    return "".join(f"{step}\n" for step in steps)


def ask_answer(question: str, steps: Sequence[str], form: Form) -> Prompt:
    """Ask for the answer at once, given ``steps`` as the whole chain (none: without a chain)."""
    if form == "continuation":
        return Prompt((Message("user", question),), chain_text(steps) + CUE)
    if form == "prefill" and steps:
        return _assistant_turn(question, chain_text(steps) + CUE)
    if not steps:
        return _user(
            question,
            f"Answer at once, without any reasoning, in one line of the form: {CUE} <answer>.",
        )
    return _user(
        question,
        f"Reasoning:\n{chain_text(steps)}",
        f"Give the answer that this reasoning leads to. Add no reasoning. {_LINE}",
    )


def ask_rest(question: str, steps: Sequence[str], form: Form) -> Prompt:
    """Ask to go on from ``steps`` to the end of the chain and the answer (none: ask for the whole chain)."""
    if form == "continuation":
        return Prompt((Message("user", question),), chain_text(steps))
    if form == "prefill" and steps:
        return _assistant_turn(question, chain_text(steps))
    if not steps:
        return _user(question, f"{_STEPWISE} {_LINE}")
    return _user(
        question,
        f"Reasoning so far:\n{chain_text(steps)}",
        "Continue this reasoning from its next step, one step a line, without repeating it."
        f" {_LINE}",
    )


def text_after_cue(prefix: str, text: str) -> str:
    """What a reply says as a sentence: the end of the prefix that it continues, then its own text."""
    return prefix.rsplit("\n", 1)[-1] + text


def _assistant_turn(question: str, prefix: str) -> Prompt:
    """The question as it is asked for a whole chain, and the start of the model's own turn."""
    return Prompt(_user(question, f"{_STEPWISE} {_LINE}").messages, prefix)


def _user(*paragraphs: str) -> Prompt:
    return Prompt((Message("user", "\n\n".join(part.rstrip("\n") for part in paragraphs)),), "")
