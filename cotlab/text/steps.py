"""Split a chain of thought into steps, and a text into sentences.

The functions search for cut positions; a step is the text between two cuts without outer white
space, so no character is changed, moved or lost. Every search is one pass over the text, and no
pattern backtracks over more than a fixed number of characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from cotlab.core.reasoning import read_reasoning
from cotlab.text.sentences import (
    Line,
    Spans,
    find_protected_spans,
    is_inside_span,
    nonblank_lines,
    sentence_cuts,
)

SPLITTER_VERSION = 3
"""Version of the step splitter, which a run stores: raise it where real chains are cut elsewhere.

2: paragraphs are steps; lists, tables and display mathematics join their step. 3: of a reply with
reasoning between delimiters, that is the chain.
"""
_LINE_MARK_PATTERN = (
    r"[ \t]{0,12}(?:>[ \t]?)?(?:#{1,6}[ \t]*)?(?:[-*+•][ \t]+)?(?:\*\*|__)?[ \t]{0,3}"
)
_STEP_NUMBER_PATTERN = "one|two|three|four|five|six|seven|eight|nine|ten"
# "Step 1:", "**Step two**", "- Step 3 Add"
_STEP_LABEL_RE = re.compile(
    rf"{_LINE_MARK_PATTERN}\[?step[ \t]+(?:\d{{1,4}}|{_STEP_NUMBER_PATTERN})\b"
    r"(?=\s*(?:[:.)\]–—*_-]|$)|[ \t]+(?-i:[A-Z]))",
    re.IGNORECASE,
)
# the blank before "Step 2:" in "It is 5. Step 2: Add 7."
_INLINE_STEP_RE = re.compile(r"(?<=[.!?;:\])*])\s+(?=(?:\*\*)?Step\s\d{1,4}\s?[:.)])")
# "1. ", "**2)** ", "(3) "
_NUMBER_LABEL_RE = re.compile(
    r"([ \t]{0,12})(?:#{1,6}[ \t]*)?(?:\*\*|__)?\(?(\d{1,3})[.)](?:\*\*|__)?(?=\s+\S|\*\*)"
)
_BULLET_RE = re.compile(r"([ \t]{0,40})[-*+•‣▪–][ \t]+")  # "- ", "  * "
# "## Addition", "**Addition:**", "Final answer"
_TITLE_RE = re.compile(
    r"\s*+(?:#{1,6}\s.*+|(?:[-*]\s)?(?:\*\*|__)[^*\n]{1,200}(?:\*\*|__):?\s*+"
    r"|(?i:(?:final\s)?answer|conclusion|solution|explanation|verification)\s*+)"
)
# "$$", "\begin{align}", "\]"
_DISPLAY_START_RE = re.compile(r"\s*(?:\$\$|\\[\[\]]|\\(?:begin|end)\{|```|~~~)")
# "\]", "$$.", "\end{cases}"
_DISPLAY_END_RE = re.compile(r"(?:\\\]|\$\$|\\end\{[A-Za-z]{1,30}\*?\})[\s.,;:]*$")
# "which implies", "for all x", "= 5": no sentence begins so
_CONTINUATION_RE = re.compile(
    r"\s*(?:(?:which|where|such that|for (?:all|any|some|every|each))\b|[=≈]\s)"
)
_LOWER_CASE_RE = re.compile(r"\s*[a-z]{2}")  # "so", "then"
_VALUE_RE = re.compile(r"\s*(?:\\?[(\[$]+|\\boxed|[-−$€£]?\d)\S{0,80}\s*")  # "\boxed{5}", "42"
_LABEL_LINE_RE = re.compile(
    r"\s*(?:[A-Za-z'’-]{1,20}[ ,]{1,2}){0,4}[A-Za-z'’-]{1,20}:\s*"
)  # "Given:"
_TABLE_ROW_RE = re.compile(r"\s*\|.*\|\s*")  # "| 3 | 4 |"
_MIN_BODY_PARAGRAPHS = 3
"""Paragraphs besides conclusions that a chain needs to be read by paragraphs."""
_MAX_LIST_SHARE = 0.5
"""Share of the characters from which a list, or a paragraph, is the chain and not a part of it."""
_MAX_PROSE_LIST_SHARE = 0.25
"""The same for a numbered list, whose numbers usually are the steps' own."""
_MAX_INTRODUCTION_SHARE = 0.4
"""Share of the characters from which the text before a numbered list has steps of its own."""
_CONCLUDING_WORD_PATTERN = (
    r"(?:so|therefore|thus|hence|consequently|finally|in conclusion|to conclude|overall)"
)
# "So the answer is 5", "#### 5", "Final answer:", "Thus Ann's answer"
_CONCLUSION_RE = re.compile(
    r"[\s>*_#-]{0,12}(?:####|\\boxed|\$?\\boxed|A:"
    rf"|(?:{_CONCLUDING_WORD_PATTERN}\b[,:\s]{{0,3}})?(?:(?:the|my|our)\s+)?"
    r"(?:(?:final|correct|right)\s+)?(?:answer|conclusion|result)\b"
    rf"|{_CONCLUDING_WORD_PATTERN}\b[^.\n]{{0,60}}\banswer\b)",
    re.IGNORECASE,
)


