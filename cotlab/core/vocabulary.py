"""Words that a model's vocabulary lacks, and the sentence that says so in every place."""

from __future__ import annotations

from collections.abc import Set
from typing import Literal, NamedTuple

STEP_OPENING = "Step 1: "
"""How the first step of a chain of the shipped organisms begins."""
_NOT_KNOWN = "not in the model's vocabulary"
_NEEDS_SPACE = f"{_NOT_KNOWN} without a space before"
_LABEL_PIECES = {"Step", ":"}
UnknownWordKind = Literal["", "unknown", "needs_space"]
"""Whether a reason names an unknown word, or one that is known after a space; "" for others."""


class UnknownWord(NamedTuple):
    """A word of a text outside a model's vocabulary."""

    text: str
    """The word."""
    explanation: str = _NOT_KNOWN
    """What is wrong with it, and what to do where that is known."""

    @property
    def is_known_after_space(self) -> bool:
        """Return whether the vocabulary has it with a space before it, which it lacks here."""
        return self.explanation != _NOT_KNOWN

    @property
    def reason(self) -> str:
        """Return the reason of a request that the model refuses for this word."""
        return f"{self.text!r} is {self.explanation}"


def unknown_word(text: str, start: int, end: int, pieces: Set[str]) -> UnknownWord:
    """Return the word at characters [start, end) of a text that a vocabulary lacks, with why.

    A token may be white space alone; then the next word is the unknown one.
    """
    word = text[start:end].strip() or next(iter(text[start:].split()), "a space")
    if f" {word}" not in pieces or text[start:end] != word:
        return UnknownWord(word)
    explanation = f"{_NEEDS_SPACE} it"
    if start == 0 or text[start - 1] == "\n":
        explanation = f"{_NEEDS_SPACE}, as at the start of a line"
        if pieces >= _LABEL_PIECES:
            explanation += f': steps of these models begin with "{STEP_OPENING}"'
    return UnknownWord(word, explanation)


def unknown_word_kind(reason: str) -> UnknownWordKind:
    """Return which kind of word a score's reason names, if it is one that `UnknownWord` gave."""
    if _NEEDS_SPACE in reason:
        return "needs_space"
    return "unknown" if _NOT_KNOWN in reason else ""
