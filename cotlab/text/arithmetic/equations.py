"""Equations in a text, and whether they hold: 48 / 2 = 24 clips, A - B = -14 - 2 = -16.

An equation is false only where it is plainly one: numbers and + - * / ^ on both sides, cut out of
their sentence where nothing can belong to them. It is undecided where a letter or a sign that is no
plain arithmetic touches it, where another number stands in its clause, where a unit may be
converted, a value rounded or a percentage taken of something unnamed, and where its sentence
denies, asks or supposes. The work is bounded as in `cotlab.text.arithmetic.expressions`; nothing
raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from cotlab.text.arithmetic.expressions import (
    MAX_TOKENS,
    NUMBER_BY_WORD,
    Evaluation,
    Token,
    evaluate,
    tokenize,
)
from cotlab.text.keywords import word_set

MAX_EQUATIONS = 200
_MAX_TRIMMED, _MAX_CLAUSE_TOKENS = 12, 24
"""Tokens by which a side is shortened until it is an expression, and those of a clause."""
# Units: one to four words between a number and an operator or a sign
_UNIT_RE = re.compile(r"(?<=[n)%])w{1,4}(?=[o=~])")
_SIDE_KINDS = "no()lfm%!u"
"""Kinds of tokens of a side; u is a word that is a unit."""
# "is wrong", "doesn't", "suppose", "(mod 7)", "≠"
_VETO_RE = re.compile(
    r"(?i)\b(?:wrong|incorrect(?:ly)?|mistake|error|false|not|never|cannot|instead|should|typo"
    r"|contradict\w*|impossible|no (?:real |integer )?solutions?|if|suppose|assum\w+|when|mod"
    r"|modulo|congruent|base|binary|clock|remainder|factorial|o['’]clock)\b|n['’]t\b|[≠≡⌊⌈]"
    r"|\\(?:neq?|not|equiv|[bp]?mod|[lr](?:floor|ceil|vert)|log|ln|gcd|max|min)\b"
)
# "This does not work", "a contradiction", "(false)" behind what is denied
_DENIAL_BEHIND_RE = re.compile(
    r"(?i)\W{0,9}(?:(?:so|and|but|however|clearly|this|that|which|it|an?|is|does|has|can|was)\W+)"
    r"{0,4}(?:false|not|no|never|cannot|impossible|wrong|incorrect|contradict\w*|doesn)\b"
)
_PROSE_RE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")  # "equals", not "\\frac"
_SENTENCE_BREAK_RE = re.compile(r"(?<=[.!?])\s+|\n")  # " " of "He has 3. She has 4"
_SCALE_WORDS = word_set(
    "squared cubed hundred hundreds thousand thousands million millions billion billions trillion"
    " dozen tens hundredths tenths halves thirds quarters fourths fifths twos fives pair pairs"
    " times halved doubled tripled split twice thrice factorial remainder mod modulo percent choose"
    " sqrt sin cos tan log ln"
)
"""Words beside a number that make it another one: "6 tens", "30 halved"."""
_RATE_WORDS = word_set("each every per apiece for less more left of off to through or")
"""Words behind an expression that may go on: "20 each day"."""
_PART_WORDS = word_set(
    "of at to from by with as than less more off through per each every between under over on in"
    " root log ln sin cos tan sqrt abs max min mod average"
)
"""Words before an expression that may make it a part of something: "the root of 9 + 7"."""
_CLAUSE_WORDS = word_set("so then thus hence therefore since because but that which where")
_CONNECTIVES = _CLAUSE_WORDS | _PART_WORDS - {"per", "each"} | word_set("and or is are was were")
"""Words that are no units."""
_CONVERTIBLE_UNITS = word_set(
    "mm cm m km meter metre kilometer centimeter millimeter inch in foot feet ft yard yd mile"
    " mi acre liter litre l ml milliliter gallon gal quart qt pint pt cup oz ounce tbsp tablespoon"
    " tsp teaspoon g gram kg kilogram mg lb pound ton tonne second sec minute min hour hr h day"
    " week month year decade century cent penny pennie nickel dime quarter dollar euro point"
    " degree radian mhz khz ghz hz am pm mph j kj pa kpa"
)
"""Units, without plural, to which another amount may be converted."""
_CONVERSIONS = frozenset(
    map(Fraction, (2, 3, 4, 5, 7, 8, 10, 12, 16, 20, 24, 25, 30, 36, 52, 60, 100, 365, 1000, 3600))
)
"""Ratios by which an amount is converted: minutes of an hour, cents of a quarter."""
_INEQUALITIES = word_set("< > ≤ ≥ \\le \\ge \\leq \\geq \\lt \\gt")
_COINS = word_set("cent penny pennie nickel dime quarter")
# "1.080": a dot that may mark thousands; "0.5", ".5", "1.08": dots that mark decimals
_THOUSANDS_DOT_RE = re.compile(r"(?<![\d.])[1-9]\d{0,2}\.\d{3}(?!\d)")
_DECIMAL_DOT_RE = re.compile(r"(?<!\d)0?\.\d|\.(?!\d{3}(?!\d))\d")
# "3/4/5", "1/2(3)", "100 - 20%"
_AMBIGUOUS_RE = re.compile(
    r"/\s?\d[\d.]{0,40}\s?[/(]|%\s?[-+−]|[-+−]\s?[\d.]{1,40}\s?\\?%"
    r"|[a-z]{2} by\b|(?<!\\)\b(?:plus|minus|times)\b"
)


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
    """Number of operators of both sides; 0 for a statement that computes nothing."""
    letters: tuple[str, ...] = ()
    """Letters of both sides."""
    is_in_unknowns: bool = False
    """Whether it has letters without a value."""
    is_complete: bool = True
    """Whether both sides were read to their ends, in a sentence that states them."""


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of an equation."""

    first: int
    """Index of its first token."""
    last: int
    """Index after that of its last token."""
    text: str
    """As written."""
    evaluation: Evaluation
    values: tuple[Fraction, ...]
    """Its values in all readings: 20% as 20 and as 0.2; the first as it is written."""
    units: tuple[str, ...]
    """Words that may be units of its numbers, without plural."""
    n_decimals: int
    """Decimals of a single number."""
    next_word: str = ""
    """The word behind it."""
    is_touched: bool = False
    """Whether something at its outer edge may belong to it."""

    @property
    def letter(self) -> str:
        """The letter, if the side is a single letter, else ""."""
        is_letter = len(self.evaluation.letters) == 1 and not self.evaluation.n_operations
        return self.evaluation.letters[0] if is_letter and not self.evaluation.numbers else ""


