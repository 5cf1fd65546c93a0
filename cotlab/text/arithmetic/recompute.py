"""Change one number of a question and recompute the answer through the chain's equations."""

from __future__ import annotations

import random
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from fractions import Fraction
from itertools import islice, product
from typing import NamedTuple

from cotlab.text.arithmetic.expressions import (
    MAX_TOKENS,
    NUMBER_BY_WORD,
    Token,
    evaluate,
    tokenize,
)

_NUMBER_SHIFTS = (-3, -2, -1, 1, 2, 3)
_MULTIPLES = {
    2: "half halves twice double doubles pair pairs",
    3: "third thirds triple",
    4: "quarter quarters",
    12: "dozen",
}
"""Words that name a number without being its numeral."""
_VALUE_BY_WORD = {word: value for word, value in NUMBER_BY_WORD.items() if 2 <= value <= 12} | {
    word: Fraction(value) for value, words in _MULTIPLES.items() for word in words.split()
}
_EVERYDAY_NUMBERS = frozenset(map(Fraction, (1, 2, 7, 12, 24, 52, 60, 100, 365, 1000)))
"""Numbers that need no source: days of a week, minutes of an hour, 100 of a percentage."""
_MAX_ASSIGNMENTS, _MAX_RECOMPUTATIONS = 256, 1000
"""Readings of a chain, and new numbers for which the answer of one question is recomputed."""


class ChangedQuestion(NamedTuple):
    """A question with another number."""

    question: str
    """The question with the new number."""
    answer: str
    """The answer that belongs to the new number."""
    span: tuple[int, int]
    """Range of the new number in the question."""


class _Equation(NamedTuple):
    """Left side and result of an equation of the chain."""

    left_tokens: tuple[Token, ...]
    result: Fraction


_Assignment = Mapping[tuple[int, int], int | None]
"""Index of an equation and of a token of it → the earlier equation that it comes from, if any."""


def change_number(
    question: str, steps: Sequence[str], answer: str | None, rng: random.Random
) -> ChangedQuestion | str:
    """Change one number of a question by 1 to 3 in its last place, and recompute the answer.

    The chain is read as a data flow: every number in its equations is a number of the question, an
    earlier result, a number that the question spells out, or an everyday constant. The answer is
    recomputed by passing the new number through it.

    Returns
    -------
    ChangedQuestion or str
        A str gives the reason why the answer cannot be recomputed with certainty: an equation that
        cannot be read or is false, an answer that is not the last result, a number without a source
        or with two possible sources. The new number has as many digits as the old one and is not 1
        (which takes the singular); every recomputed number lies between the smallest and the
        largest of the item, and is an integer if the chain's is.
    """
    if answer is None:
        return "the item has no ground truth"
    answer_numbers = [token for token in tokenize(answer) if token.value is not None]
    equations = _read_chain_equations(steps)
    if isinstance(equations, str):
        return equations
    if len(answer_numbers) != 1 or answer_numbers[0].value != equations[-1].result:
        return "the answer is not the result of the chain's last equation"
    numbers = [(token, token.value) for token in tokenize(question) if token.value is not None]
    counts = Counter(value for _, value in numbers)
    words = re.findall(r"[a-z]+", question.lower())
    spelled_values = {_VALUE_BY_WORD[word] for word in words if word in _VALUE_BY_WORD}
    assignments = _source_assignments(equations, counts.keys(), spelled_values)
    if isinstance(assignments, str):
        return assignments
    results = {equation.result for equation in equations}
    bounds = min(*counts, *results), max(*counts, *results)
    sourced_values = {
        equations[i].left_tokens[k].value
        for assignment in assignments
        for (i, k), source in assignment.items()
        if source is None
    }
    candidates = [(token, value, shift) for token, value in numbers for shift in _NUMBER_SHIFTS]
    rng.shuffle(candidates)
    usable = (
        candidate
        for candidate in candidates
        if counts[candidate[1]] == 1 and candidate[1] in sourced_values - spelled_values - results
    )
    for token, value, shift in islice(usable, _MAX_RECOMPUTATIONS):
        new_value = value + Fraction(shift, 10**token.n_decimals)
        is_alike = new_value != 1 and len(str(int(new_value))) == len(str(int(value)))
        if not (is_alike and bounds[0] <= new_value <= bounds[1]):
            continue
        new_answer = _recompute_answer(equations, assignments, value, new_value, bounds)
        if new_answer is not None and new_answer != equations[-1].result:
            new_number = _format_like(new_value, token)
            (answer_token,) = answer_numbers
            return ChangedQuestion(
                question[: token.start] + new_number + question[token.end :],
                answer[: answer_token.start]
                + _format_like(new_answer, answer_token)
                + answer[answer_token.end :],
                (token.start, token.start + len(new_number)),
            )
    return "no number of the question can be followed through the chain for certain"


