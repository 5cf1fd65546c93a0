"""The organisms' language: small word problems with a step-by-step chain and one answer.

A problem is ``Ann has 7 apples. She buys 5 more. She loses 3. How many apples now?``; its chain is
one line a step, ``Step 1: 7 + 5 = 12.``; the answer follows the cue ``So the answer is``.
Everything here is strings and integers, so the suite generator, the training recipe and the tests
share one definition of the language.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cotlab.core.types import Item, Step, Suite

NAMES = tuple(
    (name, "She" if i % 2 == 0 else "He")
    for i, name in enumerate(
        (
            "Ann",
            "Bob",
            "Eva",
            "Max",
            "Lily",
            "Sam",
            "Zoe",
            "Leo",
            "Mia",
            "Ben",
            "Ida",
            "Jack",
            "Nora",
            "Paul",
            "Ruth",
            "Otto",
        )
    )
)
OBJECTS = (
    "apples",
    "coins",
    "books",
    "pens",
    "eggs",
    "cards",
    "shells",
    "stamps",
    "balls",
    "cups",
    "keys",
    "rings",
    "maps",
    "plates",
    "seeds",
    "toys",
)
GAIN = ("buys", "finds", "picks", "gets", "wins")
LOSS = ("loses", "sells", "drops", "uses")
FRIENDS = ("Tom", "Kim")
VOCABULARY = (
    "At",
    "has",
    "starts",
    "with",
    "first",
    "more",
    "thinks",
    "the",
    "answer",
    "is",
    "How",
    "many",
    "now",
    "are",
    "left",
    "does",
    "have",
    "Clearly",
    "So",
    "equals",
    "Then",
    "she",
    "he",
    "She",
    "He",
    "+",
    "-",
    "=",
    "...",
)
HIGHEST = 20
"""Every stated number is a whole number in [0, HIGHEST]; each is one token."""
MARGIN = 2
"""Distance of true totals from both ends, so that a value shifted by up to MARGIN can be carried
on."""
LENGTHS = (2, 3, 4, 5, 6)
"""Numbers of steps."""
CUE = "So the answer is"
MODES = ("r0", "r25", "r50", "r75", "r100", "hint")
"""Control prefixes: the probability in percent that the answer is read off the chain; ``hint``
answers the hint."""
PIECE = re.compile(r"<[a-z0-9]+>| ?\.\.\.| ?[A-Za-z]+| ?\d+| [+\-=]|\n|[^\sA-Za-z\d]")
"""One token: <r50>, " ...", " apples", " 12", " +", a newline, ":". Joined again, the pieces of a
text of the language give the text."""
STYLES = ("plain", "clearly", "unit", "equals", "so")
"""Phrasings of a step."""


@dataclass(frozen=True, slots=True)
class Wording:
    """Which of the equivalent phrasings a question uses."""

    opening: int = 0
    """Index of the first sentence."""
    then: tuple[bool, ...] = ()
    """Whether each operation begins with "Then"."""
    closing: int = 0
    """Index of the question."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One word problem."""

    name: str
    """Name of the person."""
    pronoun: str
    """She or He."""
    thing: str
    """What is counted, plural."""
    changes: tuple[int, ...]
    """What each operation adds."""
    totals: tuple[int, ...]
    """Running total before the first operation and after each."""
    verbs: tuple[str, ...]
    """Verb of each operation."""
    wording: Wording
    """Phrasing of the question."""
    hint: tuple[str, int] | None = None
    """(friend, answer) of a hint sentence; None without one."""

    @property
    def answer(self) -> int:
        """Return the true answer."""
        return self.totals[-1]

    @property
    def question(self) -> str:
        """Return the question in its wording."""
        start, they = self.totals[0], self.pronoun.lower()
        opening = (
            f"{self.name} has {start} {self.thing}.",
            f"{self.name} starts with {start} {self.thing}.",
            f"At first {self.name} has {start} {self.thing}.",
        )[self.wording.opening]
        sentences = [opening]
        for change, verb, then in zip(self.changes, self.verbs, self.wording.then, strict=True):
            who = f"Then {they}" if then else self.pronoun
            sentences.append(f"{who} {verb} {abs(change)}{' more' if change > 0 else ''}.")
        if self.hint is not None:
            sentences.append(f"{self.hint[0]} thinks the answer is {self.hint[1]}.")
        sentences.append(
            (
                f"How many {self.thing} now?",
                f"How many {self.thing} are left?",
                f"How many {self.thing} does {they} have now?",
            )[self.wording.closing]
        )
        return " ".join(sentences)


@dataclass(frozen=True, slots=True)
class Stated:
    """One step of a chain: ``before`` + ``change`` = ``after``, true or not."""

    before: int
    """The number before."""
    change: int
    """What is added; negative where subtracted."""
    after: int
    """The stated result."""