def read_equations(
    text: str, known_values: Mapping[str, Fraction] | None = None
) -> tuple[Equation, ...]:
    """Find and check the equations of a text.

    Parameters
    ----------
    text : str
        Prose, LaTeX or both; the first 20,000 characters and 200 equations are read.
    known_values : mapping of letter to value
        Values from earlier texts; any other letter makes an equation undecided.

    Returns
    -------
    tuple of Equation
        In order. A chain a = b = c is two equations; "A = 3 + 4 = 7" says what a letter is and
        states one equation. A statement that computes nothing ("x = 5", "5 km = 5000 m") is
        undecided.
    """
    tokens = tokenize(text)
    kinds = "".join(
        "c" if token.kind == "w" and token.text.lower() in _CONNECTIVES else token.kind
        for token in tokens
    )
    kinds = _UNIT_RE.sub(lambda match: "u" * len(match[0]), kinds)
    signs = [i for i, kind in enumerate(kinds) if kind in "=~"][:MAX_EQUATIONS]
    reader = _Reader(text, tokens, kinds, known_values or {})
    equations: list[Equation] = []
    chain: list[_Side | None] = []
    first_sign = 0
    for n, sign in enumerate(signs):
        if not chain:
            first_sign = n
            chain = [reader.read_left_side(signs[n - 1] + 1 if n else 0, sign)]
        next_sign = signs[n + 1] if n + 1 < len(signs) else len(tokens)
        right = reader.read_right_side(sign + 1, next_sign)
        chain.append(right)
        if right is not None and right.last == next_sign and n + 1 < len(signs):
            continue
        equations += reader.compare_chain(chain, [kinds[i] for i in signs[first_sign : n + 1]])
        chain = []
    return tuple(equations)


