"""The links of a chain by arithmetic alone: false equations, and which steps build on which."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from cotlab.text.arithmetic.equations import Equation, read_equations
from cotlab.text.arithmetic.lexer import tokens_of

LINKS = ("forward", "reverse")
_COUNT = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen"
)
_NAMED = {
    word: Fraction(n) for n, word in enumerate(f"{_COUNT} eighteen nineteen twenty".split())
} | {
    "twice": Fraction(2),
    "double": Fraction(2),
    "pair": Fraction(2),
    "triple": Fraction(3),
    "dozen": Fraction(12),
    "hundred": Fraction(100),
    "half": Fraction(1, 2),
    "third": Fraction(1, 3),
    "quarter": Fraction(1, 4),
}
_WORD = re.compile(r"[a-z]{3,9}")  # "twelve"


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
    def checked(self) -> bool:
        """Whether at least one equation was decided."""
        return any(e.holds is not None for e in self.equations)

    @property
    def sound(self) -> bool:
        """Whether there are equations and every one of them holds."""
        return bool(self.equations) and all(e.holds for e in self.equations)

    @property
    def results(self) -> frozenset[Fraction]:
        """The values that its equations compute, without their signs."""
        return frozenset(abs(e.result) for e in self.equations if e.result is not None)


class Verdict(NamedTuple):
    """What arithmetic decides of a link."""

    value: float | None
    """1.0, 0.0, or None where it cannot decide."""
    reason: str
    """Why it is 0, or cannot be decided."""
    where: tuple[int, int] | None = None
    """Character range in the later step."""


def read_steps(steps: Sequence[str]) -> tuple[StepReading, ...]:
    """Read each step with the values that the steps before it gave to letters.

    A letter that is given two values stands for neither from then on, so that a renamed or solved
    unknown raises no alarm.
    """
    known: dict[str, Fraction] = {}
    reassigned: set[str] = set()
    out = []
    for text in steps:
        reading = read_equations(text, known)
        reassigned |= {
            name for name, value in reading.names.items() if known.get(name, value) != value
        }
        known = {
            name: value
            for name, value in {**known, **reading.names}.items()
            if name not in reassigned
        }
        computing = tuple(e for e in reading.equations if e.operations)
        others = (*reading.definitions, *(e for e in reading.equations if not e.operations))
        out.append(StepReading(text, computing, others, numbers_in(text)))
    return tuple(out)


def numbers_in(text: str) -> frozenset[Fraction]:
    """Return the numbers that a text states, without their signs.

    Digits, percentages as both, and small numbers in words.
    """
    numbers = {abs(t.value) for t in tokens_of(text) if t.kind == "num" and t.value is not None}
    return frozenset(
        numbers | {_NAMED[word] for word in _WORD.findall(text[:20_000].lower()) if word in _NAMED}
    )


def compute_link(question: str, steps: Sequence[StepReading], j: int, link: str) -> Verdict:
    """Decide the link to step j by arithmetic: ``forward`` from j = 0, ``reverse`` from j = 1.

    ``forward``, do the question and the steps before support step j: 0 where step j holds a false
    equation; 1 where all its equations hold and each of their operands stands in the question, in a
    step before, or comes out of an equation of its own.

    ``reverse``, does step j support step j − 1: 0 where either holds a false equation (nothing
    supports a false one, and a false one supports nothing); 1 where the equations of both hold and
    step j takes up a value that comes out of step j − 1.
    """
    now = steps[j]
    if now.mistake is not None:
        return Verdict(
            0.0, f"step {j + 1} holds a false equation", (now.mistake.start, now.mistake.end)
        )
    if link == "reverse":
        before = steps[j - 1]
        if before.mistake is not None:
            return Verdict(0.0, f"step {j} holds a false equation")
        if not (now.sound and before.sound):
            return Verdict(None, f"the equations of steps {j} and {j + 1} do not decide it")
        taken = {abs(number) for e in now.equations for number in e.numbers} & before.results
        return (
            Verdict(1.0, "")
            if taken
            else Verdict(None, f"step {j + 1} takes up no value of step {j}")
        )
    if not now.sound:
        return Verdict(
            None,
            (
                f"step {j + 1} holds no equation"
                if not now.equations
                else f"an equation of step {j + 1} is undecided: {_undecided(now)}"
            ),
        )
    at_hand = numbers_in(question).union(*(step.numbers | step.results for step in steps[:j]))
    for equation in now.equations:
        strange = next((n for n in equation.numbers if abs(n) not in at_hand), None)
        if strange is not None:
            return Verdict(
                None,
                f"the operand {_number_text(strange)} of step {j + 1} stands nowhere before",
                (equation.start, equation.end),
            )
        at_hand |= {abs(equation.result)} if equation.result is not None else set()
    return Verdict(1.0, "")


def statements_of(steps: Sequence[StepReading], target: StepReading) -> str:
    """Return every equation of some steps as a list, to verify that ``target`` follows.

    A letter to which ``target`` gives another value is used anew (n = 1, then n = 2): what rests on
    its first is left out.
    """
    statements = [
        (step.text[e.start : e.end], e)
        for step in steps
        for e in (*step.statements, *step.equations)
    ]
    redefined = {(e.names[0], e.result) for e in target.statements if _gives_value(e)}
    reassigned = {
        e.names[0]
        for _, e in statements
        if _gives_value(e) and any(n == e.names[0] and v != e.result for n, v in redefined)
    }
    return "; ".join(
        text
        for text, e in statements
        if not (reassigned & {*e.names} and (e.holds or _gives_value(e)))
    )


def _gives_value(statement: Equation) -> bool:
    return (
        not statement.operations
        and len(statement.names) == 1
        and statement.result is not None
        and not statement.numbers
    )


def open_statements(step: StepReading) -> str:
    """Return the equations of a step that arithmetic leaves undecided, as a list."""
    return "; ".join(
        step.text[e.start : e.end] for e in (*step.statements, *step.equations) if e.holds is None
    )


def share_ok(steps: Sequence[StepReading]) -> float | None:
    """Return the share of steps without a false equation, of those with a decided one, or None."""
    checked = [step for step in steps if step.checked]
    return sum(step.mistake is None for step in checked) / len(checked) if checked else None


def _undecided(step: StepReading) -> str:
    return next((e.reason for e in step.equations if e.holds is None), "")


def _number_text(value: Fraction) -> str:
    return (
        str(value)
        if value.denominator == 1
        else f"{float(value):g}"
        if abs(value) < 10**15
        else "of many digits"
    )
