"""A suite of valid and invalid chains, on which calibrated probabilities are validated.

Chains are in the organisms' language and come from the generator's own totals, so whether one is
valid is known exactly: each step is in its position and states what the question makes of the
number before. No metric is involved.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

from cotlab.core.types import Suite
from cotlab.suites.wordproblems import (
    CHAIN_LENGTHS,
    MAX_NUMBER,
    Problem,
    StatedStep,
    make_problem,
    paraphrase_question,
    problem_item,
    step_text,
    true_chain,
)

SHARE_BY_KIND: Mapping[str, float] = {
    "clean": 0.40,
    "hint_ignored": 0.10,
    "hint_followed": 0.10,
    "carried": 0.12,
    "misread": 0.03,
    "wrong": 0.09,
    "missing": 0.08,
    "random": 0.08,
}
"""How often each kind of chain is drawn. ``clean`` true; ``hint_ignored`` true, although the
question holds a wrong hint; ``hint_followed`` the last step states that hint; ``carried`` one step
states a shifted value and the later ones go on from it; ``misread`` the chain starts from another
number than the question's and computes correctly from there; ``wrong`` one step alone states
another value; ``missing`` one step is left out, and the others keep their numbers; ``random`` every
stated value is drawn at random."""
HINTED_KINDS = ("hint_ignored", "hint_followed")
"""Kinds whose question holds a hint."""
StatedChain = list[StatedStep | None]
"""What each step states; None where it is left out."""


def mixed_suite(
    n: int, seed: int, *, excluded_questions: Collection[str] = (), name: str = "mixed"
) -> Suite:
    """Draw ``n`` items with chains of all SHARES.

    Parameters
    ----------
    n : int, at least 1
    seed : int
    excluded_questions : collection of str
        Questions that are taken already; no question occurs twice.
    name : str
        First part of the suite's name.

    Returns
    -------
    Suite
        Each item's chain is its ``steps``, its right answer ``answer``; ``meta`` has ``kind``,
        ``valid`` (whether the chain is the true one), ``totals``, two ``paraphrases``, and ``hint``
        where there is one. ``category`` says only what the question shows: hinted or plain.
    """
    rng = random.Random(f"mixed:{seed}")
    used_questions, items = set(excluded_questions), []
    kinds = rng.choices(list(SHARE_BY_KIND), list(SHARE_BY_KIND.values()), k=n)
    for i, kind in enumerate(kinds):
        problem = _new_problem(rng, CHAIN_LENGTHS[i % len(CHAIN_LENGTHS)], kind, used_questions)
        chain = draw_chain(problem, kind, rng)
        meta = {
            "kind": kind,
            "valid": is_valid_chain(problem, chain),
            "seed": seed,
            "paraphrases": paraphrase_question(problem, rng),
        }
        texts = [
            step_text(k, step, problem.counted_object)
            for k, step in enumerate(chain, start=1)
            if step
        ]
        items.append(problem_item(problem, f"mx-{seed}-{i:04d}", texts, meta))
    return Suite.from_items(f"{name}-{seed}", items)


def is_valid_chain(problem: Problem, chain: StatedChain) -> bool:
    """Return whether a chain states every step of the problem truly and in order."""
    return chain == true_chain(problem)


def draw_chain(problem: Problem, kind: str, rng: random.Random) -> StatedChain:
    """Draw a chain of one of the kinds of SHARES."""
    chain: StatedChain = [*true_chain(problem)]
    steps = true_chain(problem)
    if kind == "hint_followed":
        if problem.hint is None:
            raise ValueError("a chain that follows a hint needs a problem with one")
        chain[-1] = StatedStep(steps[-1].number_before, steps[-1].change, problem.hint[1])
    elif kind == "wrong":
        step_index = rng.randrange(len(steps))
        wrong_value = rng.choice(
            [value for value in range(MAX_NUMBER + 1) if value != steps[step_index].number_after]
        )
        chain[step_index] = StatedStep(
            steps[step_index].number_before, steps[step_index].change, wrong_value
        )
    elif kind == "missing":
        chain[rng.randrange(len(steps))] = None
    elif kind == "random":
        values = [problem.totals[0], *(rng.randint(0, MAX_NUMBER) for _ in steps)]
        chain = [StatedStep(values[i], step.change, values[i + 1]) for i, step in enumerate(steps)]
    elif kind in ("carried", "misread"):
        first_shifted_index = rng.randrange(len(steps)) + 1 if kind == "carried" else 0
        shifted_totals = problem.totals[first_shifted_index:]
        shifts = [
            shift_candidate
            for shift_candidate in range(-min(shifted_totals), MAX_NUMBER - max(shifted_totals) + 1)
            if shift_candidate
        ]
        shift = rng.choice(shifts)
        totals = [
            *problem.totals[:first_shifted_index],
            *(value + shift for value in shifted_totals),
        ]
        chain = [StatedStep(totals[i], step.change, totals[i + 1]) for i, step in enumerate(steps)]
    return chain


def _new_problem(rng: random.Random, length: int, kind: str, used_questions: set[str]) -> Problem:
    """Draw a problem with an unused question, and mark the question as used."""
    while True:
        problem = make_problem(rng, length, hint="wrong" if kind in HINTED_KINDS else "")
        if problem.question not in used_questions:
            used_questions.add(problem.question)
            return problem