@dataclass(slots=True)
class _Reader:
    """Reads the sides of the equations of one text."""

    text: str
    tokens: Sequence[Token]
    kinds: str
    """Kinds of the tokens; a word that is a unit is u, one that is none is c."""
    known_values: Mapping[str, Fraction]
    read_until: int = 0
    """Index of the token behind the last equation."""

    def read_left_side(self, lo: int, sign: int) -> _Side | None:
        """Return the longest expression that ends before a sign, or None."""
        first = sign
        while first > max(lo, sign - MAX_TOKENS) and self.kinds[first - 1] in _SIDE_KINDS:
            first -= 1
        starts = range(first, min(sign, first + _MAX_TRIMMED))
        sides = (self._make_side(start, sign) for start in starts)
        side = next((side for side in sides if side is not None), None)
        return side and replace(
            side, is_touched=side.is_touched or self._is_touched_before(side.first)
        )

    def read_right_side(self, first: int, hi: int) -> _Side | None:
        """Return the longest expression that begins after a sign, or None."""
        last = first
        while last < min(hi, first + MAX_TOKENS) and self.kinds[last] in _SIDE_KINDS:
            last += 1
        ends = range(last, max(first, last - _MAX_TRIMMED), -1)
        sides = (self._make_side(first, end) for end in ends)
        side = next((side for side in sides if side is not None), None)
        return side and replace(
            side,
            is_touched=side.is_touched or self._is_touched_after(side.last),
            next_word=self._word(side.last),
        )

    def _make_side(self, first: int, last: int) -> _Side | None:
        """Read tokens as one expression; None if they are not."""
        tokens = self.tokens[first:last]
        evaluation = evaluate(tokens, self.known_values)
        if evaluation is None:
            return None
        readings = [evaluation]
        if any(token.kind == "%" for token in tokens):
            readings.append(evaluate(tokens, self.known_values, percent=Fraction(1)) or evaluation)
        if "nf" in self.kinds[first:last]:
            readings.append(evaluate(tokens, self.known_values, is_mixed=False) or evaluation)
        if self._may_be_bullet(first) and (other := evaluate(tokens[1:], self.known_values)):
            readings.append(other)
        values = dict.fromkeys(reading.value for reading in readings)
        is_number = not evaluation.n_operations
        units = tuple(token.text for token in tokens if token.kind == "w")
        start = tokens[0].start - self.text.startswith("$", max(0, tokens[0].start - 1))
        return _Side(
            first,
            last,
            self.text[start : tokens[-1].end],
            evaluation,
            tuple(value for value in values if value is not None),
            units,
            max((token.n_decimals for token in tokens if is_number), default=0),
            is_touched=tokens[-1].kind == "!"  # an exclamation: that makes 7!
            or any(unit.lower() in _SCALE_WORDS for unit in units),
        )

    def _may_be_bullet(self, first: int) -> bool:
        """Return whether a sign may be a list mark: first in its sentence, a blank after it."""
        sign = self.tokens[first]
        is_first = first == 0 or self.kinds[first - 1] == "."
        return sign.kind == "o" and is_first and self.text[sign.end : sign.end + 1].isspace()

    def _word(self, index: int) -> str:
        """Return a token that is a word, in lower case, else ""."""
        is_word = index < len(self.kinds) and self.kinds[index] in "wcu"
        return self.tokens[index].text.lower() if is_word else ""

    def _is_touched_before(self, first: int) -> bool:
        """Return whether what stands before a side may belong to it."""
        if first == 0:
            return False
        before, is_sign = self.kinds[first - 1], self.kinds[first] == "o"
        if before == "(":
            is_function = self.tokens[first - 1].is_glued and self.kinds[
                first - 2 : first - 1
            ] in set("wlfmn)?")
            return bool(is_function)
        if before in "wc":
            is_function = self._word(first - 1) in _SCALE_WORDS
            gap = self.text[self.tokens[first - 1].end : self.tokens[first].start]
            is_subtracted = is_sign and "$" not in gap and "\\(" not in gap
            return is_subtracted or is_function or self.tokens[first].is_glued
        is_line_start = self.tokens[first - 1].text in ("\n", "\\\\") and first > 1
        return before != "." or (is_sign and is_line_start and self.kinds[first - 2] in "nl)!%u")

    def _is_touched_after(self, last: int) -> bool:
        """Return whether what stands behind a side may belong to it."""
        if last == len(self.kinds):
            return False
        token, kind = self.tokens[last], self.kinds[last]
        if kind == ".":
            is_line_end = token.text in ("\n", "\\\\")
            return is_line_end and self.kinds[last + 1 : last + 2] == "o"
        if kind in "wc":
            return token.text.lower() in _SCALE_WORDS
        is_remark = kind == "(" and not token.is_glued and self.kinds[last + 1 : last + 2] != "l"
        return not (kind in ")=~" or is_remark or token.text in _INEQUALITIES)

    def _is_part(self, left: _Side, right: _Side) -> bool:
        """Return whether another number stands in the clause of an equation."""
        if left.first and self._word(left.first - 1) in _PART_WORDS:
            return True
        if not (left.evaluation.n_operations or right.evaluation.n_operations or left.letter):
            return self._follows_number(left.first)
        for i in range(left.first - 1, max(-1, left.first - _MAX_CLAUSE_TOKENS), -1):
            kind, word = self.kinds[i], self.tokens[i].text.lower()
            if i < self.read_until or kind in "=~" or word in _CLAUSE_WORDS:
                break
            if kind == ".":
                if word != "," or i < left.first - 1:
                    break
            elif kind in "no%!?" or word in NUMBER_BY_WORD:
                return True
        for i in range(right.last, min(len(self.kinds), right.last + _MAX_CLAUSE_TOKENS)):
            kind, word = self.kinds[i], self.tokens[i].text.lower()
            if kind == ".":
                return word == "," and self.kinds[i + 1 : i + 3] in ("nw", "nu")
            if (
                kind in "=~"
                or word in _CLAUSE_WORDS
                or (word == "and" and self.kinds[i + 1 : i + 3] == "no")
            ):
                break
            if (
                kind in "no%!?"
                or word in _SCALE_WORDS
                or word in _RATE_WORDS
                or word in NUMBER_BY_WORD
            ):
                return True
        return False

    def _follows_number(self, first: int) -> bool:
        """Return whether a number stands before a token in its sentence, but that of a label."""
        for i in range(first - 1, -1, -1):
            text = self.tokens[i].text
            if self.kinds[i] == "." and text not in ",:":
                return False
            if self.kinds[i] in "n%o?" and self.tokens[i + 1].text != ":":
                return True
        return False

    def _is_vetoed(self, start: int, end: int) -> bool:
        """Return whether the sentence around a range, or the next one, denies, asks or supposes."""
        before = _SENTENCE_BREAK_RE.split(self.text[max(0, start - 300) : start])[-1]
        after = _SENTENCE_BREAK_RE.split(self.text[end : end + 300])
        sentence = before + self.text[start:end] + after[0]
        if sentence.rstrip(" \n$*\\)]").endswith("?"):
            return True
        next_text = next((part for part in after[1:] if _PROSE_RE.search(part)), "")[:80]
        return bool(_VETO_RE.search(sentence) or _DENIAL_BEHIND_RE.match(next_text))

    def compare_chain(self, chain: Sequence[_Side | None], signs: Sequence[str]) -> list[Equation]:
        """Return the equations of a = b = c; a single letter at its start is defined by it."""
        equations: list[Equation] = []
        first, second = chain[:2]
        if first is not None and first.letter and second is not None:
            definition = self._compare(first, second, "=")
            last = chain[-1]
            is_value = last is not None and not (last.is_touched or last.units or last.letter)
            equations.append(
                replace(
                    definition,
                    holds=None,
                    reason="it says what a letter is",
                    result=last.evaluation.value if last and is_value else None,
                    n_operations=0,
                    letters=(first.letter,),
                )
            )
        sides = [
            (side, sign)
            for side, sign in zip(chain, ("", *signs), strict=True)
            if side is None or not side.letter
        ]
        equations += [
            self._compare(left, right, sign)
            for (left, _), (right, sign) in pairwise(sides)
            if left is not None and right is not None
        ]
        self.read_until = max((side.last for side in chain if side), default=self.read_until)
        return equations

    def _compare(self, left: _Side, right: _Side, sign: str) -> Equation:
        """Compare two sides in their sentence."""
        end = self.tokens[right.last - (not _convertible([right.next_word]))].end
        start = self.tokens[left.first].start
        start -= self.text.startswith("$", max(0, start - 1))
        holds, reason = _compare_values(left, right, sign)
        is_touched = left.is_touched or right.is_touched
        is_part, is_vetoed = self._is_part(left, right), self._is_vetoed(start, end)
        if is_touched:
            holds, reason = None, "what stands next to it may belong to it"
        elif holds is False and is_part:
            holds, reason = None, "it may be a part of a larger amount or a rate"
        elif holds is False and is_vetoed:
            holds, reason = None, "its sentence denies, asks or supposes something"
        evaluations = (left.evaluation, right.evaluation)
        return Equation(
            start,
            end,
            holds,
            reason,
            tuple(number for e in evaluations if e.n_operations for number in e.numbers),
            right.evaluation.value,
            sum(e.n_operations for e in evaluations),
            tuple(dict.fromkeys(letter for e in evaluations for letter in e.letters)),
            any(e.value is None and e.letters for e in evaluations),
            not (is_touched or is_part or is_vetoed),
        )


