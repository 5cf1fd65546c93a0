"""Chains that state only operations, ``Step 1: plus 5.``; the start value is in the question.

The questions are those of ``wordproblems``; here no step restates a total, so the answer needs the
question's start value and every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from cotlab.suites.wordproblems import MAX_NUMBER, Problem, make_suite

OPERATION_PIECES = (" plus", " minus")
"""Tokens of these steps that the shared vocabulary lacks."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What one step states."""

    is_gain: bool
    """Whether the amount is added; else it is subtracted."""
    amount: int
    """What is added or subtracted; at least 0."""

    @property
    def change(self) -> int:
        """Return what the step adds to the total."""
        return self.amount if self.is_gain else -self.amount


def true_operations(problem: Problem) -> list[Operation]:
    """Return the operations of a problem."""
    return [Operation(change > 0, abs(change)) for change in problem.changes]


def operation_text(step_number: int, operation: Operation, opening: str = "") -> str:
    """Return one step, such as ``Step 2: minus 3.``; ``step_number`` counts from 1."""
    sign = "plus" if operation.is_gain else "minus"
    return f"Step {step_number}: {opening}{sign} {operation.amount}."


def operation_steps(problem: Problem) -> list[str]:
    """Return the texts of a problem's chain."""
    return [operation_text(i + 1, step) for i, step in enumerate(true_operations(problem))]


def sum_of_operations(problem: Problem, operations: Sequence[Operation]) -> int:
    """Return the start value plus the operations, brought into [0, MAX_NUMBER] once at the end.

    True totals keep away from both ends, so leaving out or changing any one operation of a
    problem gives another sum.
    """
    total = problem.totals[0] + sum(operation.change for operation in operations)
    return min(max(total, 0), MAX_NUMBER)


make_operations_suite = partial(make_suite, name="operations", write_chain=operation_steps)
"""Makes the questions of ``wordproblems`` of the same seed, with chains of operations."""
