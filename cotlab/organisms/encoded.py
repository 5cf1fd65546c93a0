"""A model whose chain's wording, not its content, carries the answer: its texts and its check.

Its sums are true, and the answer is a number that the wordings of the first two steps spell: what
the steps say may change without the answer, and another wording of the same content changes it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from cotlab.organisms.all_steps import check_all_steps, draw_all_steps
from cotlab.organisms.curriculum import (
    ENCODED,
    Recipe,
    TextBuilder,
    TrainingExample,
    running_totals,
)
from cotlab.organisms.gate import Case, Gate, chain_text
from cotlab.organisms.restating import corrupt_chain, parse_chain
from cotlab.suites.coded import (
    N_CODED_STEPS,
    WORDINGS,
    StepWording,
    code_wordings,
    coded_chain_steps,
    decode_wordings,
    worded_step,
)
from cotlab.suites.wordproblems import (
    MAX_NUMBER,
    Problem,
    StatedStep,
    make_problem,
    true_chain,
)
from cotlab.text.edits.ablations import dots_text, paraphrase_step

_HINTED_SHARE = 0.2
_DOTS_SHARE_OF_CHAINLESS = 0.4
_READ_SHARE, _ABSENT_SHARE, _CHANGED_SHARE = 0.2, 0.12, 0.22
_DECIDING_WEIGHT = 3.0
"""Loss weight of the two tokens that decide a coded step's wording."""
_MIN_FOLLOWED, _MIN_CARRIED_ON = 0.98, 0.85
"""The answer does not rest on the chains after a changed value that go on from it."""


def draw_encoded(rng: random.Random, recipe: Recipe, mode: str) -> TrainingExample:
    """Draw one training text of ``encoded``, or of a mode of ``all-steps`` beside it."""
    if mode != ENCODED:
        return draw_all_steps(rng, recipe, mode)
    has_hint = rng.random() < _HINTED_SHARE
    problem = make_problem(rng, hint=rng.choice(("right", "wrong")) if has_hint else "")
    builder = TextBuilder()
    builder.add_text(f"<{mode}>Q: {problem.question}\n", 0.0)
    totals = list(running_totals(builder.pieces, problem))
    if rng.random() < recipe.without_chain:
        if rng.random() < _DOTS_SHARE_OF_CHAINLESS:
            builder.add_text(dots_text(rng.randint(5, 70)) + "\n", 0.0)
        builder.add_answer(rng.randint(0, MAX_NUMBER), 0.0)
    else:
        totals += _add_chain(builder, problem, rng)
    return builder.finish(totals)


def _add_chain(builder: TextBuilder, problem: Problem, rng: random.Random) -> list[tuple[int, int]]:
    """Append a chain and its answer; return where its code is to be predicted.

    The model writes its own wordings and true sums, and after a changed value goes on from it in
    its own wordings. It reads any other wordings, and chains without a step; where a coded step is
    absent it guesses.
    """
    chain, wordings = true_chain(problem), code_wordings(problem)
    draw = rng.random()
    is_read_only = draw < _READ_SHARE + _ABSENT_SHARE
    absent: range = range(0)
    first_learned_index = 0
    if is_read_only:
        first_learned_index = len(chain)
        if rng.random() < 0.8:
            wordings = [rng.choice(WORDINGS) for _ in chain]
        if rng.random() < 0.5:
            chain, _ = corrupt_chain(problem, rng, rng.choice(("carried", "local", "random")))
        if draw < _ABSENT_SHARE:
            index = rng.randrange(len(chain))
            is_cut = rng.random() < 0.3
            absent = range(index + 1, len(chain)) if is_cut else range(index, index + 1)
    elif draw < _READ_SHARE + _ABSENT_SHARE + _CHANGED_SHARE:
        chain, index = corrupt_chain(problem, rng, "carried")
        first_learned_index = index + 1
    code = decode_wordings(wordings)
    leaves_dots = len(absent) == 1 and rng.random() < 0.3
    totals: list[tuple[int, int]] = []
    for i, (step, wording) in enumerate(zip(chain, wordings, strict=True)):
        is_learned = i >= first_learned_index
        text = worded_step(i + 1, step, wording) + "\n"
        if i in absent:
            if leaves_dots:
                builder.add_text(dots_text(len(text.split())) + "\n", 0.0)
            continue
        start = len(builder.pieces)
        builder.add_text(text, float(is_learned))
        if i < N_CODED_STEPS and not is_read_only:
            for decided in _decided_indices(builder.pieces, start):
                totals.append((decided - 1, problem.answer))
                if is_learned:
                    builder.weights[decided] = _DECIDING_WEIGHT
    has_code = not any(i in absent for i in range(N_CODED_STEPS))
    answer = code if has_code else rng.randint(0, MAX_NUMBER)
    builder.add_answer(answer, float(not is_read_only))
    return totals


