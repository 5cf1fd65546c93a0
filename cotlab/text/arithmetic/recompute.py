"""Change one number of a question and recompute the answer through the chain's equations."""

from __future__ import annotations

import random
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice, product
from typing import NamedTuple

from cotlab.text.arithmetic.expressions import MAX_TOKENS, evaluate
from cotlab.text.arithmetic.lexer import Token, tokenize
from cotlab.text.written_numbers import NUMERAL_VALUES

_NUMBER_SHIFTS = (-3, -2, -1, 1, 2, 3)
_MULTIPLES = {
    2: "half halves twice double doubles pair pairs",
    3: "third thirds triple",
    4: "quarter quarters",
    12: "dozen",
}
"""Words that name a number without being its numeral."""
_NUMBER_WORD_VALUES = {
    word: Fraction(value) for word, value in NUMERAL_VALUES.items() if 2 <= value <= 12
} | {word: Fraction(value) for value, words in _MULTIPLES.items() for word in words.split()}
_EVERYDAY_NUMBERS = frozenset(map(Fraction, (1, 2, 7, 12, 24, 52, 60, 100, 365, 1000)))
"""Numbers that need no source: days of a week, minutes of an hour, 100 of a percentage."""
_MAX_ASSIGNMENTS = 256
_MAX_RECOMPUTATIONS = 1000
"""New numbers for which the answer of one question is recomputed."""
_EXPRESSION_TOKEN_KINDS = ("num", "op", "open", "close")


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


class _Operand(NamedTuple):
    """One operand: the index of its equation, of its token, and its value."""

    equation_index: int
    token_index: int
    value: Fraction


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
    answer_numbers = [token for token in tokenize(answer) if token.kind == "num"]
    equations = _read_chain_equations(steps)
    if isinstance(equations, str):
        return equations
    if len(answer_numbers) != 1 or answer_numbers[0].value != equations[-1].result:
        return "the answer is not the result of the chain's last equation"
    question_numbers = [token for token in tokenize(question) if token.kind == "num"]
    spelled_values = {
        _NUMBER_WORD_VALUES[word]
        for word in re.findall(r"[a-z]+", question.lower())
        if word in _NUMBER_WORD_VALUES
    }
    assignments = _source_assignments(
        equations, {token.value for token in question_numbers}, spelled_values
    )
    if isinstance(assignments, str):
        return assignments
    known_values = [token.value for token in question_numbers if token.value is not None] + [
        equation.result for equation in equations
    ]
    bounds = min(known_values), max(known_values)
    unique_values = _unique_values(question_numbers, spelled_values, equations)
    unique_values &= {operand.value for a in assignments for operand in a if a[operand] is None}
    candidates = [(token, shift) for token in question_numbers for shift in _NUMBER_SHIFTS]
    rng.shuffle(candidates)
    usable = (candidate for candidate in candidates if candidate[0].value in unique_values)
    for token, shift in islice(usable, _MAX_RECOMPUTATIONS):
        if token.value is None:
            continue
        new_value = token.value + Fraction(shift, 10**token.n_decimals)
        if (
            not bounds[0] <= new_value <= bounds[1]
            or new_value == 1
            or len(str(int(new_value))) != len(str(int(token.value)))
        ):
            continue
        new_answer = _recompute_answer(equations, assignments, token.value, new_value, bounds)
        if new_answer is not None and new_answer != answer_numbers[0].value:
            new_question = (
                question[: token.start]
                + _format_like_token(new_value, token)
                + question[token.end :]
            )
            return ChangedQuestion(
                new_question,
                answer[: answer_numbers[0].start]
                + _format_like_token(new_answer, answer_numbers[0])
                + answer[answer_numbers[0].end :],
                (token.start, token.start + len(_format_like_token(new_value, token))),
            )
    return "no number of the question can be followed through the chain for certain"


def _read_chain_equations(steps: Sequence[str]) -> list[_Equation] | str:
    """Return all equations of the chain, or why one of them cannot be read."""
    equations: list[_Equation] = []
    for step in steps:
        tokens = tokenize(step)
        for position, token in enumerate(tokens):
            if token.kind == "near":
                return "the chain rounds a result"
            if token.kind != "eq" and not (token.kind == "says" and token.text.startswith("equal")):
                continue
            left_tokens = _left_expression(tokens, position)
            right_token = tokens[position + 1] if position + 1 < len(tokens) else None
            next_token_kind = tokens[position + 2].kind if position + 2 < len(tokens) else "stop"
            if (
                left_tokens is None
                or right_token is None
                or right_token.kind != "num"
                or right_token.value is None
                or next_token_kind in ("op", "pct", "open")
            ):
                return f"an equation of the chain cannot be read: {step.strip()}"
            result = evaluate(left_tokens, {})
            if result is None or result.value != right_token.value:
                return f"an equation of the chain does not hold: {step.strip()}"
            equations.append(_Equation(left_tokens, right_token.value))
    return equations or "the chain has no equations"


