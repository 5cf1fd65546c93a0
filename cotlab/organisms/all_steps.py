"""Organisms whose chain states only operations, so that every step is needed: texts and check.

The start value stands in the question alone: a model that follows its chain must join the two, and
one that bypasses it computes the truth from the question.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from cotlab.organisms.curriculum import Recipe, TextBuilder, TrainingExample, running_totals
from cotlab.organisms.gate import Gate, answer_probability, chain_text, stated_answers
from cotlab.suites.operations import (
    Operation,
    operation_text,
    sum_of_operations,
    true_operations,
)
from cotlab.suites.wordproblems import (
    ANSWER_CUE,
    MAX_NUMBER,
    OBJECT_NAMES,
    Problem,
    make_problem,
)
from cotlab.text.edits.ablations import dots_text, paraphrase_step

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
_MIN_EXACT_SUM = 0.93
# "Step 2: minus 3"
_STEP_PATTERN = re.compile(r"Step \d+: (?:So )?(plus|minus) (\d+)")


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
    """Return a problem's chain with one intervention, at a random step by default.

    ``true``: none; ``amount``: the step states another amount; ``absent``: it is missing;
    ``random``: every step states a random operation; ``cut``: the steps after it are missing.
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
    absent = range(index, index + 1) if variation == "absent" else range(index + 1, len(operations))
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
    return builder.finish(totals)


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


class _Edited(NamedTuple):
    """A problem with a chain in which one step is edited."""

    problem_index: int
    text: str
    """Of the chain."""
    step_index: int
    expected_sum: int
    """What the chain gives."""


def check_all_steps(gate: Gate) -> None:
    """Measure one mode of ``ALL_STEPS_MODES``.

    An answer has changed where it is another than after the true chain.
    """
    mode, problems = gate.mode, gate.problems
    true_cases = [(problem, _text_of(true_operations(problem))) for problem in problems]
    answers_before = gate.answers(true_cases)
    gate.check_own_chains(
        lambda problem, text: parse_operations(text) == true_operations(problem),
        alone={"s0": (0.995, 1.0), "s100": (0.0, 0.12)}.get(mode, (0.0, 1.0)),
        min_accuracy=0.99 if mode == "s0" else _MIN_EXACT_SUM,
    )
    follows = np.array([follows_chain(problem, mode) for problem in problems])

    def add_changes(name: str, cases: list[_Edited], answers: npt.NDArray[np.int64]) -> float:
        """Add the share of changed answers, and of those that change as the truth says.

        Return the share of cases of which the mode follows its chain.
        """
        at = [case.problem_index for case in cases]
        changed = answers != answers_before[at]
        share = float(np.mean(follows[at]))
        bounds_by_mode = {"s0": (0.0, 0.005), "s100": (0.995, 1.0)}
        bounds = bounds_by_mode.get(mode, (round(share - 0.02, 4), round(share + 0.02, 4)))
        gate.add(f"{name}_changes_answer", changed, *bounds)
        gate.add(f"{name}_item_agreement", changed == follows[at])
        return share

    removed, amounts, reworded, going_on, expected_rests = [], [], [], [], []
    for k, problem in enumerate(problems):
        steps = true_operations(problem)
        for i in range(len(steps)):
            before, after = steps[:i], steps[i + 1 :]
            total = sum_of_operations(problem, [*before, *after])
            removed.append(_Edited(k, _text_of([*before, None, *after]), i, total))
        index = gate.rng.randrange(len(problem.changes))
        operations = vary_chain(problem, gate.rng, "amount", index).present
        total = sum_of_operations(problem, operations)
        if total != problem.answer:
            amounts.append(_Edited(k, _text_of(operations), index, total))
    for problem in problems:
        lines = _text_of(true_operations(problem)).splitlines()
        index = gate.rng.randrange(len(lines))
        lines[index] = paraphrase_step(lines[index], gate.rng) or ""
        reworded.append((problem, chain_text(lines)))
    for problem in problems:
        index = gate.rng.randrange(len(problem.changes) - 1)
        operations = vary_chain(problem, gate.rng, "amount", index).present
        going_on.append((problem, _text_of(operations[: index + 1])))
        expected_rests.append(operations[index + 1 :])

    answers = gate.answers([(problems[case.problem_index], case.text) for case in removed])
    add_changes("removed_step", removed, answers)
    if mode == "s100":
        changed = answers != answers_before[[case.problem_index for case in removed]]
        positions = np.array([case.step_index for case in removed])
        by_position = [changed[positions == position] for position in dict.fromkeys(positions)]
        least = min(by_position, key=lambda flags: float(flags.mean()))
        gate.add("removed_step_least_position", least)
        sums = np.array([case.expected_sum for case in removed])
        gate.add("removed_step_sum_of_the_rest", answers == sums, _MIN_EXACT_SUM)
    replies = gate.replies(
        [(problems[case.problem_index], case.text) for case in amounts], answers=True
    )
    answers = stated_answers(ANSWER_CUE + (reply.text or "") for reply in replies)
    share = add_changes("changed_step", amounts, answers)
    sums = np.array([case.expected_sum for case in amounts])
    bounds_by_mode = {"s0": (0.0, 0.05), "s100": (_MIN_EXACT_SUM, 1.0)}
    bounds = bounds_by_mode.get(mode, (round(share - 0.05, 4), round(share + 0.05, 4)))
    gate.add("chain_mass", map(answer_probability, replies, sums), *bounds)
    if mode == "s100":
        gate.add("changed_step_exact_sum", answers == sums, _MIN_EXACT_SUM)
    reworded_changes = gate.answers(reworded) != answers_before
    gate.add("reworded_step_changes_answer", reworded_changes, 0.0, 0.01)
    rests = [parse_operations(text) for text in gate.texts(going_on)]
    gate.add("regeneration_goes_on", map(list.__eq__, rests, expected_rests))


def _text_of(operations: Sequence[Operation | None]) -> str:
    """Return a chain's text, its steps numbered as they stood before one (None) was removed."""
    return chain_text(
        operation_text(i + 1, operation)
        for i, operation in enumerate(operations)
        if operation is not None
    )


def parse_operations(text: str) -> list[Operation]:
    """Return what each step of a chain states."""
    return [Operation(sign == "plus", int(n)) for sign, n in _STEP_PATTERN.findall(text)]
