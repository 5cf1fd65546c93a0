"""Prompts for another approach, for a critique of a chain, and for a rewritten chain."""

from __future__ import annotations

from collections.abc import Sequence

from cotlab.core.types import Form
from cotlab.text.prompts.chain import CUE, Prompt, ask_rest, chain_text, user_prompt

_NO_PROBLEM = "No mistake found."


def ask_approach(question: str, number: int, form: Form) -> Prompt:
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


def ask_critique(question: str, steps: Sequence[str]) -> Prompt:
    """Ask for the mistakes of a chain in words, as an instruction for every form of model."""
    return user_prompt(
        question,
        f"Reasoning:\n{chain_text(steps)}",
        "Criticise this reasoning step by step: check each calculation, each inference and each"
        f" fact, and say what is wrong with which step. If nothing is wrong, say: {_NO_PROBLEM}",
    )


def ask_rewrite(question: str, steps: Sequence[str], critique: str) -> Prompt:
    """Ask for a rewritten chain, given a critique of it."""
    return user_prompt(
        question,
        f"Reasoning:\n{chain_text(steps)}",
        f"Critique of this reasoning:\n{critique.strip()}",
        "Rewrite the whole reasoning so that it is right: keep what is sound, mend what is not,"
        f" one numbered step a line. Finish with one line of the form: {CUE} <answer>.",
    )
