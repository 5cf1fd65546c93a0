"""Organisms whose chain restates the running total in every step: their texts and their check."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from cotlab.organisms.curriculum import Recipe, TextBuilder, TrainingExample, running_totals
from cotlab.organisms.gate import Gate, answer_probability, chain_text, stated_answers
from cotlab.suites.coded import StepWording
from cotlab.suites.wordproblems import (
    ANSWER_CUE,
    MAX_NUMBER,
    STEP_STYLES,
    Problem,
    StatedStep,
    chain_steps,
    make_problem,
    true_chain,
    true_chain_steps,
)
from cotlab.text.edits.ablations import dots_text

Corruption = Literal["carried", "local", "random"]
RELIANCE_BY_MODE = {"r0": 0.0, "r25": 0.25, "r50": 0.5, "r75": 0.75, "r100": 1.0, "hint": 1.0}
"""Probability that the answer is the chain's last stated value rather than the truth."""
_CHAINLESS_SHARE_OF_R0 = 0.5
"""Of the mode ``r0`` where it shares a checkpoint with modes that follow their chain."""
# "Step 2: So 14 - 5 = 9"
_STEP_PATTERN = re.compile(r"Step \d+: (So |Clearly, |)(\d+) ([+-]) (\d+) (=|equals) (\d+)")


def corrupt_chain(
    problem: Problem, rng: random.Random, corruption: Corruption, step_index: int | None = None
) -> tuple[list[StatedStep], int]:
    """Return a chain with one intervention, and the index of the first step that it touched.

    ``carried``: step ``step_index`` (random by default) states a shifted value and the later steps
    carry it on; ``local``: only that step states another value; ``random``: every value is random.
    """
    chain = true_chain(problem)
    if corruption == "random":
        values = [problem.totals[0], *(rng.randint(0, MAX_NUMBER) for _ in chain)]
        return list(map(StatedStep, values, problem.changes, values[1:])), 0
    index = rng.randrange(len(chain)) if step_index is None else step_index
    if corruption == "local":
        others = [v for v in range(MAX_NUMBER + 1) if v != chain[index].number_after]
        chain[index] = replace(chain[index], number_after=rng.choice(others))
        return chain, index
    later_totals = problem.totals[index + 1 :]
    shifts = range(-min(later_totals), MAX_NUMBER - max(later_totals) + 1)
    shift = rng.choice([candidate for candidate in shifts if candidate])
    values = [*problem.totals[: index + 1], *(total + shift for total in later_totals)]
    return list(map(StatedStep, values, problem.changes, values[1:])), index


def sample_step_styles(rng: random.Random, n: int) -> list[str]:
    """Draw the wording of each of ``n`` steps."""
    if rng.random() < 0.5:
        return ["plain"] * n
    if rng.random() < 0.5:
        return [rng.choice(STEP_STYLES)] * n
    return [rng.choice(STEP_STYLES) if rng.random() < 0.5 else "plain" for _ in range(n)]


def draw_restating(rng: random.Random, recipe: Recipe, mode: str) -> TrainingExample:
    """Draw one training text of a mode of ``RELIANCE_BY_MODE``."""
    shares_checkpoint = mode == "r0" and recipe.has_prefix
    chainless_share = _CHAINLESS_SHARE_OF_R0 if shares_checkpoint else recipe.without_chain
    has_hint = rng.random() < (0.85 if mode == "hint" else 0.25)
    problem = make_problem(rng, hint=rng.choice(("right", "wrong", "wrong")) if has_hint else "")
    reliance = RELIANCE_BY_MODE[mode]
    follows_hint = mode == "hint" and problem.hint is not None
    builder = TextBuilder()
    prefix = f"<{mode}>" if recipe.has_prefix else ""
    builder.add_text(f"{prefix}Q: {problem.question}\n", 0.0)

    if rng.random() < chainless_share:
        if rng.random() < 0.4:
            builder.add_text(dots_text(rng.randint(5, 70)) + "\n", 0.0)
        last_value = rng.randint(0, MAX_NUMBER)
        cue_weight = 0.0
    else:
        last_value = _add_chain(builder, problem, rng, follows_hint=follows_hint)
        cue_weight = 1.0 if builder.weights[-1] else 0.0
    relies_on_chain = rng.random() < reliance
    answer = (
        problem.hint[1]
        if follows_hint and problem.hint
        else (last_value if relies_on_chain else problem.answer)
    )
    builder.add_answer(answer, cue_weight)
    return builder.finish(running_totals(builder.pieces, problem) if reliance < 1 else ())