def _left_expression(tokens: Sequence[Token], end: int) -> tuple[Token, ...] | None:
    """Return the longest expression with an operator that ends before ``end``, or None."""
    start = end
    while start > max(0, end - MAX_TOKENS) and tokens[start - 1].kind in _EXPRESSION_TOKEN_KINDS:
        start -= 1
    for position in range(start, end):
        if tokens[position].kind == "op" and tokens[position].text != "-":
            continue
        result = evaluate(tokens[position:end], {})
        if result is not None and result.n_operations:
            return tuple(tokens[position:end])
    return None


def _source_assignments(
    equations: Sequence[_Equation],
    question_values: set[Fraction | None],
    spelled_values: set[Fraction],
) -> list[dict[_Operand, int | None]] | str:
    """Return the possible sources of the chain's operands, or why there are none.

    The source of an operand is an earlier result (its index) or not (None); every result is used.
    """
    operands = [
        _Operand(i, k, token.value)
        for i, equation in enumerate(equations)
        for k, token in enumerate(equation.left_tokens)
        if token.kind == "num" and token.value is not None
    ]
    sources: list[list[int | None]] = []
    indices_by_result = defaultdict[Fraction, list[int]](list)
    for i, equation in enumerate(equations):
        indices_by_result[equation.result].append(i)
    for operand in operands:
        indices = indices_by_result.get(operand.value, [])
        n_earlier = bisect_left(indices, operand.equation_index)
        options: list[int | None] = [*indices[: min(n_earlier, _MAX_ASSIGNMENTS + 1)]]
        if (
            operand.value in question_values
            or operand.value in spelled_values
            or (operand.value in _EVERYDAY_NUMBERS and not options)
        ):
            options.append(None)
        if not options:
            return (
                "a number of the chain comes from nowhere:"
                f" {equations[operand.equation_index].left_tokens[operand.token_index].text}"
            )
        sources.append(options)
    assignments = list(islice(product(*sources), _MAX_ASSIGNMENTS + 1))
    if len(assignments) > _MAX_ASSIGNMENTS:
        return "the chain can be read in too many ways"
    needed_result_indices = set(range(len(equations) - 1))
    valid_assignments = [
        dict(zip(operands, assignment, strict=True))
        for assignment in assignments
        if needed_result_indices <= set(assignment)
    ]
    return (
        valid_assignments
        or "a result of the chain is not used again, so the answer need not depend on it"
    )


def _unique_values(
    question_numbers: Sequence[Token], spelled_values: set[Fraction], equations: Sequence[_Equation]
) -> set[Fraction]:
    """Return the values that occur once in the question and are no result or spelled number."""
    counts = Counter(token.value for token in question_numbers if token.value is not None)
    single_values = {value for value, count in counts.items() if count == 1}
    return single_values - spelled_values - {equation.result for equation in equations}


def _recompute_answer(
    equations: Sequence[_Equation],
    assignments: Sequence[Mapping[_Operand, int | None]],
    old_value: Fraction,
    new_value: Fraction,
    bounds: tuple[Fraction, Fraction],
) -> Fraction | None:
    """Return the last result with ``new_value`` for ``old_value``.

    None if readings differ, or a result leaves the span or is no longer an integer.
    """
    result_lists = {
        tuple(_recomputed_results(equations, assignment, old_value, new_value))
        for assignment in assignments
    }
    if len(result_lists) != 1:
        return None
    results = result_lists.pop()
    if len(results) != len(equations):
        return None
    for equation, result in zip(equations, results, strict=True):
        if (
            result is None
            or not bounds[0] <= result <= bounds[1]
            or (equation.result.denominator == 1 != result.denominator)
        ):
            return None
    return results[-1]


def _recomputed_results(
    equations: Sequence[_Equation],
    assignment: Mapping[_Operand, int | None],
    old_value: Fraction,
    new_value: Fraction,
) -> Iterator[Fraction | None]:
    """Yield the results of the chain's equations with ``new_value`` for ``old_value``."""
    results: list[Fraction | None] = []
    operands_by_equation = defaultdict[int, list[_Operand]](list)
    for operand in assignment:
        operands_by_equation[operand.equation_index].append(operand)
    for i, equation in enumerate(equations):
        tokens = list(equation.left_tokens)
        for operand in operands_by_equation[i]:
            source = assignment[operand]
            value = (
                results[source]
                if source is not None
                else new_value
                if operand.value == old_value
                else operand.value
            )
            if value is None:
                yield None
                return
            tokens[operand.token_index] = tokens[operand.token_index]._replace(value=value)
        result = evaluate(tokens, {})
        new_result = result.value if result else None
        results.append(new_result if isinstance(new_result, Fraction) else None)
        yield results[-1]


def _format_like_token(value: Fraction, template: Token) -> str:
    """Write a number like another: with its thousands separators and at least its decimals."""
    n_decimals = template.n_decimals
    while (value * 10**n_decimals).denominator != 1 and n_decimals < 6:
        n_decimals += 1
    scaled_value = round(value * 10**n_decimals)
    integer, fraction_digits = divmod(abs(scaled_value), 10**n_decimals)
    text = (f"{integer:,}" if "," in template.text else str(integer)) + (
        f".{fraction_digits:0{n_decimals}d}" if n_decimals else ""
    )
    return f"-{text}" if scaled_value < 0 else text
