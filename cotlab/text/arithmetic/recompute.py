"""Change one number of a question and recompute the answer through the chain's equations."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice, product
from typing import NamedTuple

from cotlab.text.arithmetic.lexer import Token, evaluate, tokens_of

_SHIFTS = (-3, -2, -1, 1, 2, 3)
_NUMBER_NAMES = {
    2: "two half halves twice double doubles pair pairs",
    3: "three third thirds triple",
    4: "four quarter quarters",
    5: "five",
    6: "six",
    7: "seven",
    8: "eight",
    9: "nine",
    10: "ten",
    11: "eleven",
    12: "twelve dozen",
}
_NUMBER_WORD_VALUES = {
    word: Fraction(value) for value, names in _NUMBER_NAMES.items() for word in names.split()
}
_EVERYDAY = frozenset(map(Fraction, (1, 2, 7, 12, 24, 52, 60, 100, 365, 1000)))
"""Numbers that need no source: days of a week, minutes of an hour, 100 of a percentage."""
_MAX_READINGS = 256
_EXPRESSION_TOKEN_KINDS = ("num", "op", "open", "close")


class ChangedQuestion(NamedTuple):
    """A question with another number."""

    question: str
    """The question with the new number."""
    answer: str
    """The answer that belongs to the new number."""
    where: tuple[int, int]
    """Range of the new number in the question."""


class _Equation(NamedTuple):
    """Left side and result of an equation of the chain."""

    tokens: tuple[Token, ...]
    result: Fraction


class _Slot(NamedTuple):
    """One operand: the index of its equation, of its token, and its value."""

    equation: int
    token: int
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
    answer_numbers = [token for token in tokens_of(answer) if token.kind == "num"]
    chain = _equations(steps)
    if isinstance(chain, str):
        return chain
    if len(answer_numbers) != 1 or answer_numbers[0].value != chain[-1].result:
        return "the answer is not the result of the chain's last equation"
    given = [token for token in tokens_of(question) if token.kind == "num"]
    spelled = {
        _NUMBER_WORD_VALUES[word]
        for word in re.findall(r"[a-z]+", question.lower())
        if word in _NUMBER_WORD_VALUES
    }
    readings = _readings(chain, {token.value for token in given}, spelled)
    if isinstance(readings, str):
        return readings
    known = [token.value for token in given if token.value is not None] + [
        equation.result for equation in chain
    ]
    span = min(known), max(known)
    choices = [(token, shift) for token in given for shift in _SHIFTS]
    rng.shuffle(choices)
    for token, shift in choices:
        if token.value is None or not _alone(token, given, spelled, chain):
            continue
        new = token.value + Fraction(shift, 10**token.decimals)
        if (
            not span[0] <= new <= span[1]
            or new == 1
            or len(str(int(new))) != len(str(int(token.value)))
        ):
            continue
        new_answer = _recompute(chain, readings, token.value, new, span)
        if new_answer is not None and new_answer != answer_numbers[0].value:
            new_question = question[: token.start] + _written(new, token) + question[token.end :]
            return ChangedQuestion(
                new_question,
                answer[: answer_numbers[0].start]
                + _written(new_answer, answer_numbers[0])
                + answer[answer_numbers[0].end :],
                (token.start, token.start + len(_written(new, token))),
            )
    return "no number of the question can be followed through the chain for certain"


def _equations(steps: Sequence[str]) -> list[_Equation] | str:
    """Return all equations of the chain, or why one of them cannot be read."""
    equations: list[_Equation] = []
    for step in steps:
        tokens = tokens_of(step)
        for at, token in enumerate(tokens):
            if token.kind == "near":
                return "the chain rounds a result"
            if token.kind != "eq" and not (token.kind == "says" and token.text.startswith("equal")):
                continue
            left = _left(tokens[:at])
            right = tokens[at + 1] if at + 1 < len(tokens) else None
            more = tokens[at + 2].kind if at + 2 < len(tokens) else "stop"
            if (
                left is None
                or right is None
                or right.kind != "num"
                or right.value is None
                or more in ("op", "pct", "open")
            ):
                return f"an equation of the chain cannot be read: {step.strip()}"
            result = evaluate(left, {})
            if result is None or result.value != right.value:
                return f"an equation of the chain does not hold: {step.strip()}"
            equations.append(_Equation(left, right.value))
    return equations or "the chain has no equations"


def _left(tokens: Sequence[Token]) -> tuple[Token, ...] | None:
    """Return the longest expression with an operator at the end of the tokens, or None."""
    start = len(tokens)
    while start and tokens[start - 1].kind in _EXPRESSION_TOKEN_KINDS:
        start -= 1
    for at in range(start, len(tokens)):
        if tokens[at].kind == "op" and tokens[at].text != "-":
            continue
        result = evaluate(tokens[at:], {})
        if result is not None and result.operations:
            return tuple(tokens[at:])
    return None


def _readings(
    chain: Sequence[_Equation], given: set[Fraction | None], spelled: set[Fraction]
) -> list[dict[_Slot, int | None]] | str:
    """Return the possible sources of the chain's operands, or why there are none.

    The source of an operand is an earlier result (its index) or not (None); every result is used.
    """
    slots = [
        _Slot(i, k, token.value)
        for i, entry in enumerate(chain)
        for k, token in enumerate(entry.tokens)
        if token.kind == "num" and token.value is not None
    ]
    sources: list[list[int | None]] = []
    for slot in slots:
        options: list[int | None] = [
            i for i in range(slot.equation) if chain[i].result == slot.value
        ]
        if (
            slot.value in given
            or slot.value in spelled
            or (slot.value in _EVERYDAY and not options)
        ):
            options.append(None)
        if not options:
            return (
                "a number of the chain comes from nowhere:"
                f" {chain[slot.equation].tokens[slot.token].text}"
            )
        sources.append(options)
    assignments = list(islice(product(*sources), _MAX_READINGS + 1))
    if len(assignments) > _MAX_READINGS:
        return "the chain can be read in too many ways"
    needed = set(range(len(chain) - 1))
    usable = [dict(zip(slots, entry, strict=True)) for entry in assignments if needed <= set(entry)]
    return usable or "a result of the chain is not used again, so the answer need not depend on it"


def _alone(
    token: Token, given: Sequence[Token], spelled: set[Fraction], chain: Sequence[_Equation]
) -> bool:
    """Return whether the number occurs once in the question and is no result or spelled number."""
    value = token.value
    return (
        sum(other.value == value for other in given) == 1
        and value not in spelled
        and all(other.result != value for other in chain)
    )


def _recompute(
    chain: Sequence[_Equation],
    readings: Sequence[Mapping[_Slot, int | None]],
    old: Fraction,
    new: Fraction,
    span: tuple[Fraction, Fraction],
) -> Fraction | None:
    """Return the last result with ``new`` for ``old``.

    None if readings differ, or a result leaves the span or is no longer an integer.
    """
    answers = {tuple(_run(chain, reading, old, new)) for reading in readings}
    if len(answers) != 1:
        return None
    results = answers.pop()
    if len(results) != len(chain):
        return None
    for equation, result in zip(chain, results, strict=True):
        if (
            result is None
            or not span[0] <= result <= span[1]
            or (equation.result.denominator == 1 != result.denominator)
        ):
            return None
    return results[-1]


def _run(
    chain: Sequence[_Equation], reading: Mapping[_Slot, int | None], old: Fraction, new: Fraction
) -> Iterator[Fraction | None]:
    """Yield the results of the chain's equations with ``new`` for ``old``."""
    results: list[Fraction | None] = []
    for i, equation in enumerate(chain):
        tokens = list(equation.tokens)
        for slot, source in reading.items():
            if slot.equation == i:
                value = (
                    results[source]
                    if source is not None
                    else new
                    if slot.value == old
                    else slot.value
                )
                if value is None:
                    yield None
                    return
                tokens[slot.token] = tokens[slot.token]._replace(value=value)
        result = evaluate(tokens, {})
        results.append(result.value if result else None)
        yield results[-1]


def _written(value: Fraction, like: Token) -> str:
    """Write a number like another: with its thousands separators and at least its decimals."""
    decimals = like.decimals
    while (value * 10**decimals).denominator != 1 and decimals < 6:
        decimals += 1
    scaled = round(value * 10**decimals)
    integer, rest = divmod(abs(scaled), 10**decimals)
    text = (f"{integer:,}" if "," in like.text else str(integer)) + (
        f".{rest:0{decimals}d}" if decimals else ""
    )
    return f"-{text}" if scaled < 0 else text
