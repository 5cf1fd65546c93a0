r"""Boxes of replies (``\boxed{18}``): where they are, and what is in those of one list."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cotlab.text.answers import reading

# "\boxed{", "\{" and "{"
_BRACE_RE = re.compile(r"(\\(?:boxed|fbox)\s{0,3}\{)|\\[{}]|([{}])")
# ", " or " and " between two boxes
_BETWEEN_BOXES_RE = re.compile(
    r"(?:[\s$,;]|\\[()\[\]]|\\text\{\s?(?:and|or)\s?\}|\\q?quad\b|\band\b|\bor\b){0,12}"
)
_NEXT_BOX_RE = re.compile(rf"\}}{_BETWEEN_BOXES_RE.pattern}\\(?:boxed|fbox)\s{{0,3}}\{{")


def box_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the contents of closed boxes, in the order of their ends."""
    open_starts: list[int] = []
    for brace in _BRACE_RE.finditer(text):
        if brace[1] or brace[2] == "{":
            open_starts.append(brace.end() if brace[1] else -1)
        elif brace[2] and open_starts and (start := open_starts.pop()) >= 0:
            yield start, brace.start()


def joined_boxes(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of boxes, those of one list (two boxes with a comma or "and") as one."""
    joined: tuple[int, int] | None = None
    for start, end in box_spans(text):
        between = text[joined[1] + 1 : start] if joined and joined[1] < start else None
        opening = re.search(r"\\(?:boxed|fbox)\s{0,3}\{$", between) if between else None
        if (
            joined
            and between
            and opening
            and _BETWEEN_BOXES_RE.fullmatch(between[: opening.start()])
        ):
            joined = (joined[0], end)
            continue
        if joined:
            yield joined
        joined = (start, end)
    if joined:
        yield joined


def box_content(text: str) -> str:
    """Return what is in a box, or in the boxes of a list with commas between."""
    contents = _NEXT_BOX_RE.split(text)
    return ", ".join(reading.tidy_answer(content) for content in contents)
