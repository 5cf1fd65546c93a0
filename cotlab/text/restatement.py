"""Whether a reply restates a step: its words, or each equation that it states."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from cotlab.text.arithmetic.equations import read_equations
from cotlab.text.edits.ablations import find_label_end

MIN_WORDS = 4
"""Words from which on a step without an equation states something that a reply can restate."""
MIN_NUMBERS = 2
"""Numbers from which on a reply may state an equation that computes something."""
_DIGITS_RE = re.compile(r"\d+")
_WORD_START_RE, _WORD_END_RE = re.compile(r"(?<!\w)(?<!\d[.,])"), re.compile(r"(?!\w|[.,]\d)")
# "**", "`", "$", "\(": marks that leave the words as they are
_MARKUP_RE = re.compile(r"\*\*|__|`|\$|\\[()\[\]]")


def is_restated(step: str, reply: str) -> bool | None:
    """Return whether a reply restates a step.

    It does where it holds the step's words, without regard to case, blanks, label and closing
    punctuation, or where it states each of its equations, with the operands in any order: "5 * 4 =
    20" is restated by "4 × 5 = $20". A step in other words is not recognised.

    Returns
    -------
    bool or None
        None where the step states no equation and has fewer than ``MIN_WORDS`` words: a reply may
        hold "So 7" by chance.
    """
    statement = _fold_text(step[find_label_end(step) :])
    step_equations = _computed_equations(step)
    if not step_equations and len(statement.split()) < MIN_WORDS:
        return None
    if _holds_words(_fold_text(reply), statement):
        return True
    if not step_equations or len(_DIGITS_RE.findall(reply)) < MIN_NUMBERS:
        return False
    return step_equations <= _computed_equations(reply)


def _holds_words(text: str, words: str) -> bool:
    """Return whether a text holds these words, and not as a part of other words or numbers."""
    start = text.find(words)
    while start >= 0:
        if _WORD_START_RE.match(text, start) and _WORD_END_RE.match(text, start + len(words)):
            return True
        start = text.find(words, start + 1)
    return False


def _fold_text(text: str) -> str:
    """Return a text without case, markup, repeated blanks and closing punctuation."""
    return " ".join(_MARKUP_RE.sub("", text).casefold().split()).rstrip(".,;:! ")


@lru_cache(4096)
def _computed_equations(text: str) -> frozenset[tuple[object, ...]]:
    """Return operands and result of each equation that computes something."""
    return frozenset(
        (frozenset(Counter(equation.numbers).items()), equation.result)
        for equation in read_equations(text)
        if equation.n_operations and equation.result is not None
    )
