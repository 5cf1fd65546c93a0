"""The equations and numbers of the steps of a chain."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from cotlab.text.arithmetic.equations import Equation, read_equations
from cotlab.text.arithmetic.expressions import MAX_CHARACTERS, NUMBER_BY_WORD, tokenize

_WORD_RE = re.compile(r"[a-z]{3,9}")  # "twelve"


@dataclass(frozen=True, slots=True)
class StepReading:
    """The equations and numbers of one step."""

    text: str
    """The step."""
    equations: tuple[Equation, ...]
    """Equations that compute something."""
    statements: tuple[Equation, ...]
    """Other statements with "=": definitions and bare equalities."""
    numbers: frozenset[Fraction]
    """Every number that the step states."""

    @property
    def mistake(self) -> Equation | None:
        """The first false equation."""
        return next((e for e in self.equations if e.holds is False), None)

    @property
    def is_checked(self) -> bool:
        """Whether at least one equation was decided."""
        return any(e.holds is not None for e in self.equations)

    @property
    def is_sound(self) -> bool:
        """Whether there are equations and every one of them holds."""
        return bool(self.equations) and all(e.holds for e in self.equations)

    @property
    def results(self) -> frozenset[Fraction]:
        """The values that its equations compute, without their signs."""
        return frozenset(abs(e.result) for e in self.equations if e.result is not None)


def read_steps(steps: Sequence[str]) -> tuple[StepReading, ...]:
    """Read each step with the values that the steps before it computed for letters.

    A letter has a value where one step alone says what it is ("A = 3 + 4 = 7"). An equation with
    letters is false only where none of them stands in an equation that cannot be computed: such
    may be a condition to solve, or one case of several.
    """
    defined_values = defaultdict[str, set[Fraction | None]](set)
    for definition in (e for text in steps for e in read_equations(text) if _is_definition(e)):
        defined_values[definition.letters[0]].add(definition.result)
    known_values: dict[str, Fraction] = {}
    equations_by_step = []
    for text in steps:
        equations_by_step.append(read_equations(text, known_values))
        known_values |= {
            e.letters[0]: e.result
            for e in equations_by_step[-1]
            if _is_definition(e)
            and e.numbers
            and e.result is not None
            and len(defined_values[e.letters[0]]) == 1
        }
    unknown_letters = frozenset(
        letter
        for equations in equations_by_step
        for e in equations
        if e.is_in_unknowns and e.n_operations
        for letter in e.letters
    )
    readings = []
    for text, equations in zip(steps, equations_by_step, strict=True):
        read = [
            replace(e, holds=None, reason="a letter may stand for another value here")
            if e.holds is False and unknown_letters.intersection(e.letters)
            else e
            for e in equations
        ]
        computing = tuple(e for e in read if e.n_operations)
        statements = tuple(e for e in read if not e.n_operations)
        readings.append(StepReading(text, computing, statements, extract_numbers(text)))
    return tuple(readings)


def _is_definition(equation: Equation) -> bool:
    return not equation.n_operations and len(equation.letters) == 1


def extract_numbers(text: str) -> frozenset[Fraction]:
    """Return the numbers that a text states, without their signs.

    In digits, and small ones in words.
    """
    words = _WORD_RE.findall(text[:MAX_CHARACTERS].lower())
    return frozenset(
        {abs(token.value) for token in tokenize(text) if token.value is not None}
        | {NUMBER_BY_WORD[word] for word in words if word in NUMBER_BY_WORD}
    )


def correct_step_share(steps: Sequence[StepReading]) -> float | None:
    """Return the share of steps without a false equation, of those with a decided one, or None."""
    checked_steps = [step for step in steps if step.is_checked]
    return (
        sum(step.mistake is None for step in checked_steps) / len(checked_steps)
        if checked_steps
        else None
    )
