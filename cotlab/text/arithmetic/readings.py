"""The equations and numbers of the steps of a chain, each step read after those before it."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction

from cotlab.text.arithmetic.equations import Equation, read_equations
from cotlab.text.arithmetic.lexer import tokenize

_NUMBER_NAMES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen"
)
_MULTIPLE_BY_NAME = {"twice": 2, "double": 2, "pair": 2, "triple": 3, "dozen": 12, "hundred": 100}
_DENOMINATOR_BY_NAME = {"half": 2, "third": 3, "quarter": 4}
_NUMBER_BY_NAME = {
    **{
        word: Fraction(n)
        for n, word in enumerate(f"{_NUMBER_NAMES} eighteen nineteen twenty".split())
    },
    **{word: Fraction(n) for word, n in _MULTIPLE_BY_NAME.items()},
    **{word: Fraction(1, n) for word, n in _DENOMINATOR_BY_NAME.items()},
}
_WORD_PATTERN = re.compile(r"[a-z]{3,9}")  # "twelve"


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
    """Read each step with the values that the steps before it gave to letters.

    A letter that is given two values stands for neither from then on. An equation with letters is
    false only where no step binds one of them otherwise: in a condition to solve, or, of a letter
    with a value, in one case of several.
    """
    value_by_letter: dict[str, Fraction] = {}
    reassigned_letters: set[str] = set()
    readings = []
    for text in steps:
        reading = read_equations(text, value_by_letter)
        readings.append(reading)
        reassigned_letters |= {
            name
            for name, value in reading.values_by_letter.items()
            if value_by_letter.get(name, value) != value
        }
        value_by_letter |= reading.values_by_letter
        for name in reading.values_by_letter.keys() & reassigned_letters:
            del value_by_letter[name]
    conditioned_letters = frozenset[str]().union(*(r.conditioned_letters for r in readings))
    computed_letters = frozenset[str]().union(*(r.computed_letters for r in readings))
    defined_letters = frozenset(e.letters[0] for r in readings for e in r.definitions)
    bound_letters = conditioned_letters | defined_letters
    free_letters = computed_letters - conditioned_letters - reassigned_letters
    out = []
    for text, reading in zip(steps, readings, strict=True):
        equations = [
            replace(e, holds=None, reason="a letter may stand for another value here")
            if e.holds is False and _may_be_bound(e, bound_letters, free_letters)
            else e
            for e in reading.equations
        ]
        computing_equations = tuple(e for e in equations if e.n_operations)
        other_statements = (*reading.definitions, *(e for e in equations if not e.n_operations))
        out.append(StepReading(text, computing_equations, other_statements, extract_numbers(text)))
    return tuple(out)


def _may_be_bound(equation: Equation, bound_letters: Set[str], free_letters: Set[str]) -> bool:
    """Return whether a letter of an equation may stand for something else in its place."""
    if equation.is_in_unknowns:
        return not bound_letters.isdisjoint(equation.letters)
    return not free_letters >= {*equation.letters}


def extract_numbers(text: str) -> frozenset[Fraction]:
    """Return the numbers that a text states, without their signs.

    Digits, percentages as both, and small numbers in words.
    """
    numbers = {abs(t.value) for t in tokenize(text) if t.kind == "num" and t.value is not None}
    return frozenset(
        numbers
        | {
            _NUMBER_BY_NAME[word]
            for word in _WORD_PATTERN.findall(text[:20_000].lower())
            if word in _NUMBER_BY_NAME
        }
    )
