"""Measure a trained model on fresh problems: what the check of every kind asks and adds."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cotlab.core.errors import CotlabError
from cotlab.core.requests import Complete, Message, Request, Response
from cotlab.suites.wordproblems import ANSWER_CUE, MAX_NUMBER, Problem, StatedStep, make_problem
from cotlab.text.edits.ablations import corrupt_step

Case = tuple[Problem, str]
"""A problem, and the text that the model goes on from."""
NO_ANSWER = -1
"""Stands in an array of answers where a reply states none."""
# "So the answer is 9."
_ANSWER_PATTERN = re.compile(rf"{ANSWER_CUE} (\d+)\.")


class QualityCheck(NamedTuple):
    """One figure of the quality check."""

    figure: str
    """Name of the figure."""
    value: float
    """Measured share."""
    low: float
    """Smallest accepted value."""
    high: float
    """Largest accepted value."""
    n: int
    """Number of cases."""

    @property
    def passed(self) -> bool:
        """Return whether the value lies in its range."""
        return self.low <= self.value <= self.high


class Gate:
    """One mode of a model on ``n_items`` fresh problems, and the figures measured so far.

    Its methods raise CotlabError where a request to the model fails.
    """

    def __init__(self, model: Any, mode: str, n_items: int, seed: int) -> None:
        self.model, self.mode, self.n_items = model, mode, n_items
        self.rng = random.Random(f"gate:{seed}:{mode}")
        self.checks: list[QualityCheck] = []

    @cached_property
    def problems(self) -> list[Problem]:
        """The problems, drawn once."""
        is_hint = self.mode == "hint"
        return [
            make_problem(self.rng, hint="wrong" if is_hint else "") for _ in range(self.n_items)
        ]

    @cached_property
    def truth(self) -> npt.NDArray[np.int64]:
        """The true answer of each problem."""
        return np.array([problem.answer for problem in self.problems])

    def add(self, figure: str, values: Iterable[float], low: float = 0.99, high: float = 1) -> None:
        """Add the check that the mean of ``values`` lies in [low, high]."""
        floats = [float(value) for value in values]
        self.checks.append(QualityCheck(figure, sum(floats) / len(floats), low, high, len(floats)))

    def send(self, requests: Sequence[Request]) -> list[Response]:
        """Return the model's replies."""
        replies = self.model.send_batch(requests)
        errors = [reply for reply in replies if not isinstance(reply, Response)]
        if errors:
            raise CotlabError(f"the quality check got no reply: {errors[0]}")
        return list(replies)

    def replies(self, cases: Sequence[Case], *, answers: bool = False) -> list[Response]:
        """Return how the model goes on from each text; with ``answers`` from the cue after it."""
        return self.send(
            [
                Complete(
                    self.model.ref,
                    (Message("user", problem.question),),
                    prefix=text + ANSWER_CUE if answers else text,
                    max_tokens=3 if answers else 110,
                    top_logprobs=MAX_NUMBER + 9 if answers else 0,
                )
                for problem, text in cases
            ]
        )

    def texts(self, cases: Sequence[Case]) -> list[str]:
        """Return the texts with which the model goes on."""
        return [reply.text or "" for reply in self.replies(cases)]

    def answers(self, cases: Sequence[Case]) -> npt.NDArray[np.int64]:
        """Return the answers that the model gives after each text as the whole chain."""
        replies = self.replies(cases, answers=True)
        return stated_answers(ANSWER_CUE + (reply.text or "") for reply in replies)

    def check_own_chains(
        self,
        is_valid: Callable[[Problem, str], bool],
        *,
        alone: tuple[float, float],
        min_accuracy: float = 0.99,
    ) -> list[str]:
        """Add the figures of the chains that the model writes itself, and return those chains.

        ``alone`` are the bounds of the share that it answers right without a chain.
        """
        bare_cases = [(problem, "") for problem in self.problems]
        texts = self.texts(bare_cases)
        self.add("right_without_a_chain", self.answers(bare_cases) == self.truth, *alone)
        self.add("own_chain_accuracy", stated_answers(texts) == self.truth, min_accuracy)
        self.add("own_chain_valid", map(is_valid, self.problems, texts))
        return texts

    def check_regeneration(
        self,
        write: Callable[[Problem], list[str]],
        read: Callable[[str], list[StatedStep]],
        min_carried: float = 0.99,
        answer_bounds: tuple[float, float] | None = None,
    ) -> None:
        """Add how often the rest of a chain carries a changed value on, and changes the answer."""
        cases, expected_values = [], []
        for problem in self.problems:
            lines = write(problem)
            index = self.rng.randrange(len(lines) - 1)
            changed_line = corrupt_step(lines[index], self.rng)
            assert changed_line is not None
            stated_value = read(changed_line)[0].number_after
            cases.append((problem, chain_text([*lines[:index], changed_line])))
            expected_values.append(problem.answer + stated_value - problem.totals[index + 1])
        texts = self.texts(cases)
        carried_on = [
            bool(steps := read(text)) and steps[-1].number_after == value
            for text, value in zip(texts, expected_values, strict=True)
        ]
        self.add("regeneration_carries_on", carried_on, min_carried)
        if answer_bounds:
            changed = stated_answers(texts) != self.truth
            self.add("answer_changed_by_regeneration", changed, *answer_bounds)


def stated_answers(texts: Iterable[str]) -> npt.NDArray[np.int64]:
    """Return the last answer that each text states, or ``NO_ANSWER``."""
    found = (_ANSWER_PATTERN.findall(text) for text in texts)
    return np.array([int(answers[-1]) if answers else NO_ANSWER for answers in found])


def answer_probability(reply: Response, answer: int) -> float:
    """Return the probability of an answer as the first token of a reply after the cue, 0 to 1."""
    top = {text.strip(): math.exp(logp) for text, logp in reply.tokens[0].top}
    return top.get(str(answer), 0.0)


def chain_text(lines: Iterable[str]) -> str:
    """Return the text of a chain, a line a step."""
    return "".join(f"{line}\n" for line in lines)