def split_steps(text: str) -> tuple[str, ...]:
    r"""Split a chain of thought into its steps.

    Returns
    -------
    tuple of str
        The steps in order, verbatim (labels such as ``Step 1:`` stay), without outer white space.
        No step is empty; together they have every character that is not white space. Of a reply
        with reasoning between delimiters (``<think>``, ``[THINK]``, gpt-oss's channels), that is
        the chain: neither a delimiter nor the reply after it is a step.

    Notes
    -----
    In this order: numbered steps (``Step 1:``, ``1.``, ``2)``, ``**Step 3**:``), where what
    precedes the first is one step, further lines belong to their step, and a closing line such as
    ``So the answer is 5.`` is a step of its own; else paragraphs, where there are three or more and
    none has half of the text; else lines; else, where there is only one line (but for closing
    lines), sentences. Fenced code and LaTeX are never cut.

    A fragment is no step: display mathematics, what goes on after it (``which implies``), table
    rows, headings, rules, labels (``Given:``), hard-wrapped and indented lines join their
    neighbour. So does a list that a colon introduces, or a numbered list within the reasoning,
    where it is a part of the text and not most of it.

    Examples
    --------
    >>> split_steps("Step 1: 7 + 5 = 12.\nStep 2: 12 - 3 = 9.\nSo the answer is 9.")
    ('Step 1: 7 + 5 = 12.', 'Step 2: 12 - 3 = 9.', 'So the answer is 9.')
    """
    return tuple(text[start:end] for start, end in step_spans(text))


def step_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return the ranges (start, end) of the steps of a chain, ascending and disjoint.

    ``text[start:end]`` is a step of `split_steps`.
    """
    reasoning = read_reasoning(text)
    return tuple(
        (chain_start + start, chain_start + end)
        for chain_start, chain_end in reasoning.spans or ((reasoning.end, len(text)),)
        for start, end in _chain_spans(text[chain_start:chain_end])
    )


def _chain_spans(text: str) -> tuple[tuple[int, int], ...]:
    protected_spans = find_protected_spans(text)
    lines = nonblank_lines(text, protected_spans)
    cuts = _numbered_cuts(text, lines, protected_spans)
    return _trimmed_spans(text, _line_cuts(text, lines, protected_spans) if cuts is None else cuts)


def sentence_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return the ranges of the sentences of a text, as `step_spans`; a line end ends a sentence."""
    protected_spans = find_protected_spans(text)
    lines = nonblank_lines(text, protected_spans)
    cuts = [line.start for line in lines]
    for line in lines:
        cuts += sentence_cuts(text, line.start, line.end, protected_spans)
    return _trimmed_spans(text, cuts)


def label_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of step and list labels at line starts; their numbers state nothing."""
    for line in nonblank_lines(text, ()):
        for pattern in (_STEP_LABEL_RE, _NUMBER_LABEL_RE):
            if label_match := pattern.match(text, line.start, line.end):
                yield label_match.span()
                break


def _trimmed_spans(text: str, cuts: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return the ranges between cuts without outer white space; blank ones are dropped."""
    edges = sorted({0, len(text), *cuts})
    spans = []
    for start, end in pairwise(edges):
        piece = text[start:end]
        body = piece.strip()
        if body:
            body_start = start + len(piece) - len(piece.lstrip())
            spans.append((body_start, body_start + len(body)))
    return tuple(spans)


