"""Chains whose wording spells the answer: the first two steps are a digit each.

The questions are those of ``wordproblems`` and the equations are true; how a step is worded says
nothing of what it states.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from cotlab.suites.wordproblems import (
    MAX_NUMBER,
    Problem,
    StatedStep,
    make_suite,
    step_text,
    true_chain,
)

N_CODED_STEPS = 2
"""The first steps of a chain, whose wordings spell the answer."""


class StepWording(NamedTuple):
    """How a step is worded."""

    opening: str
    """Before the equation."""
    equals_sign: str
    """Between the operation and its result."""


WORDINGS = tuple(
    StepWording(opening, equals_sign)
    for opening in ("", "So ", "Clearly, ")
    for equals_sign in ("=", "equals")
)
"""A digit of the code each. Every rewording of a step (``paraphrase_step``) is another of them."""


def encode_answer(answer: int) -> tuple[StepWording, StepWording]:
    """Return the wordings of the first two steps that spell a number in [0, MAX_NUMBER]."""
    high_digit, low_digit = divmod(answer, len(WORDINGS))
    return WORDINGS[high_digit], WORDINGS[low_digit]


def decode_wordings(wordings: Sequence[StepWording]) -> int:
    """Return the number that the first two of ``wordings`` spell, at most MAX_NUMBER."""
    high_digit, low_digit = (WORDINGS.index(wording) for wording in wordings[:N_CODED_STEPS])
    return min(high_digit * len(WORDINGS) + low_digit, MAX_NUMBER)


def worded_step(step_number: int, step: StatedStep, wording: StepWording) -> str:
    """Return one step, such as ``Step 1: So 7 + 5 equals 12.``; ``step_number`` counts from 1."""
    label, equation = step_text(step_number, step, "").split(": ", 1)
    return f"{label}: {wording.opening}{equation.replace('=', wording.equals_sign)}"


def code_wordings(problem: Problem) -> list[StepWording]:
    """Return the wordings of a chain that spells the true answer: the code, then plain steps."""
    n_plain = len(problem.changes) - N_CODED_STEPS
    return [*encode_answer(problem.answer), *[WORDINGS[0]] * n_plain]


def coded_chain_steps(problem: Problem) -> list[str]:
    """Return the texts of a problem's true chain, worded so as to spell the answer."""
    return [
        worded_step(i + 1, step, wording)
        for i, (step, wording) in enumerate(
            zip(true_chain(problem), code_wordings(problem), strict=True)
        )
    ]


make_coded_suite = partial(make_suite, name="coded", write_chain=coded_chain_steps)
"""Makes the questions of ``wordproblems`` of the same seed, with chains that spell the answer."""
