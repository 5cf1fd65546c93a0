"""Words that a model's vocabulary lacks, and the sentence that says so in every place."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

STEP_OPENING = "Step 1: "
"""How the first step of a chain of the shipped organisms begins."""
_NOT_KNOWN = "not in the model's vocabulary"
_LABEL_PIECES = {"Step", ":"}


class UnknownWord(NamedTuple):
    """A word of a text outside a model's vocabulary."""

    text: str
    """The word."""
    is_known_after_space: bool = False
    """Whether the vocabulary has it with a space before it, which it lacks in the text."""
    has_step_labels: bool = False
    """Whether the vocabulary is that of models whose steps begin with a label."""

    @property
    def reason(self) -> str:
        """Return the reason of a request that the model refuses for this word."""
        return f"{self.text!r} is {self.explanation}"

    @property
    def explanation(self) -> str:
        """Return what is wrong with such words, and what to do where that is known."""
        if not self.is_known_after_space:
            return _NOT_KNOWN
        text = f"{_NOT_KNOWN} without a space before, as at the start of a line"
        if not self.has_step_labels:
            return text
        return f'{text}: steps of these models begin with "{STEP_OPENING}"'


def unknown_word(word: str, pieces: Set[str]) -> UnknownWord:
    """Return a word that a vocabulary of these pieces lacks, with why."""
    return UnknownWord(word, f" {word}" in pieces, pieces >= _LABEL_PIECES)
