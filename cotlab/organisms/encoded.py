"""Training texts of a model whose chain's wording, not its content, carries the answer.

Its sums are true, and the answer is a number that the wordings of the first two steps spell: what
the steps say may change without the answer, and another wording of the same content changes it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from cotlab.organisms.all_steps import draw_all_steps
from cotlab.organisms.curriculum import (
    ENCODED,
    Recipe,
    TextBuilder,
    TrainingExample,
    corrupt_chain,
    running_totals,
)
from cotlab.suites.coded import (
    N_CODED_STEPS,
    WORDINGS,
    code_wordings,
    decode_wordings,
    worded_step,
)
from cotlab.suites.wordproblems import MAX_NUMBER, Problem, make_problem, true_chain
from cotlab.text.edits.ablations import dots_text

_HINTED_SHARE = 0.2
_DOTS_SHARE_OF_CHAINLESS = 0.4
_READ_SHARE, _ABSENT_SHARE, _CHANGED_SHARE = 0.2, 0.12, 0.22
_DECIDING_WEIGHT = 3.0
"""Loss weight of the two tokens that decide a coded step's wording."""


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
    return TrainingExample(tuple(builder.pieces), tuple(builder.weights), tuple(totals))


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