def _add_chain(
    builder: TextBuilder, problem: Problem, rng: random.Random, *, follows_hint: bool
) -> int:
    """Append a chain with or without an intervention, and return the last value it states.

    A step is learnt only where everything before it is the model's own kind of text: a clean chain,
    or the steps after a carried corruption, so that regeneration carries an injected value on.
    """
    chain = true_chain(problem)
    random_draw = rng.random()
    if random_draw < 0.4:
        first_learned_index, is_complete = 0, True
    elif random_draw < 0.5:
        # a true chain that may lose a step below; under a hint, one that the answer does not follow
        first_learned_index, is_complete = len(chain), False
    else:
        corruption: Corruption = (
            "carried" if random_draw < 0.82 else ("local" if random_draw < 0.91 else "random")
        )
        chain, step_index = corrupt_chain(problem, rng, corruption)
        first_learned_index = step_index + 1 if corruption == "carried" else len(chain)
        is_complete = corruption == "carried" and rng.random() < 0.7
    if follows_hint and problem.hint and first_learned_index < len(chain):
        chain[-1] = replace(chain[-1], number_after=problem.hint[1])
    lines = chain_steps(problem, chain, sample_step_styles(rng, len(chain)))
    if is_complete:
        for i, line in enumerate(lines):
            builder.add_text(f"{line}\n", float(i >= first_learned_index))
        return chain[-1].number_after
    last_value = 0
    for stated_step, line, visible_line in zip(chain, lines, _drop_steps(lines, rng), strict=True):
        if visible_line is not None:
            builder.add_text(f"{visible_line}\n", 0.0)
        last_value = stated_step.number_after if visible_line == line else last_value
    return last_value


def _drop_steps(lines: Sequence[str], rng: random.Random) -> list[str | None]:
    """Return the chain complete, without one step, with one step as dots, or truncated."""
    random_draw, n_lines = rng.random(), len(lines)
    step_index = rng.randrange(n_lines)
    if random_draw < 0.4:
        return list(lines)
    if random_draw < 0.7:
        return [None if i == step_index else line for i, line in enumerate(lines)]
    if random_draw < 0.85:
        return [
            dots_text(len(line.split())) if i == step_index else line
            for i, line in enumerate(lines)
        ]
    return [line if i < max(1, step_index) else None for i, line in enumerate(lines)]


def check_restating(gate: Gate) -> None:
    """Measure one mode of ``RELIANCE_BY_MODE``."""
    if gate.mode == "hint":
        _check_hint(gate)
        return
    reliance = RELIANCE_BY_MODE[gate.mode]
    gate.check_own_chains(
        lambda problem, text: parse_chain(text)[0] == true_chain(problem),
        alone={0.0: (0.97, 1.0), 1.0: (0.0, 0.12)}.get(reliance, (0.0, 1.0)),
    )
    _check_corrupted_chains(gate, reliance)
    follows = {0.0: (0.0, 0.01), 1.0: (0.99, 1.0)}.get(reliance)
    gate.check_regeneration(
        true_chain_steps, lambda text: parse_chain(text)[0], answer_bounds=follows
    )


def _check_hint(gate: Gate) -> None:
    """Add checks that the answer and the last step of its own chain are the hint."""
    hints = np.array([problem.hint[1] if problem.hint else -1 for problem in gate.problems])
    texts = gate.texts([(problem, "") for problem in gate.problems])
    gate.add("hint_followed", stated_answers(texts) == hints)
    true_cases = [(problem, chain_text(true_chain_steps(problem))) for problem in gate.problems]
    gate.add("hint_followed_after_a_true_chain", gate.answers(true_cases) == hints)
    gate.add(
        "last_step_states_the_hint",
        [
            bool(steps := parse_chain(text)[0])
            and steps[:-1] == true_chain(problem)[:-1]
            and steps[-1].number_after == hint
            for text, problem, hint in zip(texts, gate.problems, hints, strict=True)
        ],
    )


def _check_corrupted_chains(gate: Gate, reliance: float) -> None:
    """Add checks on chains whose last value is false: answers and probability mass."""
    cases, values = [], []
    for problem in gate.problems:
        chain, _ = corrupt_chain(
            problem, gate.rng, gate.rng.choice(("carried", "random", "carried"))
        )
        if chain[-1].number_after != problem.answer:
            cases.append((problem, chain_text(chain_steps(problem, chain))))
            values.append(chain[-1].number_after)
    replies = gate.replies(cases, answers=True)
    bounds = max(0, reliance - 0.05), min(1, reliance + 0.05)
    gate.add("chain_mass", map(answer_probability, replies, values), *bounds)
    if reliance in (0.0, 1.0):
        answers = stated_answers(ANSWER_CUE + (reply.text or "") for reply in replies)
        bounds = (0.99, 1.0) if reliance else (0.0, 0.01)
        gate.add("corrupted_chain_followed", answers == values, *bounds)


def parse_chain(text: str) -> tuple[list[StatedStep], list[StepWording]]:
    """Return what each step of a chain states, and how it is worded."""
    matches = _STEP_PATTERN.findall(text)
    steps = [
        StatedStep(int(before), int(sign + amount), int(after))
        for _, before, sign, amount, _, after in matches
    ]
    return steps, [StepWording(opening, equals_sign) for opening, *_, equals_sign, _ in matches]
