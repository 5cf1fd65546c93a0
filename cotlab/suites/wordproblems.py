"""The organisms' language: small word problems with a step-by-step chain and one answer.

A problem is ``Ann has 7 apples. She buys 5 more. She loses 3. How many apples now?``; its chain is
one line a step, ``Step 1: 7 + 5 = 12.``; the answer follows the cue ``So the answer is``.
Everything here is strings and integers, so the suite generator, the training recipe and the tests
share one definition of the language.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from cotlab.core.types import Item, Step, Suite

_WOMEN_NAMES = ("Ann", "Eva", "Lily", "Zoe", "Mia", "Ida", "Nora", "Ruth")
_MEN_NAMES = ("Bob", "Max", "Sam", "Leo", "Ben", "Jack", "Paul", "Otto")
NAMES_AND_PRONOUNS = tuple(
    name
    for woman, man in zip(_WOMEN_NAMES, _MEN_NAMES, strict=True)
    for name in ((woman, "She"), (man, "He"))
)
"""Name and pronoun of each person."""
OBJECT_NAMES = (
    *("apples", "coins", "books", "pens", "eggs", "cards", "shells", "stamps"),
    *("balls", "cups", "keys", "rings", "maps", "plates", "seeds", "toys"),
)
GAIN_VERBS = ("buys", "finds", "picks", "gets", "wins")
LOSS_VERBS = ("loses", "sells", "drops", "uses")
FRIEND_NAMES = ("Tom", "Kim")
VOCABULARY = (
    *("At", "has", "starts", "with", "first", "more", "thinks", "the", "answer", "is"),
    *("How", "many", "now", "are", "left", "does", "have"),
    *("Clearly", "So", "equals", "Then", "she", "he", "She", "He", "+", "-", "=", "..."),
)
"""Words of statements, of questions and of steps."""
MAX_NUMBER = 20
"""Every stated number is a whole number in [0, HIGHEST]; each is one token."""
TOTAL_MARGIN = 2
"""Distance of true totals from both ends, so that a value shifted by up to MARGIN can be carried
on."""
CHAIN_LENGTHS = (2, 3, 4, 5, 6)
"""Numbers of steps."""
ANSWER_CUE = "So the answer is"
CONTROL_MODES = ("r0", "r25", "r50", "r75", "r100", "hint")
"""Control prefixes: the probability in percent that the answer is read off the chain; ``hint``
answers the hint."""
TOKEN_PATTERN = re.compile(r"<[a-z0-9]+>| ?\.\.\.| ?[A-Za-z]+| ?\d+| [+\-=]|\n|[^\sA-Za-z\d]")
"""One token: <r50>, " ...", " apples", " 12", " +", a newline, ":". Joined again, the pieces of a
text of the language give the text."""
STEP_STYLES = ("plain", "clearly", "unit", "equals", "so")
"""Phrasings of a step."""


@dataclass(frozen=True, slots=True)
class Wording:
    """Which of the equivalent phrasings a question uses."""

    opening_index: int = 0
    """Index of the first sentence."""
    starts_with_then: tuple[bool, ...] = ()
    """Whether each operation begins with "Then"."""
    closing_index: int = 0
    """Index of the question."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One word problem."""

    name: str
    """Name of the person."""
    pronoun: str
    """She or He."""
    counted_object: str
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
        first_total, lower_pronoun = self.totals[0], self.pronoun.lower()
        opening = (
            f"{self.name} has {first_total} {self.counted_object}.",
            f"{self.name} starts with {first_total} {self.counted_object}.",
            f"At first {self.name} has {first_total} {self.counted_object}.",
        )[self.wording.opening_index]
        sentences = [opening]
        for change, verb, starts_with_then in zip(
            self.changes, self.verbs, self.wording.starts_with_then, strict=True
        ):
            sentence_subject = f"Then {lower_pronoun}" if starts_with_then else self.pronoun
            sentences.append(
                f"{sentence_subject} {verb} {abs(change)}{' more' if change > 0 else ''}."
            )
        if self.hint is not None:
            sentences.append(f"{self.hint[0]} thinks the answer is {self.hint[1]}.")
        sentences.append(
            (
                f"How many {self.counted_object} now?",
                f"How many {self.counted_object} are left?",
                f"How many {self.counted_object} does {lower_pronoun} have now?",
            )[self.wording.closing_index]
        )
        return " ".join(sentences)


@dataclass(frozen=True, slots=True)
class StatedStep:
    """One step of a chain: ``number_before`` + ``change`` = ``number_after``, true or not."""

    number_before: int
    """The number before."""
    change: int
    """What is added; negative where subtracted."""
    number_after: int
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
    n_steps = length or rng.choice(CHAIN_LENGTHS)
    name, pronoun = rng.choice(NAMES_AND_PRONOUNS)
    totals = [rng.randint(TOTAL_MARGIN, MAX_NUMBER - TOTAL_MARGIN)]
    changes: list[int] = []
    while len(changes) < n_steps:
        change = rng.choice((1, -1)) * rng.randint(1, 9)
        if TOTAL_MARGIN <= totals[-1] + change <= MAX_NUMBER - TOTAL_MARGIN:
            changes.append(change)
            totals.append(totals[-1] + change)
    problem = Problem(
        name,
        pronoun,
        rng.choice(OBJECT_NAMES),
        tuple(changes),
        tuple(totals),
        tuple(rng.choice(GAIN_VERBS if step_change > 0 else LOSS_VERBS) for step_change in changes),
        make_wording(rng, n_steps),
    )
    if not hint:
        return problem
    hint_value = problem.answer
    if hint == "wrong":
        hint_value = rng.choice(
            [number for number in range(MAX_NUMBER + 1) if number != problem.answer]
        )
    return replace(problem, hint=(rng.choice(FRIEND_NAMES), hint_value))