def _compare_values(left: _Side, right: _Side, sign: str) -> tuple[bool | None, str]:
    """Return whether two sides are equal, or None with the reason why it is undecided."""
    a, b = left.evaluation.value, right.evaluation.value
    letters = (*left.evaluation.letters, *right.evaluation.letters)
    if a is None or b is None:
        value = f"the value of {letters[0]} is not known" if letters else ""
        return None, value or "it has no value that can be computed"
    n_operations = left.evaluation.n_operations + right.evaluation.n_operations
    if not n_operations:
        is_same = a == b and not left.units and not right.units
        return (True, "") if is_same else (None, "it computes nothing")
    left_units, right_units = _convertible(left.units), _convertible(right.units)
    is_product = re.search(r"[*/×·⋅÷x]|\\(?:cdot|times|frac)|of", left.text)
    has_coins = "$" in left.text and bool(left_units & _COINS)
    if (has_coins or max(len(left_units), len(right_units)) > 1) and not is_product:
        return None, "units that may be converted"
    if _is_equal(a, b, left, right):
        return True, ""
    if sign == "~":
        is_near = 20 * abs(a - b) <= max(abs(a), abs(b))
        return (True, "") if is_near else (None, "it is said to be near")
    if any(_is_equal(x, y, left, right) for x in left.values for y in right.values):
        return None, "it can be read in two ways"
    if left.units and (not left.evaluation.n_operations or _is_fraction(left)):
        return None, "one amount may stand for another"
    text = f"{left.text} = {right.text}"
    if _AMBIGUOUS_RE.search(text) or (
        _THOUSANDS_DOT_RE.search(text) and not _DECIMAL_DOT_RE.search(text)
    ):
        return None, "it can be read in two ways"
    known_units = left_units | ({"dollar"} if "$" in left.text else set())
    is_converted = bool((right_units | _convertible([right.next_word])) - known_units)
    ratio = a / b if b else Fraction(0)
    if not left_units and {ratio, ratio and 1 / ratio}.isdisjoint(_CONVERSIONS):
        is_converted = False
    if is_converted or max(len(left_units), len(right_units)) > 1:
        return None, "units that may be converted"
    has_fraction = a.denominator > 1 or b.denominator > 1
    has_division = left.evaluation.has_division or right.evaluation.has_division
    has_integer = any(
        not (side.evaluation.n_operations or side.n_decimals) for side in (left, right)
    )
    is_close = 100 * abs(a - b) < max(abs(a), abs(b)) and (has_fraction or has_division)
    if is_close or (has_fraction and has_integer and abs(a - b) < 1):
        return None, "a value that may be rounded"
    return False, ""


def _is_fraction(side: _Side) -> bool:
    """Return whether a side is a single fraction: 1/4."""
    return side.evaluation.n_operations == 1 and side.evaluation.has_division


def _is_equal(a: Fraction, b: Fraction, left: _Side, right: _Side) -> bool:
    """Return whether values are equal, or a number is the other one rounded or truncated."""
    for exact, rounded, side in ((a, b, right), (b, a, left)):
        unit = Fraction(1, 10**side.n_decimals)
        is_truncated = abs(exact) >= abs(rounded) and exact * rounded >= 0
        error = abs(exact - rounded)
        if side.n_decimals and (2 * error <= unit or (is_truncated and error < unit)):
            return True
    if left.evaluation.has_root or right.evaluation.has_root:
        return abs(a - b) * 10**20 <= max(abs(a), abs(b))
    return a == b


def _convertible(words: Iterable[str]) -> set[str]:
    """Return the units among words that have others of their kind, without plural."""
    stems = {re.sub(r"(?<=inch)es$|(?<=..)s$|[\^²³].*$", "", word.lower()) for word in words}
    return stems & _CONVERTIBLE_UNITS
