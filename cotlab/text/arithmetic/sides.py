"""Sides of an equation in running text: the longest expressions before and after its sign."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, takewhile

from cotlab.text.answers.quantities import read_quantity
from cotlab.text.arithmetic.edges import (
    OPERAND_END_KINDS,
    SUFFIX_OPERATORS,
    begins_clause,
    has_factor_after,
    has_factor_before,
    is_adjacent,
    kind_at,
    left_doubt_reason,
    right_doubt_reason,
    stated_remainder,
)
from cotlab.text.arithmetic.expressions import Evaluation, Number, SampleValues, evaluate
from cotlab.text.arithmetic.lexer import RELATION, Token
from cotlab.text.arithmetic.phrases import MULTIPLE_TERMS, is_alone, is_rate
from cotlab.text.keywords import word_set

_MAX_UNIT_TOKENS, _MAX_TOKENS = 4, 400
"""Words of a unit, and tokens of a side, that are read."""
_POSTFIX_KINDS = ("pct", "fact")
"""Kinds of tokens that belong to the operand before them: 20%, 4!."""
_NON_UNIT_TERMS = word_set(
    "is are and or of the a an so then that which has have had she he it they we i you to from for"
    " in on at by with be was were if when as than because since but therefore thus hence while let"
    " let's calculate compute find get gets sum difference product ratio average mean"
)
"""Words that are never the unit of the number before them."""
_FACTOR_LETTERS = frozenset("abcdklmnrstwxyz")
"""Letters before a bracket that are factors; f(x), P(A) and others may be functions."""
_UNIT_LETTERS = ("m", "g", "l", "L", "s", "h")


@dataclass(frozen=True, slots=True)
class Side:
    """One side of an equation."""

    start: int
    """First character of the text."""
    end: int
    """Character after the last."""
    evaluation: Evaluation
    """Value without units."""
    values: frozenset[Number]
    """Its values in all readings: 20% as 20, "- 5" at the start of a line as a list item."""
    loose_values: frozenset[Number]
    """Those of its values that are none where the text is taken at its word: of 20% and of 7!."""
    samples: tuple[Number | None, ...]
    """Its values at two choices of values for its letters; empty without letters."""
    units: tuple[str, ...]
    """Words that may be units of its numbers."""
    doubt: str = ""
    """Why it may have been read wrongly."""
    begins_clause: bool = False
    """Whether what stands before it cannot be a part of its noun: "so 3 + 4 is 7"."""
    is_alone: bool = False
    """Whether it begins its clause, and no other number stands before it in its sentence."""
    has_factor: bool = False
    """Whether a factor or a function touches its outer edge."""
    is_rate: bool = False
    """Whether it is so much of each: 20 each day."""
    is_compared: bool = False
    """Whether another relation (<, ≠ …) stands at its outer edge."""
    remainder: Fraction | None = None
    """The remainder that is stated after it: 3 remainder 2."""
    text: str = ""
    """The side as written."""

    @property
    def single_letter(self) -> str:
        """The letter, if the side is a single letter, else ""."""
        result = self.evaluation
        is_alone = len(result.letters) == 1 and not result.n_operations and not result.numbers
        return result.letters[0] if is_alone else ""


def read_left_side(
    text: str, tokens: Sequence[Token], known_values: Mapping[str, Fraction]
) -> Side | None:
    """Return the longest expression at the end of the tokens, or None."""
    tokens = tokens[-_MAX_TOKENS:]
    operand_starts = {end: start for start, end in _operand_spans(tokens).items()}
    position, start = len(tokens) - 1, -1
    while position >= 0:
        operand_end = position
        for _ in range(_MAX_UNIT_TOKENS):
            if operand_end > 0 and is_unit(tokens[operand_end]):
                operand_end -= 1
        while operand_end and tokens[operand_end].kind in _POSTFIX_KINDS:
            operand_end -= 1
        if operand_end not in operand_starts:
            return None
        operand_start = operand_starts[operand_end]
        first_kind, previous_index = tokens[operand_start].kind, operand_start - 1
        if (
            first_kind == "open"
            and kind_at(tokens, previous_index) in ("word", "name")
            and is_adjacent(tokens, operand_start)
        ):
            return None  # a function
        start = operand_start
        while kind_at(tokens, previous_index) == "op":
            previous_index -= 1
        previous_kind = kind_at(tokens, previous_index)
        if previous_index == operand_start - 1:
            is_mixed_number = first_kind == "macro" and previous_kind == "num"
            if not is_mixed_number and (
                previous_kind not in ("num", "close", "name")
                or not is_adjacent(tokens, operand_start)
            ):
                break
        elif previous_kind not in (*OPERAND_END_KINDS, *_POSTFIX_KINDS):
            if any(token.text not in "+-" for token in tokens[previous_index + 1 : operand_start]):
                return None
            start = previous_index + 1
            break
        elif previous_kind == "word" and not is_unit(tokens[previous_index]):
            return None
        position = previous_index
    if start < 0:
        return None
    side = _read_side(text, tokens[start:], known_values)
    if side is None:
        return None
    if _may_be_bullet(text, tokens[start]):
        bullet_side = _read_side(text, tokens[start + 1 :], known_values)
        if bullet_side is not None:
            side = replace(side, values=side.values | bullet_side.values)
    return replace(
        side,
        doubt=left_doubt_reason(
            text,
            tokens,
            start,
            is_amount=not side.evaluation.n_operations,
            has_units=bool(side.units),
        ),
        begins_clause=begins_clause(tokens, start),
        is_alone=is_alone(text, tokens, start),
        has_factor=has_factor_before(tokens, start),
        is_compared=start > 0 and tokens[start - 1].text == RELATION,
    )


def read_right_side(
    text: str, tokens: Sequence[Token], known_values: Mapping[str, Fraction]
) -> tuple[Side | None, bool]:
    """Return the longest expression at the start of the tokens, and whether it is all of them."""
    tokens, is_truncated = tokens[:_MAX_TOKENS], len(tokens) > _MAX_TOKENS
    operand_ends = _operand_spans(tokens)
    position = end = value_end = 0
    while position < len(tokens):
        while kind_at(tokens, position) == "op" and tokens[position].text in "+-":
            position += 1
        if position not in operand_ends:
            break
        is_number = tokens[position].kind == "num"
        position = operand_ends[position] + 1
        while kind_at(tokens, position) in _POSTFIX_KINDS:
            position += 1
        end = value_end = position
        next_kind = kind_at(tokens, position)
        if (is_number and next_kind == "macro") or (
            next_kind in ("open", "macro", "name") and is_adjacent(tokens, position)
        ):
            continue
        units_end = position
        for _ in range(_MAX_UNIT_TOKENS):
            if units_end < len(tokens) and is_unit(tokens[units_end]):
                units_end += 1
        if kind_at(tokens, units_end) != "op":
            end = units_end if units_end == len(tokens) else end
            break
        position = units_end + 1
    is_complete = bool(end) and end == len(tokens) and not is_truncated
    side = _read_side(text, tokens[:end], known_values) if end else None
    if side is None:
        return None, is_complete
    next_tokens = tokens[end : end + _MAX_UNIT_TOKENS]
    words = [token.text for token in takewhile(_is_word, next_tokens)]
    side = replace(
        side,
        doubt=right_doubt_reason(text, tokens, end),
        units=(*side.units, *words),
        is_compared=kind_at(tokens, end) == "stop" and tokens[end].text == RELATION,
        has_factor=has_factor_after(tokens, value_end),
        is_rate=is_rate(tokens, value_end),
        remainder=stated_remainder(tokens[end:]),
    )
    return side, is_complete


def _is_word(token: Token) -> bool:
    """Return whether a token is a word of more than one letter."""
    return token.kind == "word"


def is_unit(token: Token) -> bool:
    """Return whether a word may be the unit of the number before it."""
    return token.kind == "word" and token.text.lower() not in _NON_UNIT_TERMS


def is_unit_letter(token: Token, known_values: Mapping[str, Fraction]) -> bool:
    """Return whether a letter may be a unit: it is one (m, g, l …) and has no known value."""
    return token.kind == "name" and token.text not in known_values and token.text in _UNIT_LETTERS


def _operand_spans(tokens: Sequence[Token]) -> dict[int, int]:
    """Map the index of the first token of each operand to that of its last.

    A number, a letter, a bracket, or a macro with its arguments.
    """
    spans = {i: i for i, token in enumerate(tokens) if token.kind in ("num", "name")}
    stack: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind == "open":
            stack.append(index)
        elif token.kind == "close" and stack:
            spans[stack.pop()] = index
    for index, token in enumerate(tokens):
        if token.kind != "macro":
            continue
        last_index = index
        is_indexed_root = (
            token.text == "sqrt"
            and tokens[index + 1 : index + 2]
            and (tokens[index + 1].text == "[")
        )
        for _ in range(2 if token.text != "sqrt" or is_indexed_root else 1):
            last_index = spans.get(last_index + 1, len(tokens))
        if kind_at(tokens, last_index) == "close":
            spans = {start: end for start, end in spans.items() if end != last_index}
            spans[index] = last_index
    return spans


def _read_side(
    text: str, tokens: Sequence[Token], known_values: Mapping[str, Fraction]
) -> Side | None:
    """Read all tokens as one expression and the units of its numbers; None if they are not."""
    expression: list[Token] = []
    units: list[str] = []
    may_be_unit = False
    for token in tokens:
        if token.kind == "word":
            if not may_be_unit:
                return None
            units.append(token.text)
            continue
        if may_be_unit and is_unit_letter(token, known_values):
            units.append(token.text)
            continue
        may_be_unit = token.kind in ("num", "close", "pct", "fact")
        expression.append(token)
    result = evaluate(expression, known_values)
    if result is None:
        return None
    values = {result.value}
    loose_values: set[Number | None] = set()
    if any(token.kind == "pct" for token in expression):
        loose_values |= _values(evaluate(expression, known_values, percent_as_fraction=False))
    if expression[-1].kind == "fact":  # an exclamation: that makes 7!
        loose_values |= _values(evaluate(expression[:-1], known_values))
    if _has_mixed_number(expression):
        values |= _values(evaluate(expression, known_values, mixed_numbers=False))
    start, end = tokens[0].start, tokens[-1].end
    if start and text[start - 1] == "$":
        start -= 1
        units.append("dollars")
    return Side(
        start,
        end,
        result,
        frozenset(value for value in values | loose_values if value is not None),
        frozenset(value for value in loose_values - values if value is not None),
        _sample_values(expression) if result.letters else (),
        tuple(units),
        text=text[start:end],
    )


def _values(evaluation: Evaluation | None) -> set[Number | None]:
    """Return the value of a reading as a set."""
    return set() if evaluation is None else {evaluation.value}


def _has_mixed_number(expression: Sequence[Token]) -> bool:
    r"""Return whether a number stands before a LaTeX fraction: 3\frac{4}{5}."""
    return any(
        number.kind == "num" and macro.kind == "macro" for number, macro in pairwise(expression)
    )


def _sample_values(expression: Sequence[Token]) -> tuple[Number | None, ...]:
    """Return the values of an expression for two choices of values of its letters.

    None where a letter may be a function, and where it may be read in two ways.
    """
    has_function = any(
        letter.kind == "name" and bracket.text == "(" and letter.text not in _FACTOR_LETTERS
        for letter, bracket in pairwise(expression)
    )
    has_percent = any(token.kind == "pct" for token in expression)
    if has_function or has_percent or _has_mixed_number(expression):
        return (None, None)
    samples = (evaluate(expression, SampleValues(seed)) for seed in range(2))
    return tuple(None if sample is None else sample.value for sample in samples)


def _may_be_bullet(text: str, sign: Token) -> bool:
    """Return whether a sign may be a list mark: first in its line or sentence, a space after it."""
    is_single_sign = sign.kind == "op" and text[sign.end : sign.end + 1].isspace()
    text_before = text[max(0, sign.start - 20) : sign.start].rpartition("\n")[2].strip()
    return is_single_sign and text_before[-1:] in ("", *".:;!?")


def mixes_units(side: Side) -> bool:
    """Return whether a sum mixes units of one dimension: 2 hours + 30 minutes."""
    is_sum = bool(side.evaluation.n_operations) and not re.search(
        r"[*/×·∙⋅÷^]|\bx\b|times|by\b|frac|of\b", side.text
    )
    return is_sum and _have_different_sizes(side.units)


def may_convert_units(unit_names: Sequence[str]) -> bool:
    """Return whether two units share a dimension but not a size, or a word is a number."""
    return any(
        word.lower().strip(".") in SUFFIX_OPERATORS | MULTIPLE_TERMS for word in unit_names
    ) or _have_different_sizes(unit_names)


def _have_different_sizes(unit_names: Sequence[str]) -> bool:
    """Return whether two neighbouring units have one dimension and different sizes."""
    readings = [
        read_quantity(f"1 {word}")
        for word in dict.fromkeys(word.lower().strip(".") for word in unit_names)
    ]
    quantities = [quantity for quantity in readings if quantity is not None and quantity.units]
    return any(
        u[0] == v[0] and u[1] != v[1]
        for x, y in pairwise(quantities)
        for u in x.units
        for v in y.units
    )
