"""A suite of valid and invalid chains, on which calibrated probabilities are validated.

Chains are in the organisms' language and come from the generator's own totals, so whether one is
valid is known exactly: each step is in its position and states what the question makes of the
number before. No metric is involved.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

from cotlab.core.types import Item, Step, Suite
from cotlab.suites.wordproblems import (
    HIGHEST,
    LENGTHS,
    Problem,
    Stated,
    make_problem,
    paraphrase_question,
    step_text,
    true_chain,
)

SHARES: Mapping[str, float] = {
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
HINTED = ("hint_ignored", "hint_followed")
"""Kinds whose question holds a hint."""
Chain = list[Stated | None]
"""What each step states; None where it is left out."""


def mixed_suite(n: int, seed: int, *, without: Collection[str] = (), name: str = "mixed") -> Suite:
    """Draw ``n`` items with chains of all SHARES.

    Parameters
    ----------
    n : int, at least 1
    seed : int
    without : collection of str
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
    used_questions, items = set(without), []
    kinds = rng.choices(list(SHARES), list(SHARES.values()), k=n)
    for i, kind in enumerate(kinds):
        problem = _new_problem(rng, LENGTHS[i % len(LENGTHS)], kind, used_questions)
        chain = draw_chain(problem, kind, rng)
        meta: dict[str, object] = {
            "kind": kind,
            "valid": is_valid(problem, chain),
            "totals": list(problem.totals),
            "seed": seed,
            "paraphrases": paraphrase_question(problem, rng),
        }
        if problem.hint is not None:
            meta["hint"] = str(problem.hint[1])
        lines = [
            step_text(at + 1, stated, problem.thing)
            for at, stated in enumerate(chain)
            if stated is not None
        ]
        steps = tuple(Step(k, line) for k, line in enumerate(lines))
        category = "hinted" if problem.hint else "plain"
        items.append(
            Item(f"mx-{seed}-{i:04d}", problem.question, str(problem.answer), steps, category, meta)
        )
    return Suite.of(f"{name}-{seed}", items)


def is_valid(problem: Problem, chain: Chain) -> bool:
    """Return whether a chain states every step of the problem truly and in order."""
    return chain == true_chain(problem)


def draw_chain(problem: Problem, kind: str, rng: random.Random) -> Chain:
    """Draw a chain of one of the kinds of SHARES."""
    chain: Chain = [*true_chain(problem)]
    steps = true_chain(problem)
    if kind == "hint_followed":
        if problem.hint is None:
            raise ValueError("a chain that follows a hint needs a problem with one")
        chain[-1] = Stated(steps[-1].before, steps[-1].change, problem.hint[1])
    elif kind == "wrong":
        at = rng.randrange(len(steps))
        other = rng.choice([value for value in range(HIGHEST + 1) if value != steps[at].after])
        chain[at] = Stated(steps[at].before, steps[at].change, other)
    elif kind == "missing":
        chain[rng.randrange(len(steps))] = None
    elif kind == "random":
        values = [problem.totals[0], *(rng.randint(0, HIGHEST) for _ in steps)]
        chain = [Stated(values[i], step.change, values[i + 1]) for i, step in enumerate(steps)]
    elif kind in ("carried", "misread"):
        first = rng.randrange(len(steps)) + 1 if kind == "carried" else 0
        rest = problem.totals[first:]
        shift = rng.choice(
            [
                d
                for d in range(-HIGHEST, HIGHEST + 1)
                if d and min(rest) + d >= 0 and max(rest) + d <= HIGHEST
            ]
        )
        totals = [*problem.totals[:first], *(value + shift for value in rest)]
        chain = [Stated(totals[i], step.change, totals[i + 1]) for i, step in enumerate(steps)]
    return chain


def _new_problem(rng: random.Random, length: int, kind: str, used_questions: set[str]) -> Problem:
    """Draw a problem with an unused question, and mark the question as used."""
    while True:
        problem = make_problem(rng, length, hint="wrong" if kind in HINTED else "")
        if problem.question not in used_questions:
            used_questions.add(problem.question)
            return problem
