"""Windows of a text that is longer than a model reads."""

from __future__ import annotations

import re
from collections.abc import Callable

_PIECE = re.compile(r"\S+\s*|\s+")  # "word " or leading white space


def split_windows(
    text: str, fits: Callable[[str], bool], *, is_overlapping: bool = False
) -> list[str]:
    """Return windows of a text, each as long as fits, cut between words where that is possible.

    Parameters
    ----------
    text : str
    fits : callable of str to bool
        Whether a model reads a text whole; false of a text where it is false of a part.
    is_overlapping : bool
        Whether each window begins in the middle of the one before; else it begins at its end.

    Returns
    -------
    list of str
        The text itself where it fits; empty where not even one character does.
    """
    if fits(text):
        return [text]
    pieces = _PIECE.findall(text)
    windows: list[str] = []
    start = 0
    while start < len(pieces):
        end = _longest_end(pieces, start, fits)
        if end == start:  # one word that does not fit
            word = pieces[start]
            if len(word) == 1:
                return []
            pieces[start : start + 1] = [word[: len(word) // 2], word[len(word) // 2 :]]
            continue
        windows.append("".join(pieces[start:end]))
        if end == len(pieces):
            break
        start = max(start + 1, (start + end + 1) // 2) if is_overlapping else end
    return windows


def _longest_end(pieces: list[str], start: int, fits: Callable[[str], bool]) -> int:
    """Return the end of the longest run of pieces from ``start`` that fits, by bisection."""
    low, high = start, len(pieces)
    while low < high:
        middle = (low + high + 1) // 2
        if fits("".join(pieces[start:middle])):
            low = middle
        else:
            high = middle - 1
    return low


def encodable(text: str) -> str:
    """Return the text without lone surrogates, which tokenizers reject."""
    return text.encode("utf-8", "replace").decode()
