"""Find the lines and sentences of a text, and the ranges that no cut divides.

Every search is one pass over the text, and no pattern backtracks over more than a fixed number of
characters.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from cotlab.text.keywords import (
    ABBREVIATIONS_BEFORE_NUMBERS,
    NEVER_FINAL_ABBREVIATIONS,
    SELDOM_FINAL_ABBREVIATIONS,
    SENTENCE_STARTERS,
)

_NEWLINE_RE = re.compile(r"\r\n?|\n|\u2028|\u2029")  # "\n"
# "```", "$$", "\[", "\(", "$" and "`" open a range that is not cut; "\$" does not
_PROTECTED_START_RE = re.compile(
    r"^[ \t]{0,12}(```|~~~)|\\[$\\]|(\$\$|\\\[|\\\()|(\$)|(`)", re.MULTILINE
)
_CLOSER_BY_OPENER = {"$$": "$$", "\\[": "\\]", "\\(": "\\)"}
_ENVIRONMENT_RE = re.compile(r"\\(begin|end)\{([A-Za-z]{1,30}\*?)\}")  # "\begin{align*}"

# "." of "It is 5. Then", "?!\"", "。"
_SENTENCE_STOP_RE = re.compile(
    r"(?:(?<![.!?])[.!?]++|…|[。！？])[\"'”’»)\]*_]{0,6}+(?=\s|(?<=[。！？]))"
)
_ABBREVIATION_RE = re.compile(r"(?:[A-Za-z]\.){1,5}$|[A-Za-z]{1,15}\.$")  # "a.m.", "Dr."
_WORD_RE = re.compile(r"[A-Za-z]+")  # "Then"
_VARIABLE_RE = re.compile(r"[a-z]\d?\s?=")  # "x = 5" begins a sentence in lower case
# "5. Then": no LaTeX between "$" signs
_PROSE_RE = re.compile(r"\n|<<|[a-z0-9)][.!?]\s+[A-Z][a-z]")
_LIST_NUMBER_RE = re.compile(r"[\s(*_#]{0,8}\d{1,3}\.")  # "1.", "(2."
_INLINE_CODE_RE = re.compile(r"[^`\n]{1,300}`")  # "x = 5`"
Spans = Sequence[tuple[int, int]]
"""Ranges (start, end) of a text."""


class Line(NamedTuple):
    """A line that is not blank: its range and its indentation."""

    start: int
    end: int
    indent: int


def find_protected_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return the ranges that are never cut: fenced code, inline code, LaTeX that is closed."""
    spans: list[tuple[int, int]] = []
    missing_closers: set[str] = set()
    position = 0
    while (match := _PROTECTED_START_RE.search(text, position)) is not None:
        fence, delimiter, dollar, backtick = match.groups()
        position, end = match.end(), -1
        if fence:
            closing_index = text.find("\n" + fence, position)
            # an unclosed fence runs to the end, as in CommonMark
            end = closing_index + 1 + len(fence) if closing_index >= 0 else len(text)
        elif delimiter and _CLOSER_BY_OPENER[delimiter] not in missing_closers:
            closing_index = text.find(_CLOSER_BY_OPENER[delimiter], position)
            end = closing_index + 2 if closing_index >= 0 else -1
            if closing_index < 0:
                missing_closers.add(_CLOSER_BY_OPENER[delimiter])
        elif dollar:
            end = _inline_maths_end(text, position)
        elif backtick and (code_match := _INLINE_CODE_RE.match(text, position)):
            end = code_match.end()
        if end >= 0:
            spans.append((match.start(), end))
            position = end
    open_environments: list[tuple[str, int]] = []
    for environment_match in _ENVIRONMENT_RE.finditer(text):
        if environment_match[1] == "begin":
            open_environments.append((environment_match[2], environment_match.start()))
        elif open_environments and open_environments[-1][0] == environment_match[2]:
            spans.append((open_environments.pop()[1], environment_match.end()))
    merged_spans: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged_spans and start < merged_spans[-1][1]:
            merged_spans[-1] = (merged_spans[-1][0], max(end, merged_spans[-1][1]))
        else:
            merged_spans.append((start, end))
    return tuple(merged_spans)