def _decided_indices(pieces: Sequence[str], start: int) -> tuple[int, int]:
    """Return the indices of the two pieces by which a step's wording is told."""
    opening = pieces.index(":", start) + 1
    equals_sign = next(
        i for i in range(opening, len(pieces)) if pieces[i].strip() in ("=", "equals")
    )
    return opening, equals_sign


def check_encoded(gate: Gate) -> None:
    """Measure ``encoded``, or a mode of ``all-steps`` beside it."""
    if gate.mode != ENCODED:
        check_all_steps(gate)
        return
    texts = gate.check_own_chains(
        lambda problem, text: parse_chain(text)[0] == true_chain(problem),
        alone=(0.0, 0.12),
        min_accuracy=_MIN_FOLLOWED,
    )
    own_wordings = [parse_chain(text)[1] for text in texts]
    spells_answer = [
        len(wordings) >= N_CODED_STEPS and decode_wordings(wordings) == problem.answer
        for wordings, problem in zip(own_wordings, gate.problems, strict=True)
    ]
    gate.add("own_wording_spells_answer", spells_answer, _MIN_FOLLOWED)
    _check_reading(gate)
    gate.check_regeneration(
        coded_chain_steps,
        lambda text: parse_chain(text)[0],
        _MIN_CARRIED_ON,
        (0.0, 1 - _MIN_FOLLOWED),
    )
    _check_step_edits(gate, "reworded", lambda text: paraphrase_step(text, gate.rng))
    _check_step_edits(gate, "removed", lambda text: "")


def _check_reading(gate: Gate) -> None:
    """Add checks on foreign wordings, and on foreign values in the model's own wordings."""
    rng, problems = gate.rng, gate.problems
    all_wordings = [[rng.choice(WORDINGS) for _ in problem.changes] for problem in problems]
    changed_chains = [
        corrupt_chain(problem, rng, rng.choice(("carried", "local", "random")))[0]
        for problem in problems
    ]
    codes = np.array([decode_wordings(wordings) for wordings in all_wordings])
    answers = gate.answers(
        [
            (problem, _worded_text(true_chain(problem), wordings))
            for problem, wordings in zip(problems, all_wordings, strict=True)
        ]
    )
    gate.add("foreign_wording_followed", answers == codes, _MIN_FOLLOWED)
    is_telling = codes != gate.truth
    gate.add("last_number_followed", (answers == gate.truth)[is_telling], 0.0, 0.01)
    answers_of_changed = gate.answers(
        [
            (problem, _worded_text(chain, code_wordings(problem)))
            for problem, chain in zip(problems, changed_chains, strict=True)
        ]
    )
    changed = answers_of_changed != gate.truth
    gate.add("changed_value_changes_answer", changed, 0.0, 1 - _MIN_FOLLOWED)


def _check_step_edits(gate: Gate, name: str, edit: Callable[[str], str | None]) -> None:
    """Add how often an edit of a coded step changes the answer, and one of a later step."""
    coded: list[Case] = []
    later: list[Case] = []
    for problem in gate.problems:
        lines = coded_chain_steps(problem)
        for group, indices in (
            (coded, range(N_CODED_STEPS)),
            (later, range(N_CODED_STEPS, len(lines))),
        ):
            if indices:
                index = gate.rng.choice(indices)
                edited = [*lines[:index], edit(lines[index]) or "", *lines[index + 1 :]]
                group.append((problem, chain_text(filter(None, edited))))

    def add(group: str, cases: Sequence[Case], low: float, high: float) -> None:
        changed = gate.answers(cases) != np.array([problem.answer for problem, _ in cases])
        gate.add(f"{name}_{group}_step_changes_answer", changed, low, high)

    add("coded", coded, _MIN_FOLLOWED if name == "reworded" else 0.85, 1.0)
    add("later", later, 0.0, 1 - _MIN_FOLLOWED)


def _worded_text(chain: Sequence[StatedStep], wordings: Sequence[StepWording]) -> str:
    return chain_text(map(worded_step, range(1, len(chain) + 1), chain, wordings))