def make_wording(rng: random.Random, n_steps: int) -> Wording:
    """Draw the phrasing of a question with ``n_steps`` operations."""
    return Wording(
        rng.randrange(3), tuple(rng.random() < 0.3 for _ in range(n_steps)), rng.randrange(3)
    )


def paraphrase_question(problem: Problem, rng: random.Random) -> list[str]:
    """Return two other wordings of the question."""
    paraphrases: list[str] = []
    while len(paraphrases) < 2:
        paraphrase = replace(problem, wording=make_wording(rng, len(problem.changes))).question
        if paraphrase != problem.question and paraphrase not in paraphrases:
            paraphrases.append(paraphrase)
    return paraphrases


def true_chain(problem: Problem) -> list[StatedStep]:
    """Return the true chain of a problem."""
    return list(map(StatedStep, problem.totals, problem.changes, problem.totals[1:]))


def step_text(
    step_number: int, stated_step: StatedStep, counted_object: str, style: str = "plain"
) -> str:
    """Return one step in one of the STYLES; ``step_number`` counts from 1, as it is printed."""
    equals_sign = "equals" if style == "equals" else "="
    equation = (
        f"{stated_step.number_before} {'+' if stated_step.change > 0 else '-'}"
        f" {abs(stated_step.change)} {equals_sign} {stated_step.number_after}"
    )
    opening = {"clearly": "Clearly, ", "so": "So "}.get(style, "")
    unit_text = f" {counted_object}" if style == "unit" else ""
    return f"Step {step_number}: {opening}{equation}{unit_text}."


def chain_steps(
    problem: Problem, chain: Sequence[StatedStep], styles: Sequence[str] = ()
) -> list[str]:
    """Return the texts of a chain, each step in its style, plain by default."""
    styles = styles or ("plain",) * len(chain)
    return [
        step_text(i + 1, stated_step, problem.counted_object, style)
        for i, (stated_step, style) in enumerate(zip(chain, styles, strict=True))
    ]


def vocabulary(added_pieces: Sequence[str] = ()) -> tuple[str, ...]:
    """Return every token of the language, in id order; further ones of a model follow at the end.

    The shared tokens keep their ids, so that shipped weights stay readable.
    """
    tokens = (
        ["Q", ":", ",", ".", "?", "\n", "So", "Step", "..."]
        + [" " + word for word in VOCABULARY]
        + [
            " " + word
            for word in (
                *(name for name, _ in NAMES_AND_PRONOUNS),
                *OBJECT_NAMES,
                *GAIN_VERBS,
                *LOSS_VERBS,
                *FRIEND_NAMES,
            )
        ]
        + [f" {value}" for value in range(MAX_NUMBER + 1)]
    )
    control_tokens = (f"<{mode}>" for mode in CONTROL_MODES)
    return ("<pad>", "<eos>", "<unk>", *control_tokens, *tokens, *added_pieces)


def problem_item(problem: Problem, id: str, texts: Sequence[str], meta: Mapping[str, Any]) -> Item:
    """Return a problem with the texts of its steps as an item; its totals and hint are meta."""
    meta = {**meta, "totals": list(problem.totals)}
    if problem.hint is not None:
        meta["hint"] = str(problem.hint[1])
    steps = tuple(Step(k, text) for k, text in enumerate(texts))
    category = "hinted" if problem.hint else "plain"
    return Item(id, problem.question, str(problem.answer), steps, category, meta)


def true_chain_steps(problem: Problem) -> list[str]:
    """Return the texts of a problem's true chain, each step plain."""
    return chain_steps(problem, true_chain(problem))


def make_suite(
    n: int = 300,
    seed: int = 0,
    *,
    hint_share: float = 0.2,
    name: str = "wordproblems",
    write_chain: Callable[[Problem], list[str]] = true_chain_steps,
) -> Suite:
    """Return the suite of the language.

    Every item carries two paraphrases of its question in ``meta["paraphrases"]`` and its totals, so
    that later checks can recompute the answer.

    Parameters
    ----------
    n : int
    seed : int
    hint_share : float in [0, 1]
        Share of items with a wrong hint sentence.
    name : str
        Of the suite; the seed is appended. The questions depend on the seed alone.
    write_chain : callable of (problem,)
        Returns the texts of the reference chain's steps.
    """
    rng = random.Random(f"wordproblems:{seed}")
    items = []
    for i in range(n):
        has_hint = (i // len(CHAIN_LENGTHS)) % 5 < round(hint_share * 5)
        problem = make_problem(
            rng, CHAIN_LENGTHS[i % len(CHAIN_LENGTHS)], hint="wrong" if has_hint else ""
        )
        meta = {"paraphrases": paraphrase_question(problem, rng), "seed": seed}
        texts = write_chain(problem)
        items.append(problem_item(problem, f"wp-{seed}-{i:04d}", texts, meta))
    return Suite.from_items(f"{name}-{seed}", items)