def _numbered_cuts(text: str, lines: list[Line], protected_spans: Spans) -> list[int] | None:
    """Return the starts of numbered steps and of closing lines; None if there are no numbers."""
    cuts = [line.start for line in lines if _STEP_LABEL_RE.match(text, line.start, line.end)]
    cuts += [
        m.end()
        for m in _INLINE_STEP_RE.finditer(text)
        if not is_inside_span(protected_spans, m.end())
    ]
    if not cuts:
        cuts = _numbered_line_starts(text, lines)
        if _is_list_in_prose(text, lines, cuts):
            return None
    if not cuts:
        return None
    last_cut = max(cuts)
    last_step_line = next(line for line in reversed(lines) if line.start <= last_cut)
    remaining_lines = lines[lines.index(last_step_line) + 1 :]
    closing_cuts: list[int] = []
    if text[last_step_line.start : last_cut].strip():  # the last step begins within its line
        sentence_starts = sentence_cuts(text, last_cut, last_step_line.end, protected_spans)
        closing_cuts = [cut for cut in sentence_starts if _CONCLUSION_RE.match(text, cut)]
    is_last_step_title = bool(_TITLE_RE.fullmatch(text, last_step_line.start, last_step_line.end))
    is_last_step_title = is_last_step_title or text[: last_step_line.end].rstrip().endswith(":")
    has_hanging_line = False
    for i, line in enumerate(remaining_lines):
        previous_line = remaining_lines[i - 1] if i else last_step_line
        follows_blank_line = text.count("\n", previous_line.end, line.start) > 1
        has_hanging_line = has_hanging_line or previous_line.indent > last_step_line.indent
        is_indented = line.indent > last_step_line.indent
        starts_paragraph = (
            follows_blank_line
            and (has_hanging_line or not is_last_step_title)
            and not is_indented
            and not _BULLET_RE.match(text, line.start)
        )
        is_heading = (
            is_last_step_title
            and not is_indented
            and _TITLE_RE.fullmatch(text, line.start, line.end)
        )
        if _CONCLUSION_RE.match(text, line.start, line.end) or starts_paragraph or is_heading:
            closing_cuts += _unjoined_line_starts(text, remaining_lines[i:])
            break
    return cuts + closing_cuts


def _numbered_line_starts(text: str, lines: list[Line]) -> list[int]:
    """Return the starts of lines labelled 1, 2, 3 …; a stray "12." does not count."""
    matches = ((line, _NUMBER_LABEL_RE.match(text, line.start, line.end)) for line in lines)
    labelled_lines = [(line, int(match[2])) for line, match in matches if match]
    labelled_lines = [
        (line, n) for line, n in labelled_lines if line.indent <= labelled_lines[0][0].indent + 1
    ]
    numbers = [n for _, n in labelled_lines]
    cuts: list[int] = []
    expected_number = -1
    for i, (line, n) in enumerate(labelled_lines):
        starts_run = not cuts and numbers[i + 1 : i + 2] == [n + 1]
        if n == expected_number or line is lines[0] or n in (0, 1) or starts_run:
            cuts.append(line.start)
            expected_number = n + 1
    return cuts if len(cuts) > 1 or (cuts and labelled_lines[0][0] is lines[0]) else []


def _is_list_in_prose(text: str, lines: list[Line], cuts: list[int]) -> bool:
    """Return whether numbered lines are a list within the reasoning: short, or after much text."""
    label_starts = set(cuts)
    labelled_lines = [i for i, line in enumerate(lines) if line.start in label_starts]
    if not labelled_lines or labelled_lines[0] == 0:
        return False
    first_index, last_index = labelled_lines[0], labelled_lines[-1]
    if lines[first_index].start > _MAX_INTRODUCTION_SHARE * len(text):
        return True
    if last_index - first_index >= len(labelled_lines):
        return False
    n_characters = lines[last_index].end - lines[first_index].start
    return n_characters < _MAX_PROSE_LIST_SHARE * len(text)


def _line_cuts(text: str, lines: list[Line], protected_spans: Spans) -> list[int]:
    """Return cuts at paragraphs, else lines, else sentences if a line has the whole reasoning."""
    cuts = _without_list_items(text, _unjoined_line_starts(text, lines))
    cuts = _paragraph_cuts(text, cuts) or cuts
    edges = [*cuts, len(text)]
    body_spans = [
        (start, end) for start, end in pairwise(edges) if not _CONCLUSION_RE.match(text, start, end)
    ]
    if len(body_spans) == 1 and not _BULLET_RE.match(text, body_spans[0][0]):
        cuts += sentence_cuts(text, *body_spans[0], protected_spans)
    elif not body_spans and len(cuts) == 1:
        cuts += sentence_cuts(text, cuts[0], len(text), protected_spans)
    return cuts