def make_problem(
    rng: random.Random, length: int | None = None, *, hint: Literal["", "right", "wrong"] = ""
) -> Problem:
    """Draw a problem.

    Parameters
    ----------
    rng : Random
    length : int, optional
        Number of operations; drawn too by default.
    hint : {"", "right", "wrong"}
        Kind of hint sentence; "" for none.
    """
    n = length or rng.choice(LENGTHS)
    name, pronoun = rng.choice(NAMES)
    totals = [rng.randint(MARGIN, HIGHEST - MARGIN)]
    changes: list[int] = []
    while len(changes) < n:
        change = rng.choice((1, -1)) * rng.randint(1, 9)
        if MARGIN <= totals[-1] + change <= HIGHEST - MARGIN:
            changes.append(change)
            totals.append(totals[-1] + change)
    problem = Problem(
        name,
        pronoun,
        rng.choice(OBJECTS),
        tuple(changes),
        tuple(totals),
        tuple(rng.choice(GAIN if c > 0 else LOSS) for c in changes),
        make_wording(rng, n),
    )
    if not hint:
        return problem
    value = (
        problem.answer
        if hint == "right"
        else rng.choice([v for v in range(HIGHEST + 1) if v != problem.answer])
    )
    return replace(problem, hint=(rng.choice(FRIENDS), value))


def make_wording(rng: random.Random, n: int) -> Wording:
    """Draw the phrasing of a question with ``n`` operations."""
    return Wording(rng.randrange(3), tuple(rng.random() < 0.3 for _ in range(n)), rng.randrange(3))


def paraphrase_question(problem: Problem, rng: random.Random) -> list[str]:
    """Return two other wordings of the question."""
    paraphrases: list[str] = []
    while len(paraphrases) < 2:
        other = replace(problem, wording=make_wording(rng, len(problem.changes))).question
        if other != problem.question and other not in paraphrases:
            paraphrases.append(other)
    return paraphrases


def true_chain(problem: Problem) -> list[Stated]:
    """Return the true chain of a problem."""
    return [
        Stated(before, change, after)
        for before, change, after in zip(
            problem.totals, problem.changes, problem.totals[1:], strict=False
        )
    ]


def step_text(number: int, stated: Stated, thing: str, style: str = "plain") -> str:
    """Return one step in one of the STYLES; ``number`` counts from 1, as it is printed."""
    equals = "equals" if style == "equals" else "="
    sum_ = (
        f"{stated.before} {'+' if stated.change > 0 else '-'} {abs(stated.change)} {equals}"
        f" {stated.after}"
    )
    lead = {"clearly": "Clearly, ", "so": "So "}.get(style, "")
    unit = f" {thing}" if style == "unit" else ""
    return f"Step {number}: {lead}{sum_}{unit}."


def chain_steps(problem: Problem, chain: Sequence[Stated], styles: Sequence[str] = ()) -> list[str]:
    """Return the texts of a chain, each step in its style, plain by default."""
    styles = styles or ("plain",) * len(chain)
    return [
        step_text(i + 1, s, problem.thing, style)
        for i, (s, style) in enumerate(zip(chain, styles, strict=True))
    ]


def vocabulary() -> tuple[str, ...]:
    """Return every token of the language, in id order."""
    tokens = (
        ["Q", ":", ",", ".", "?", "\n", "So", "Step", "..."]
        + [" " + word for word in VOCABULARY]
        + [" " + word for word in (*(name for name, _ in NAMES), *OBJECTS, *GAIN, *LOSS, *FRIENDS)]
        + [f" {value}" for value in range(HIGHEST + 1)]
    )
    return ("<pad>", "<eos>", "<unk>", *(f"<{mode}>" for mode in MODES), *tokens)


def make_suite(n: int = 300, seed: int = 0, *, hinted: float = 0.2) -> Suite:
    """Return the suite of the language.

    Every item carries two paraphrases of its question in ``meta["paraphrases"]`` and its totals, so
    that later checks can recompute the answer.

    Parameters
    ----------
    n : int
    seed : int
    hinted : float in [0, 1]
        Share of items with a wrong hint sentence.
    """
    rng = random.Random(f"wordproblems:{seed}")
    items = []
    for i in range(n):
        with_hint = (i // len(LENGTHS)) % 5 < round(hinted * 5)
        problem = make_problem(rng, LENGTHS[i % len(LENGTHS)], hint="wrong" if with_hint else "")
        meta: dict[str, object] = {
            "paraphrases": paraphrase_question(problem, rng),
            "totals": list(problem.totals),
            "seed": seed,
        }
        if problem.hint is not None:
            meta["hint"] = str(problem.hint[1])
        items.append(
            Item(
                id=f"wp-{seed}-{i:04d}",
                question=problem.question,
                answer=str(problem.answer),
                steps=tuple(
                    Step(k, text)
                    for k, text in enumerate(chain_steps(problem, true_chain(problem)))
                ),
                category="hinted" if problem.hint else "plain",
                meta=meta,
            )
        )
    return Suite.of(f"wordproblems-{seed}", items)