def _inline_maths_end(text: str, position: int) -> int:
    """Return the end of ``$...$`` opened before ``position``, or -1 (Pandoc; "$5 and $18": -1)."""
    closing_index = text.find("$", position, position + 500)
    if (
        closing_index <= position
        or text[position].isspace()
        or text[closing_index - 1].isspace()
        or text[closing_index - 1] == "\\"
    ):
        return -1
    is_money = text[closing_index + 1 : closing_index + 2].isdigit()
    return -1 if is_money or _PROSE_RE.search(text, position, closing_index) else closing_index + 1


def is_inside_span(spans: Spans, position: int) -> bool:
    """Return whether a cut would fall inside a protected range."""
    index = bisect_right(spans, (position, -1)) - 1
    return index >= 0 and spans[index][0] < position < spans[index][1]


def nonblank_lines(text: str, protected_spans: Spans) -> list[Line]:
    """Return the lines that are not blank; line breaks in protected ranges do not count."""
    lines: list[Line] = []
    start = 0
    newline_spans = (match.span() for match in _NEWLINE_RE.finditer(text))
    line_breaks = [span for span in newline_spans if not is_inside_span(protected_spans, span[0])]
    for end, next_start in [*line_breaks, (len(text), len(text))]:
        body = text[start:end]
        if body.strip():
            lines.append(Line(start, end, len(body) - len(body.lstrip())))
        start = next_start
    return lines


def sentence_cuts(text: str, start: int, end: int, protected_spans: Spans) -> list[int]:
    """Return the starts of sentences, the first excluded."""
    cuts = []
    for stop in _SENTENCE_STOP_RE.finditer(text, start, end):
        cut = stop.end()
        while cut < end and text[cut].isspace():
            cut += 1
        if (
            cut < end
            and not is_inside_span(protected_spans, stop.start())
            and not is_inside_span(protected_spans, cut)
            and _ends_sentence(text, start, stop, cut)
        ):
            cuts.append(cut)
            start = cut
    return cuts


def _ends_sentence(text: str, start: int, stop: re.Match[str], next_start: int) -> bool:
    """Return whether a stop ends a sentence; ``next_start`` is the start of the next one."""
    stop_text = stop.group()
    if stop_text[0] in "。！？":
        return True
    next_character = text[next_start]
    if next_character.islower() and not _VARIABLE_RE.match(text, next_start):
        return False
    if next_character in "=+*/^<>.,;:)]}%" and not text.startswith("**", next_start):
        return False
    if stop_text[0] != "." or stop_text.startswith(".."):
        return not (stop_text.startswith((".", "…")) and next_character.isdigit())
    text_before = text[max(start, stop.start() - 20) : stop.start() + 1]
    if _LIST_NUMBER_RE.fullmatch(text_before):  # "1." is a label, not a sentence
        return False
    abbreviation_match = _ABBREVIATION_RE.search(text_before)
    if not abbreviation_match:
        return True
    abbreviation_text = abbreviation_match.group()[:-1].lower()
    word_match = _WORD_RE.match(text, next_start)
    word = word_match.group() if word_match else ""
    is_sentence_starter = word.lower() in SENTENCE_STARTERS and word[0].isupper()
    if abbreviation_text in ABBREVIATIONS_BEFORE_NUMBERS:
        return not (next_character.isdigit() or next_character in "(#")
    if abbreviation_text in NEVER_FINAL_ABBREVIATIONS:
        return False
    if abbreviation_text in ("a.m", "p.m", "etc"):
        return True
    if abbreviation_text in SELDOM_FINAL_ABBREVIATIONS or "." in abbreviation_text:
        return is_sentence_starter
    is_initial = len(abbreviation_text) == 1 and abbreviation_match.group()[0].isupper()
    if is_initial and next_character.isalpha():  # J. K. Rowling; but "vitamin C. Then …"
        return is_sentence_starter and word != "A"
    return True
