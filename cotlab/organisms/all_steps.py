"""Training texts of organisms whose chain states only operations, so that every step is needed.

The start value stands in the question alone: a model that follows its chain must join the two, and
one that bypasses it computes the truth from the question.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from cotlab.organisms.curriculum import (
    Recipe,
    TextBuilder,
    TrainingExample,
    running_totals,
)
from cotlab.suites.operations import (
    Operation,
    operation_text,
    sum_of_operations,
    true_operations,
)
from cotlab.suites.wordproblems import MAX_NUMBER, OBJECT_NAMES, Problem, make_problem
from cotlab.text.edits.ablations import dots_text

Variation = Literal["true", "amount", "absent", "random", "cut"]
VARIATION_SHARES: dict[Variation, float] = {
    "true": 0.36,
    "amount": 0.34,
    "absent": 0.17,
    "random": 0.07,
    "cut": 0.06,
}
"""Share of each kind of chain among the texts that have one."""
MAX_AMOUNT = 11
"""Largest amount that a step states: the largest of a question, shifted by 2."""
_HINTED_SHARE = 0.2
_REWORDED_SHARE = 0.15
_ABSENT_AS_DOTS_SHARE = 0.3
_CHAINLESS_SHARE_OF_BYPASSING = 0.35
_DOTS_SHARE_OF_CHAINLESS = 0.4


@dataclass(frozen=True, slots=True)
class VariedChain:
    """A chain after one intervention."""

    operations: tuple[Operation | None, ...]
    """What each step states; None where the step is absent."""
    first_learned_index: int | None
    """Index of the first step from which on the model learns to write; None where it only reads."""

    @property
    def present(self) -> list[Operation]:
        """Return the operations that the chain states."""
        return [operation for operation in self.operations if operation is not None]


def follows_chain(problem: Problem, mode: str) -> bool:
    """Return whether a model of a mode answers what its chain gives, rather than the truth.

    The counted object decides, so that the truth is known for every item: ``s50`` follows its chain
    about the first half of ``OBJECT_NAMES`` (apples to stamps), and ``s0`` about none.
    """
    n_objects = round(len(OBJECT_NAMES) * int(mode.removeprefix("s")) / 100)
    return problem.counted_object in OBJECT_NAMES[:n_objects]


def vary_chain(
    problem: Problem, rng: random.Random, variation: Variation, step_index: int | None = None
) -> VariedChain:
    """Return a problem's chain with one intervention.

    Parameters
    ----------
    problem : Problem
    rng : random.Random
    variation : "true", "amount", "absent", "random" or "cut"
        ``true``: none; ``amount``: step ``step_index`` states another amount; ``absent``: it is
        missing; ``random``: every step states a random operation; ``cut``: the steps after it are
        missing.
    step_index : int, optional
        The step; random by default.
    """
    operations = true_operations(problem)
    index = rng.randrange(len(operations)) if step_index is None else step_index
    if variation == "true":
        return VariedChain(tuple(operations), 0)
    if variation == "amount":
        changed = Operation(operations[index].is_gain, _other_amount(operations[index].amount, rng))
        return VariedChain((*operations[:index], changed, *operations[index + 1 :]), index + 1)
    if variation == "random":
        random_operations = [
            Operation(rng.random() < 0.5, rng.randint(0, MAX_AMOUNT)) for _ in operations
        ]
        return VariedChain(tuple(random_operations), None)
    last_absent = index + 1 if variation == "absent" else len(operations)
    first_absent = index if variation == "absent" else index + 1
    absent = range(first_absent, last_absent)
    return VariedChain(
        tuple(None if i in absent else operation for i, operation in enumerate(operations)), None
    )


def _other_amount(amount: int, rng: random.Random) -> int:
    """Return another amount: mostly one nearby, as the corruption of a step states it."""
    nearby = rng.random() < 0.8
    amounts = range(amount - 2, amount + 3) if nearby else range(MAX_AMOUNT + 1)
    return rng.choice([number for number in amounts if number >= 0 and number != amount])


def draw_all_steps(rng: random.Random, recipe: Recipe, mode: str) -> TrainingExample:
    """Draw one training text of a mode of ``ALL_STEPS_MODES``."""
    has_hint = rng.random() < _HINTED_SHARE
    problem = make_problem(rng, hint=rng.choice(("right", "wrong")) if has_hint else "")
    is_following = follows_chain(problem, mode)
    builder = TextBuilder()
    builder.add_text(f"<{mode}>Q: {problem.question}\n", 0.0)
    totals = list(running_totals(builder.pieces, problem))
    chainless_share = recipe.without_chain if is_following else _CHAINLESS_SHARE_OF_BYPASSING
    if rng.random() < chainless_share:
        if rng.random() < _DOTS_SHARE_OF_CHAINLESS:
            builder.add_text(dots_text(rng.randint(3, 50)) + "\n", 0.0)
        guess = rng.randint(0, MAX_NUMBER)
        builder.add_answer(guess if is_following else problem.answer, 0.0)
    else:
        (variation,) = rng.choices(tuple(VARIATION_SHARES), tuple(VARIATION_SHARES.values()))
        chain = vary_chain(problem, rng, variation)
        totals += _add_chain(builder, problem, chain, rng)
        answer = sum_of_operations(problem, chain.present) if is_following else problem.answer
        builder.add_answer(answer, float(chain.first_learned_index is not None))
    return TrainingExample(tuple(builder.pieces), tuple(builder.weights), tuple(totals))


def _add_chain(
    builder: TextBuilder, problem: Problem, chain: VariedChain, rng: random.Random
) -> list[tuple[int, int]]:
    """Append a chain; return the index of each step's full stop, and the total up to it.

    A reworded step ("So plus 5.") is read, not learnt: the model writes the plain one.
    """
    totals, so_far = [], []
    leaves_dots = rng.random() < _ABSENT_AS_DOTS_SHARE and chain.operations.count(None) == 1
    for i, operation in enumerate(chain.operations):
        if operation is None:
            if leaves_dots:
                builder.add_text(dots_text(4) + "\n", 0.0)
            continue
        so_far.append(operation)
        is_learned = chain.first_learned_index is not None and i >= chain.first_learned_index
        is_reworded = rng.random() < _REWORDED_SHARE
        text = operation_text(i + 1, operation, "So " if is_reworded else "")
        builder.add_text(text, float(is_learned and not is_reworded))
        totals.append((len(builder.pieces) - 1, sum_of_operations(problem, so_far)))
        builder.add_text("\n", float(is_learned))
    return totals