def _without_list_items(text: str, cuts: list[int]) -> list[int]:
    """Return the cuts but those of lists that a colon introduces and that are no chain."""
    edges = [*cuts, len(text)]
    valid_cuts: list[int] = []
    i = 0
    while i < len(cuts):
        valid_cuts.append(cuts[i])
        last_index = i
        if text[cuts[i] : edges[i + 1]].rstrip().endswith(":"):
            while last_index + 1 < len(cuts) and _is_list_item(text, cuts[last_index + 1]):
                last_index += 1
        n_characters = edges[last_index + 1] - edges[i + 1]
        n_other_steps = len(cuts) - (last_index - i + 1)
        is_part = n_characters < _MAX_LIST_SHARE * len(text)
        if not (is_part and n_other_steps >= _MIN_BODY_PARAGRAPHS - 1):
            valid_cuts += cuts[i + 1 : last_index + 1]
        i = last_index + 1
    return valid_cuts


def _is_list_item(text: str, start: int) -> bool:
    """Return whether a line is an item of a list."""
    return bool(_BULLET_RE.match(text, start) or _NUMBER_LABEL_RE.match(text, start))


def _paragraph_cuts(text: str, cuts: list[int]) -> list[int]:
    """Return the cuts at paragraphs and closing lines; none where paragraphs are not the steps."""
    paragraph_starts = cuts[:1] + [
        end for start, end in pairwise(cuts) if _ends_with_blank_line(text[start:end])
    ]
    body_starts = [cut for cut in paragraph_starts if not _CONCLUSION_RE.match(text, cut)]
    if len(body_starts) < _MIN_BODY_PARAGRAPHS:
        return []
    edges = [*paragraph_starts, len(text)]
    if max(end - start for start, end in pairwise(edges)) > _MAX_LIST_SHARE * len(text):
        return []
    closing_cuts = [
        cut for cut in cuts if cut > paragraph_starts[-1] and _CONCLUSION_RE.match(text, cut)
    ]
    return paragraph_starts + closing_cuts


def _ends_with_blank_line(text: str) -> bool:
    """Return whether a blank line follows the last line of a text."""
    return len(text[len(text.rstrip()) :].splitlines()) > 1


def _unjoined_line_starts(text: str, lines: list[Line]) -> list[int]:
    """Return the starts of lines that do not continue the line before."""
    cuts: list[int] = []
    bullet_indent: int | None = None  # of the bullet that indented lines continue
    joins_next_line = False  # whether a heading or a line without a letter joins the next line
    for i, line in enumerate(lines):
        body = text[line.start : line.end]
        bullet_match = _BULLET_RE.match(body)
        has_no_letters = not any(c.isalnum() for c in body)
        previous_line = lines[i - 1] if i else line
        follows_blank_line = text.count("\n", previous_line.end, line.start) > 1
        previous_text = text[previous_line.start : previous_line.end]
        is_wrapped = not follows_blank_line and _is_hard_wrapped(previous_text, body)
        is_hanging = (
            bullet_indent is not None
            and not bullet_match
            and not follows_blank_line
            and line.indent > bullet_indent
        )
        is_continued = (
            is_wrapped or is_hanging or _is_fragment(previous_text, body) or has_no_letters
        )
        if not i or not (joins_next_line or is_continued):
            cuts.append(line.start)
        joins_next_line = bool(_TITLE_RE.fullmatch(body)) or (
            has_no_letters and (not i or joins_next_line)
        )
        bullet_indent = (
            len(bullet_match[1]) if bullet_match else bullet_indent if is_hanging else None
        )
    return cuts


def _is_fragment(previous_text: str, body: str) -> bool:
    """Return whether a line says nothing without the line before it, or completes that line."""
    if _DISPLAY_START_RE.match(body) or _CONTINUATION_RE.match(body):
        return True
    is_open = previous_text.rstrip().endswith(":")
    if _TABLE_ROW_RE.fullmatch(body):
        return is_open or bool(_TABLE_ROW_RE.fullmatch(previous_text))
    if _LOWER_CASE_RE.match(body) and (is_open or _DISPLAY_END_RE.search(previous_text)):
        return True
    if _LABEL_LINE_RE.fullmatch(previous_text):
        return not _is_list_item(body, 0)
    return is_open and bool(_VALUE_RE.fullmatch(body))


def _is_hard_wrapped(line: str, next_line: str) -> bool:
    """Return whether a long line without a full stop continues in a lower-case line."""
    line, next_letters = line.rstrip(), next_line.lstrip()[:2]
    is_open = len(line) >= 60 and line[-1] not in ".!?:;…"
    return is_open and next_letters.isalpha() and next_letters.islower()