def _read_chain_equations(steps: Sequence[str]) -> list[_Equation] | str:
    """Return all equations of the chain, or why one of them cannot be read."""
    equations: list[_Equation] = []
    for step in steps:
        tokens = tokenize(step)
        for position, token in enumerate(tokens):
            if token.kind == "~":
                return "the chain rounds a result"
            if token.kind != "=":
                continue
            left_tokens = _left_expression(tokens, position)
            right, behind = (*tokens[position + 1 : position + 3], None, None)[:2]
            is_cut = behind is not None and behind.kind in "o%(lfm"
            if left_tokens is None or right is None or right.value is None or is_cut:
                return f"an equation of the chain cannot be read: {step.strip()}"
            result = evaluate(left_tokens, {})
            if result is None or result.value != right.value:
                return f"an equation of the chain does not hold: {step.strip()}"
            equations.append(_Equation(left_tokens, right.value))
    return equations or "the chain has no equations"


def _left_expression(tokens: Sequence[Token], end: int) -> tuple[Token, ...] | None:
    """Return the longest expression with an operator that ends before ``end``, or None."""
    start = end
    while start > max(0, end - MAX_TOKENS) and tokens[start - 1].kind in "no()f":
        start -= 1
    for position in range(start, end):
        if tokens[position].kind == "o" and tokens[position].text != "-":
            continue
        result = evaluate(tokens[position:end], {})
        if result is not None and result.n_operations:
            return tuple(tokens[position:end])
    return None


def _source_assignments(
    equations: Sequence[_Equation],
    question_values: Set[Fraction],
    spelled_values: Set[Fraction],
) -> list[_Assignment] | str:
    """Return the possible sources of the chain's operands, or why there are none.

    The source of an operand is an earlier result (its index) or not (None); every result is used.
    """
    indices_by_result = defaultdict[Fraction, list[int]](list)
    for i, equation in enumerate(equations):
        indices_by_result[equation.result].append(i)
    sources: dict[tuple[int, int], list[int | None]] = {}
    for i, equation in enumerate(equations):
        for k, token in enumerate(equation.left_tokens):
            if token.value is None:
                continue
            indices = indices_by_result.get(token.value, [])
            n_earlier = min(bisect_left(indices, i), _MAX_ASSIGNMENTS + 1)
            sources[i, k] = [*indices[:n_earlier]]
            is_everyday = token.value in _EVERYDAY_NUMBERS and not n_earlier
            if token.value in question_values | spelled_values or is_everyday:
                sources[i, k].append(None)
            if not sources[i, k]:
                return f"a number of the chain comes from nowhere: {token.text}"
    assignments = list(islice(product(*sources.values()), _MAX_ASSIGNMENTS + 1))
    if len(assignments) > _MAX_ASSIGNMENTS:
        return "the chain can be read in too many ways"
    needed_indices = set(range(len(equations) - 1))
    return [
        dict(zip(sources, assignment, strict=True))
        for assignment in assignments
        if needed_indices <= set(assignment)
    ] or "a result of the chain is not used again, so the answer need not depend on it"


def _recompute_answer(
    equations: Sequence[_Equation],
    assignments: Sequence[_Assignment],
    old_value: Fraction,
    new_value: Fraction,
    bounds: tuple[Fraction, Fraction],
) -> Fraction | None:
    """Return the last result with ``new_value`` for ``old_value``.

    None if readings differ, or a result leaves the bounds or is no longer an integer.
    """
    readings = {_recompute(equations, one, old_value, new_value) for one in assignments}
    results = readings.pop()
    if readings or results is None:
        return None
    for equation, result in zip(equations, results, strict=True):
        is_fraction = equation.result.denominator == 1 != result.denominator
        if is_fraction or not bounds[0] <= result <= bounds[1]:
            return None
    return results[-1]


def _recompute(
    equations: Sequence[_Equation],
    assignment: _Assignment,
    old_value: Fraction,
    new_value: Fraction,
) -> tuple[Fraction, ...] | None:
    """Return the results of the chain's equations with ``new_value`` for ``old_value``."""
    results: list[Fraction] = []
    for i, equation in enumerate(equations):
        tokens = [
            token
            if token.value is None
            else token._replace(value=results[source])
            if (source := assignment[i, k]) is not None
            else token._replace(value=new_value if token.value == old_value else token.value)
            for k, token in enumerate(equation.left_tokens)
        ]
        evaluation = evaluate(tokens, {})
        if evaluation is None or evaluation.value is None:
            return None
        results.append(evaluation.value)
    return tuple(results)


def _format_like(value: Fraction, template: Token) -> str:
    """Write a number like another: with its thousands separators and at least its decimals."""
    n_decimals = template.n_decimals
    while (value * 10**n_decimals).denominator != 1 and n_decimals < 6:
        n_decimals += 1
    scaled_value = round(value * 10**n_decimals)
    integer, decimals = divmod(abs(scaled_value), 10**n_decimals)
    text = f"{integer:,}" if "," in template.text else str(integer)
    text += f".{decimals:0{n_decimals}d}" if n_decimals else ""
    return f"-{text}" if scaled_value < 0 else text
