"""A process reward model of the organisms' language: chains with one known mistake, its check."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from cotlab.core.errors import CotlabError
from cotlab.core.requests import StepRewards
from cotlab.organisms.curriculum import Recipe, TextBuilder, TrainingExample
from cotlab.organisms.gate import Gate, QualityCheck
from cotlab.organisms.restating import sample_step_styles
from cotlab.stats.calibration import auroc
from cotlab.suites.wordproblems import (
    MAX_NUMBER,
    TOKEN_PATTERN,
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
LAYOUT = {"question": "Q: {question}\n", "step_end": "\n"}
"""How its texts are written: the question as the organisms read it, each step on a line."""
_CLEAN_SHARE = 0.25
"""Share of training chains without a mistake."""
_INSIDE_WEIGHT, _END_WEIGHT, _MISTAKE_WEIGHT = 0.3, 1.0, 2.0


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
    """Draw a problem, and a chain that is right with a probability, or has one mistake."""
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
    changes = problem.changes[first_wrong + 1 :]
    totals = list(accumulate(changes, initial=wrong_step.number_after))
    if min(totals) < 0 or max(totals) > MAX_NUMBER:
        return None
    return list(map(StatedStep, totals, changes, totals[1:]))


def draw_judged(rng: random.Random, recipe: Recipe, mode: str) -> TrainingExample:
    """Draw one training text with its labels."""
    return label_chain(make_judged_chain(rng, _CLEAN_SHARE))


def label_chain(chain: JudgedChain) -> TrainingExample:
    """Return a chain's text with the labels of its steps' tokens; the question has none.

    A token in a step weighs less than its end, where the model is read, and the first mistake more.
    Only tokens of a right chain are learnt as language.
    """
    builder, labels, is_right = TextBuilder(), [], True
    builder.add_text(LAYOUT["question"].replace("{question}", chain.problem.question), 0.0)
    for step_index, step in enumerate(chain.steps):
        step_pieces = TOKEN_PATTERN.findall(step + LAYOUT["step_end"])
        is_first_wrong = step_index == chain.first_wrong
        wrong_index = _wrong_piece(step_pieces, chain) if is_first_wrong else len(step_pieces)
        for i, piece in enumerate(step_pieces):
            builder.add_text(piece, float(is_right and i < wrong_index))
            is_right = is_right and i != wrong_index
            if i == len(step_pieces) - 1:
                weight = _MISTAKE_WEIGHT if is_first_wrong else _END_WEIGHT
            else:
                weight = _END_WEIGHT if i == wrong_index else _INSIDE_WEIGHT
            labels.append((len(builder.pieces) - 1, int(is_right), weight))
    # the layers read all tokens but the last, which no label has
    return TrainingExample(
        (*builder.pieces, "<pad>"), (*builder.weights, 0.0), labels=tuple(labels)
    )


def _wrong_piece(pieces: list[str], chain: JudgedChain) -> int:
    """Return the index of the token that makes the first wrong step wrong."""
    # "Step", " 1", ":", " 7", " +", " 5", " =", " 12": the numbers are step, total, amount, result
    number_indices = [i for i, piece in enumerate(pieces) if piece.strip().isdigit()]
    if chain.kind == "operation":
        return number_indices[1] + 1
    return number_indices[{"total": 1, "amount": 2, "sum": 3}[chain.kind or "sum"]]


def check_process_reward(gate: Gate) -> None:
    """Measure the model on fresh chains, half of them with a mistake.

    AUROC of right steps against first wrong ones, for each kind of mistake as well, and of chains
    by their least probability; the share of wrong chains whose first mistake is located; and that
    of right chains in which one is located. The steps after a first mistake count for no figure:
    whether one that goes on from a false value is wrong too is a matter of definition.
    """
    chains = [make_judged_chain(gate.rng, clean_share=0.5) for _ in range(gate.n_items)]
    replies = gate.send(
        [StepRewards(gate.model.ref, chain.problem.question, chain.steps) for chain in chains]
    )
    right: list[float] = []
    wrong_by_kind: dict[str, list[float]] = {kind: [] for kind in MISTAKE_KINDS}
    least_of_sound, least_of_unsound, hits, alarms = [], [], [], []
    for chain, reply in zip(chains, replies, strict=True):
        rewards = reply.numbers or ()
        located = next((i for i, reward in enumerate(rewards) if reward < 0.5), None)
        right += rewards[: chain.first_wrong]
        if chain.first_wrong is None or chain.kind is None:
            least_of_sound.append(min(rewards))
            alarms.append(located is not None)
        else:
            wrong_by_kind[chain.kind].append(rewards[chain.first_wrong])
            least_of_unsound.append(min(rewards))
            hits.append(located == chain.first_wrong)
    wrong = [reward for rewards in wrong_by_kind.values() for reward in rewards]
    for figure, high, low in (
        ("step_auroc", right, wrong),
        ("chain_auroc", least_of_sound, least_of_unsound),
        *((f"step_auroc_{kind}", right, wrong_by_kind[kind]) for kind in MISTAKE_KINDS),
    ):
        value = auroc([*high, *low], [1] * len(high) + [0] * len(low))
        if value is None:
            raise CotlabError(f"the check has no case of both kinds for {figure}: more chains")
        gate.checks.append(QualityCheck(figure, value, 0.99, 1, len(high) + len(low)))
    gate.add("first_mistake_located", hits, 0.9)
    gate.add("false_alarms", alarms, 0, 0.05)
