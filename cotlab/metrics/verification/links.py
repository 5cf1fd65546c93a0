"""The links of a chain by arithmetic alone: false equations, and which steps build on which."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from cotlab.text.arithmetic.equations import Equation
from cotlab.text.arithmetic.readings import StepReading, extract_numbers

LINKS = ("forward", "reverse")


class LinkVerdict(NamedTuple):
    """What arithmetic decides of a link."""

    value: float | None
    """1.0, 0.0, or None where it cannot decide."""
    reason: str
    """Why it is 0, or cannot be decided."""
    where: tuple[int, int] | None = None
    """Character range in the later step."""


class KnownNumbers:
    """The numbers that a question and the steps of a chain bring in, and where first.

    Parameters
    ----------
    question : str
    steps : sequence of StepReading
    """

    def __init__(self, question: str, steps: Sequence[StepReading]) -> None:
        self._first_step_by_number = dict.fromkeys(extract_numbers(question), -1)
        for index, step in enumerate(steps):
            for number in step.numbers | step.results:
                self._first_step_by_number.setdefault(number, index)

    def stands_before(self, number: Fraction, step_index: int) -> bool:
        """Return whether a number stands in the question or in a step before ``step_index``."""
        return self._first_step_by_number.get(number, step_index) < step_index


def compute_link(
    known_numbers: KnownNumbers, steps: Sequence[StepReading], step_index: int, direction: str
) -> LinkVerdict:
    """Decide the link to step j by arithmetic: ``forward`` from j = 0, ``reverse`` from j = 1.

    ``forward``, do the question and the steps before support step j: 0 where step j holds a false
    equation; 1 where all its equations hold and each of their operands stands in the question, in a
    step before, or comes out of an equation of its own.

    ``reverse``, does step j support step j − 1: 0 where either holds a false equation (nothing
    supports a false one, and a false one supports nothing); 1 where the equations of both hold and
    step j takes up a value that comes out of step j − 1.
    """
    later_step = steps[step_index]
    if later_step.mistake is not None:
        return LinkVerdict(
            0.0,
            f"step {step_index + 1} holds a false equation",
            (later_step.mistake.start, later_step.mistake.end),
        )
    if direction == "reverse":
        earlier_step = steps[step_index - 1]
        if earlier_step.mistake is not None:
            return LinkVerdict(0.0, f"step {step_index} holds a false equation")
        if not (later_step.is_sound and earlier_step.is_sound):
            return LinkVerdict(
                None, f"the equations of steps {step_index} and {step_index + 1} do not decide it"
            )
        shared_values = {
            abs(number) for e in later_step.equations for number in e.numbers
        } & earlier_step.results
        return (
            LinkVerdict(1.0, "")
            if shared_values
            else LinkVerdict(None, f"step {step_index + 1} takes up no value of step {step_index}")
        )
    if not later_step.is_sound:
        return LinkVerdict(
            None,
            (
                f"step {step_index + 1} holds no equation"
                if not later_step.equations
                else (
                    f"an equation of step {step_index + 1} is undecided:"
                    f" {_undecided_reason(later_step)}"
                )
            ),
        )
    own_results: set[Fraction] = set()
    for equation in later_step.equations:
        unknown_operand = next(
            (
                n
                for n in equation.numbers
                if abs(n) not in own_results and not known_numbers.stands_before(abs(n), step_index)
            ),
            None,
        )
        if unknown_operand is not None:
            return LinkVerdict(
                None,
                f"the operand {_number_text(unknown_operand)} of step {step_index + 1} stands"
                " nowhere before",
                (equation.start, equation.end),
            )
        own_results |= {abs(equation.result)} if equation.result is not None else set()
    return LinkVerdict(1.0, "")


def collect_statements(steps: Sequence[StepReading], target: StepReading) -> str:
    """Return the whole equations of some steps as a list, to verify that ``target`` follows.

    A letter to which ``target`` gives another value is used anew (n = 1, then n = 2): statements
    with it are left out.
    """
    statements = [
        (step.text[e.start : e.end], e)
        for step in steps
        for e in (*step.statements, *step.equations)
        if e.is_complete
    ]
    target_definitions = {(e.letters[0], e.result) for e in target.statements if _gives_value(e)}
    reassigned_letters = {
        e.letters[0]
        for _, e in statements
        if _gives_value(e)
        and any(n == e.letters[0] and v != e.result for n, v in target_definitions)
    }
    return "; ".join(
        text for text, e in statements if not reassigned_letters.intersection(e.letters)
    )


def _gives_value(statement: Equation) -> bool:
    return (
        not statement.n_operations and len(statement.letters) == 1 and statement.result is not None
    )


def undecided_statements(step: StepReading) -> str:
    """Return the equations of a step that arithmetic leaves undecided, as a list.

    Empty where one of them cannot be decided by more computation: it is cut, denied, asked, or has
    values that are unequal but for a unit, a percentage or rounding.
    """
    undecided = [e for e in (*step.statements, *step.equations) if e.holds is None]
    if any(not e.is_complete or (e.n_operations and not _lacks_value(e)) for e in undecided):
        return ""
    return "; ".join(step.text[e.start : e.end] for e in undecided)


def has_undecided_letters(step: StepReading) -> bool:
    """Return whether an equation that arithmetic leaves undecided has a letter."""
    return any(e.letters for e in (*step.statements, *step.equations) if e.holds is None)


def _lacks_value(equation: Equation) -> bool:
    """Return whether a side of an equation has no value that arithmetic can compute."""
    return equation.is_in_unknowns or equation.result is None


def correct_step_share(steps: Sequence[StepReading]) -> float | None:
    """Return the share of steps without a false equation, of those with a decided one, or None."""
    checked_steps = [step for step in steps if step.is_checked]
    return (
        sum(step.mistake is None for step in checked_steps) / len(checked_steps)
        if checked_steps
        else None
    )


def _undecided_reason(step: StepReading) -> str:
    return next((e.reason for e in step.equations if e.holds is None), "")


def _number_text(value: Fraction) -> str:
    return (
        str(value)
        if value.denominator == 1
        else f"{float(value):g}"
        if abs(value) < 10**15
        else "of many digits"
    )


def longest_weak_run(values: Sequence[float | None], threshold: float) -> int:
    """Return the length of the longest run of values under ``threshold``; None ends a run."""
    longest_length = run_length = 0
    for value in values:
        run_length = run_length + 1 if value is not None and value < threshold else 0
        longest_length = max(longest_length, run_length)
    return longest_length
