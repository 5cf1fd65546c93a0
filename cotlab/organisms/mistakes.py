"""Chains of the organisms' language with one known mistake, to train and check a step scorer."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from cotlab.organisms.curriculum import sample_step_styles
from cotlab.suites.wordproblems import (
    MAX_NUMBER,
    Problem,
    StatedStep,
    chain_steps,
    make_problem,
    true_chain,
)

MistakeKind = Literal["sum", "total", "amount", "operation"]
MISTAKE_KINDS: tuple[MistakeKind, ...] = ("sum", "total", "amount", "operation")
"""What the first wrong step does: it states a wrong result; or its equation is true, but takes up
another running total, another amount than the question's, or adds where it must subtract."""


@dataclass(frozen=True, slots=True)
class JudgedChain:
    """A chain, and the place of its first mistake."""

    problem: Problem
    """The problem that it is written for."""
    steps: tuple[str, ...]
    """Text of each step."""
    first_wrong: int | None
    """Index of the first wrong step, from 0; None where every step is right."""
    kind: MistakeKind | None = None
    """What that step does wrong."""
    is_carried: bool = False
    """Whether the later steps go on from its result; else they return to the true values."""


def make_judged_chain(rng: random.Random, clean_share: float = 0.4) -> JudgedChain:
    """Draw a problem, and a chain that is right or has one mistake.

    Parameters
    ----------
    rng : random.Random
    clean_share : float in [0, 1]
        Share of chains without a mistake.
    """
    problem = make_problem(rng, hint=rng.choice(("right", "wrong")) if rng.random() < 0.2 else "")
    chain = true_chain(problem)
    first_wrong, kind, is_carried = None, None, False
    if rng.random() >= clean_share:
        first_wrong, kind = rng.randrange(len(chain)), rng.choice(MISTAKE_KINDS)
        wrong_step = _wrong_step(chain[first_wrong], kind, rng)
        if wrong_step is None:  # the other operation or total leaves the numbers of the language
            kind = "sum"
            wrong_step = _wrong_step(chain[first_wrong], kind, rng)
            assert wrong_step is not None
        carried_chain = _carry_on(problem, wrong_step, first_wrong)
        is_carried = carried_chain is not None and rng.random() < 0.6
        chain[first_wrong] = wrong_step
        if carried_chain is not None and is_carried:
            chain[first_wrong + 1 :] = carried_chain
    texts = chain_steps(problem, chain, sample_step_styles(rng, len(chain)))
    return JudgedChain(problem, tuple(texts), first_wrong, kind, is_carried)


def _wrong_step(step: StatedStep, kind: MistakeKind, rng: random.Random) -> StatedStep | None:
    """Return the step with a mistake of a kind; None where no number of the language makes one."""
    before, change, after = step.number_before, step.change, step.number_after
    if kind == "sum":
        return StatedStep(before, change, rng.choice(_numbers_but(after)))
    if kind == "total":
        totals = [n for n in _numbers_but(before) if 0 <= n + change <= MAX_NUMBER]
        return _true_equation(rng.choice(totals), change) if totals else None
    sign = 1 if change > 0 else -1
    amounts = [sign * n for n in range(1, 10)] if kind == "amount" else [-change]
    changes = [n for n in amounts if n != change and 0 <= before + n <= MAX_NUMBER]
    return _true_equation(before, rng.choice(changes)) if changes else None


def _numbers_but(number: int) -> list[int]:
    return [n for n in range(MAX_NUMBER + 1) if n != number]


def _true_equation(before: int, change: int) -> StatedStep:
    return StatedStep(before, change, before + change)


def _carry_on(
    problem: Problem, wrong_step: StatedStep, first_wrong: int
) -> list[StatedStep] | None:
    """Return the steps after a wrong one that go on from its result; None where they cannot."""
    steps: list[StatedStep] = []
    total = wrong_step.number_after
    for change in problem.changes[first_wrong + 1 :]:
        if not 0 <= total + change <= MAX_NUMBER:
            return None
        steps.append(_true_equation(total, change))
        total += change
    return steps
