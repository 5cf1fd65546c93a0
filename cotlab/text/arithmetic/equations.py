"""Equations in a text, and whether they hold: 48 / 2 = 24 clips, A - B = -14 - 2 = -16, 3 + 4 is 7.

An equation is false only if no other reading is possible. It is undecided if a unit may be
converted, a value rounded or a percentage taken of something unnamed, if a word such as "remainder"
is next to it, or if its sentence denies something. The work is bounded as in
`cotlab.text.arithmetic.lexer`; nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, takewhile

from cotlab.text.arithmetic.comparison import compare_sides
from cotlab.text.arithmetic.edges import (
    NOT_ABOUT_IT_REASON,
    OPERAND_END_KINDS,
    UNREAD_AFTER_REASON,
    UNREAD_BEFORE_REASON,
)
from cotlab.text.arithmetic.expressions import Number
from cotlab.text.arithmetic.lexer import Token, tokenize
from cotlab.text.arithmetic.sides import (
    Side,
    is_unit,
    is_unit_letter,
    read_left_side,
    read_right_side,
)

MAX_EQUATIONS = 200
# "is wrong", "should be", "doesn't"
_DENIAL_RE = re.compile(
    r"(?i)\b(?:wrong|incorrect(?:ly)?|mistake|error|false|not|never|cannot|instead of"
    r"|should (?:be|have)|typo|contradict\w*|impossible|no (?:real |integer )?solutions?)\b"
    r"|n['’]t\b|≠|\\n(?:eq?|ot)\b"
)
# "This does not work", "a contradiction", "(false)" after what is denied
_BACKWARD_RE = re.compile(
    r"(?i)\W*(?:so |and |- )?(?:this|that|which|it|but|however|clearly|again|an?|false|not|no)\b"
)
# "equals" but not "\\frac"
_PROSE_WORD_RE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
# "(mod 7)", "is congruent to"
_MODULAR_RE = re.compile(r"(?i)≡|\\equiv\b|\\[bp]?mod\b|\bmod(?:ulo)?\b|\bcongruent\b")
# " " of "He has 3. She has 4"
_SENTENCE_BREAK_RE = re.compile(r"(?<=[.!?])\s+|\n")


@dataclass(frozen=True, slots=True)
class Equation:
    """One "left = right" of a text."""

    start: int
    """First character of the text."""
    end: int
    """Character after the last."""
    holds: bool | None
    """None if undecided."""
    reason: str
    """Why it is undecided."""
    numbers: tuple[Fraction, ...]
    """Operands of the sides that compute something."""
    result: Fraction | None
    """Value of the right side."""
    n_operations: int
    """Number of operators of both sides."""
    letters: tuple[str, ...] = ()
    """Letters of both sides."""
    is_in_unknowns: bool = False
    """Whether it has letters without a value."""
    is_complete: bool = True
    """Whether both sides were read to their ends, in a sentence that states them."""


@dataclass(frozen=True, slots=True)
class TextEquations:
    """The equations of a text."""

    equations: tuple[Equation, ...]
    """In order."""
    values_by_letter: Mapping[str, Fraction]
    """Values that the text gives to letters: "A = 3 + 4 = 7"."""
    definitions: tuple[Equation, ...] = ()
    """Statements that define a letter; there is nothing to check in them."""
    computed_letters: frozenset[str] = frozenset()
    """Letters that name the result of a computation; "x = 5" may hold in one case only."""
    conditioned_letters: frozenset[str] = frozenset()
    """Letters of conditions such as 2x + 3 = 7, which do not hold for every value."""


def read_equations(text: str, known_values: Mapping[str, Fraction] | None = None) -> TextEquations:
    """Find and check the equations of a text.

    Parameters
    ----------
    text : str
        Prose, LaTeX or both; the first 20,000 characters and 200 equations are read.
    known_values : mapping of letter to value
        Values from earlier texts; any other letter makes an equation undecided.

    Returns
    -------
    TextEquations
        A chain a = b = c is two equations. A statement that computes nothing ("x = 5", "5 km = 5000
        m") is undecided.
    """
    known_values = dict(known_values or {})
    tokens = _resolve_tokens(tokenize(text), known_values)
    all_sign_positions = [i for i, t in enumerate(tokens) if t.kind in ("eq", "near", "says")]
    sign_positions = all_sign_positions[:MAX_EQUATIONS]
    equations: list[Equation] = []
    values_by_letter: dict[str, Fraction] = {}
    definitions: list[Equation] = []
    undecided_spans = _undecided_spans(text)
    computed_letters: set[str] = set()
    conditioned_letters: set[str] = set()
    equation_chain: list[tuple[Side | None, Token | None]] = []
    for n, position in enumerate(sign_positions):
        tokens_before = tokens[(sign_positions[n - 1] + 1 if n else 0) : position]
        tokens_after = tokens[
            position + 1 : sign_positions[n + 1] if n + 1 < len(sign_positions) else len(tokens)
        ]
        right_hand_side, is_complete = read_right_side(text, tokens_after, known_values)
        if not equation_chain:
            left_hand_side = read_left_side(text, tokens_before, known_values)
            equation_chain.append((left_hand_side, None))
            if left_hand_side is None or left_hand_side.doubt == UNREAD_BEFORE_REASON:
                conditioned_letters |= _letters_at_edge(reversed(tokens_before))
        if right_hand_side is None or right_hand_side.doubt == UNREAD_AFTER_REASON:
            conditioned_letters |= _letters_at_edge(tokens_after)
        equation_chain.append((right_hand_side, tokens[position]))
        if is_complete and n + 1 < len(sign_positions):
            continue
        chain_equations = _chain_equations(text, equation_chain, undecided_spans)
        equations += chain_equations
        for equation in chain_equations:
            if equation.holds is None and equation.is_in_unknowns:
                conditioned_letters.update(equation.letters)
        (first_side, _), (second_side, _), *_ = equation_chain
        last_side = equation_chain[-1][0]
        if (
            first_side is not None
            and first_side.single_letter
            and second_side is not None
            and first_side.doubt != UNREAD_BEFORE_REASON
        ):
            value = _as_fraction(second_side.evaluation.value)
            reason = "it says what a letter is"
            definitions.append(
                Equation(
                    first_side.start,
                    second_side.end,
                    None,
                    reason,
                    (),
                    value,
                    0,
                    (first_side.single_letter,),
                    is_complete=_is_complete(first_side, second_side, undecided_spans),
                )
            )
            if (
                last_side is not None
                and isinstance(last_side.evaluation.value, Fraction)
                and not last_side.units
                and not last_side.doubt
            ):
                if second_side.evaluation.n_operations and not second_side.evaluation.letters:
                    computed_letters.add(first_side.single_letter)
                values_by_letter[first_side.single_letter] = known_values[
                    first_side.single_letter
                ] = last_side.evaluation.value
        equation_chain = []
    return TextEquations(
        tuple(equations),
        values_by_letter,
        tuple(definitions),
        frozenset(computed_letters),
        frozenset(conditioned_letters),
    )


def _letters_at_edge(tokens: Iterable[Token]) -> set[str]:
    """Return the letters of the tokens up to punctuation, those of products such as ab too."""
    texts = [
        token.text
        for token in takewhile(lambda token: token.kind != "stop", tokens)
        if token.kind in ("name", "odd")
    ]
    return {*texts, *(letter for text in texts for letter in text if letter.isalpha())}


def _resolve_tokens(tokens: Sequence[Token], known_values: Mapping[str, Fraction]) -> list[Token]:
    """Resolve tokens that depend on their neighbours.

    "of" is times after a percentage or a fraction; "/ hour", "4 m" and "cm^2" have units; "is" is
    "=" only between values.
    """
    resolved_tokens: list[Token] = []
    resume_index = 0
    for i, token in enumerate(tokens):
        next_token = tokens[i + 1] if i + 1 < len(tokens) else None
        last_token = resolved_tokens[-1] if resolved_tokens else None
        if i < resume_index:
            continue
        if power_end := _unit_power_end(tokens, i, resolved_tokens):
            resume_index = power_end
            resolved_tokens[-1] = resolved_tokens[-1]._replace(
                text=f"{resolved_tokens[-1].text}^2", end=tokens[power_end - 1].end
            )
            continue
        if (
            last_token is not None
            and is_unit_letter(token, known_values)
            and (
                last_token.text == "per"
                or (last_token.kind == "num" and last_token.end < token.start)
            )
        ):
            token = token._replace(kind="word")
        next_is_operand = next_token is not None and next_token.kind in ("num", "open", "macro")
        is_proportion = last_token is not None and (
            last_token.kind == "pct" or _ends_with_fraction(resolved_tokens)
        )
        if token.kind == "word" and token.text == "of" and next_is_operand and is_proportion:
            token = token._replace(kind="op", text="*")
        elif (
            token.kind == "op"
            and token.text == "/"
            and token.end - token.start == 1  # not "divided by"
            and next_token is not None
            and last_token
            and (
                (next_token.kind == "word" and last_token.kind in ("num", "word", "pct"))
                or (is_unit_letter(next_token, known_values) and last_token.kind == "word")
            )
        ):
            token = token._replace(kind="word", text="per")
        elif token.kind == "says" and not token.text.startswith("equal"):
            next_is_value = next_token is not None and (
                next_is_operand or (next_token.kind == "op" and next_token.text == "-")
            )
            if not (
                next_is_value and last_token is not None and last_token.kind in OPERAND_END_KINDS
            ):
                token = token._replace(kind="word")
        resolved_tokens.append(token)
    return resolved_tokens


def _unit_power_end(
    tokens: Sequence[Token], position: int, resolved_tokens: Sequence[Token]
) -> int:
    """Return the end of the exponent at ``position`` of a unit (5 cm^2, 5 cm^{2}), or 0."""
    if tokens[position].text != "^" or len(resolved_tokens) < 2 or not is_unit(resolved_tokens[-1]):
        return 0
    if (
        resolved_tokens[-2].kind not in ("num", "close", "pct")
        and resolved_tokens[-2].text != "per"
    ):
        return 0
    kinds = [token.kind for token in tokens[position + 1 : position + 4]]
    return (
        position + 2
        if kinds[:1] == ["num"]
        else position + 4
        if kinds == ["open", "num", "close"]
        else 0
    )


def _ends_with_fraction(tokens: Sequence[Token]) -> bool:
    """Return whether the tokens end with a fraction such as 3/4."""
    return (
        len(tokens) > 2
        and [t.kind for t in tokens[-3:]] == ["num", "op", "num"]
        and tokens[-2].text == "/"
    )


def _undecided_spans(text: str) -> list[tuple[int, int, str]]:
    """Return the ranges where no equation is called false, with the reason.

    Sentences that deny something, with the formulas and the sentence before "(false)" and "This is
    wrong"; questions; sentences of modular arithmetic.
    """
    spans, sentence_start, passage_start = [], 0, 0
    for sentence_end in [*(m.end() for m in _SENTENCE_BREAK_RE.finditer(text)), len(text)]:
        sentence = text[sentence_start:sentence_end]
        has_words = _PROSE_WORD_RE.search(sentence) is not None
        if _DENIAL_RE.search(sentence):
            is_about_previous = _BACKWARD_RE.match(sentence)
            start = passage_start if is_about_previous else sentence_start
            spans.append((start, sentence_end, "its sentence denies something"))
        if sentence.rstrip(" \n$*\\)]").endswith("?"):
            spans.append((sentence_start, sentence_end, "it is asked and not said"))
        if _MODULAR_RE.search(sentence):
            spans.append((sentence_start, sentence_end, "another arithmetic is meant"))
        passage_start = sentence_start if has_words else passage_start
        sentence_start = sentence_end
    return spans


def _is_complete(left: Side, right: Side, undecided_spans: Sequence[tuple[int, int, str]]) -> bool:
    """Return whether both sides were read to their ends, in a sentence that states them."""
    has_doubt = not {left.doubt, right.doubt} <= {"", NOT_ABOUT_IT_REASON}
    evaluations = (left.evaluation, right.evaluation)
    if not left.is_alone and not any(e.n_operations or e.letters for e in evaluations):
        return False  # "90 bulbs at $.50 = $45": two amounts of which one is a part
    return not has_doubt and not any(start <= left.start < end for start, end, _ in undecided_spans)


def _as_fraction(value: Number | None) -> Fraction | None:
    """Return a value that is known exactly, else None."""
    return value if isinstance(value, Fraction) else None


def _chain_equations(
    text: str,
    equation_chain: Sequence[tuple[Side | None, Token | None]],
    undecided_spans: Sequence[tuple[int, int, str]],
) -> list[Equation]:
    """Return the equations of one chain a = b = c, without single letters."""
    signed_sides = [
        (side, sign) for side, sign in equation_chain if side is None or not side.single_letter
    ]
    equations = []
    for (left, left_sign), (right, sign) in pairwise(signed_sides):
        if left is None or right is None or sign is None:
            continue
        is_derived = left_sign is not None and left_sign.kind == "eq"
        holds, reason = compare_sides(left, right, sign, is_derived=is_derived)
        if holds is False:
            undecided_reason = next(
                (reason for start, end, reason in undecided_spans if start <= left.start < end), ""
            )
            holds, reason = (None, undecided_reason) if undecided_reason else (False, "")
        evaluations = (left.evaluation, right.evaluation)
        numbers = tuple(
            number
            for evaluation in evaluations
            if evaluation.n_operations
            for number in evaluation.numbers
        )
        letters = tuple(
            dict.fromkeys(name for evaluation in evaluations for name in evaluation.letters)
        )
        equations.append(
            Equation(
                left.start,
                right.end,
                holds,
                reason,
                numbers,
                _as_fraction(evaluations[1].value),
                sum(evaluation.n_operations for evaluation in evaluations),
                letters,
                bool(letters) and None in [evaluation.value for evaluation in evaluations],
                _is_complete(left, right, undecided_spans),
            )
        )
    return equations
