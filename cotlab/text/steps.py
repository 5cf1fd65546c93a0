"""Split a chain of thought into steps, and a text into sentences.

The functions search for cut positions; a step is the text between two cuts without outer white
space, so no character is changed, moved or lost. Every search is one pass over the text, and no
pattern backtracks over more than a fixed number of characters.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple


def _word_set(listed: str) -> frozenset[str]:
    """Split a string of words into a set."""
    return frozenset(listed.split())


_NEWLINE = re.compile(r"\r\n?|\n|\u2028|\u2029")  # "\n"
# "```", "$$", "\[", "\(", "$" and "`" open a range that is not cut; "\$" does not
_OPENER = re.compile(r"^[ \t]{0,12}(```|~~~)|\\[$\\]|(\$\$|\\\[|\\\()|(\$)|(`)", re.MULTILINE)
_CLOSER = {"$$": "$$", "\\[": "\\]", "\\(": "\\)"}
_ENVIRONMENT = re.compile(r"\\(begin|end)\{([A-Za-z]{1,30}\*?)\}")  # "\begin{align*}"

_MARK = r"[ \t]{0,12}(?:>[ \t]?)?(?:#{1,6}[ \t]*)?(?:[-*+•][ \t]+)?(?:\*\*|__)?[ \t]{0,3}"
_STEP_NUMBERS = "one|two|three|four|five|six|seven|eight|nine|ten"
# "Step 1:", "**Step two**", "- Step 3 Add"
_STEP_LABEL = re.compile(
    rf"{_MARK}\[?step[ \t]+(?:\d{{1,4}}|{_STEP_NUMBERS})\b"
    r"(?=\s*(?:[:.)\]–—*_-]|$)|[ \t]+(?-i:[A-Z]))",
    re.IGNORECASE,
)
# the blank before "Step 2:" in "It is 5. Step 2: Add 7."
_INLINE_STEP = re.compile(r"(?<=[.!?;:\])*])\s+(?=(?:\*\*)?Step\s\d{1,4}\s?[:.)])")
# "1. ", "**2)** ", "(3) "
_NUMBER_LABEL = re.compile(
    r"([ \t]{0,12})(?:#{1,6}[ \t]*)?(?:\*\*|__)?\(?(\d{1,3})[.)](?:\*\*|__)?(?=\s+\S|\*\*)"
)
_BULLET = re.compile(r"([ \t]{0,40})[-*+•‣▪–][ \t]+")  # "- ", "  * "
# "## Addition", "**Addition:**"
_TITLE = re.compile(r"\s*+(?:#{1,6}\s.*+|(?:[-*]\s)?(?:\*\*|__)[^*\n]{1,200}(?:\*\*|__):?\s*+)")
_DISPLAY = re.compile(r"\s*(?:\$\$|\\\[|\\begin\{|```|~~~)")  # "$$", "\begin{align}"
_LEAD = r"(?:so|therefore|thus|hence|consequently|finally|in conclusion|to conclude|overall)"
# "So the answer is 5", "#### 5", "Final answer:", "Thus Ann's answer"
_CONCLUSION = re.compile(
    r"[\s>*_#-]{0,12}(?:####|\\boxed|\$?\\boxed|A:"
    rf"|(?:{_LEAD}\b[,:\s]{{0,3}})?(?:(?:the|my|our)\s+)?"
    r"(?:(?:final|correct|right)\s+)?(?:answer|conclusion|result)\b"
    rf"|{_LEAD}\b[^.\n]{{0,60}}\banswer\b)",
    re.IGNORECASE,
)

# "." of "It is 5. Then", "?!\"", "。"
_STOP = re.compile(r"(?:(?<![.!?])[.!?]++|…|[。！？])[\"'”’»)\]*_]{0,6}+(?=\s|(?<=[。！？]))")
_WORD_BEFORE = re.compile(r"(?:[A-Za-z]\.){1,5}$|[A-Za-z]{1,15}\.$")  # "a.m.", "Dr."
_WORD = re.compile(r"[A-Za-z]+")  # "Then"
_VARIABLE = re.compile(r"[a-z]\d?\s?=")  # "x = 5" begins a sentence in lower case
_PROSE = re.compile(r"\n|<<|[a-z0-9)][.!?]\s+[A-Z][a-z]")  # "5. Then": no LaTeX between "$" signs
_LIST_NUMBER = re.compile(r"[\s(*_#]{0,8}\d{1,3}\.")  # "1.", "(2."
_CODE = re.compile(r"[^`\n]{1,300}`")  # "x = 5`"
_NEVER_LAST = _word_set(  # abbreviations that never end a sentence
    "dr mr mrs ms mx prof rev hon gen col capt lt sgt st mt vs cf approx ca viz eg ie e.g i.e gov"
    " sen rep"
)
_SELDOM_LAST = _word_set(  # abbreviations that end one only before a word of _STARTERS
    "al ft dept est inc ltd corp co jr sr jan feb mar apr jun jul aug sep sept oct nov dec"
)
_BEFORE_NUMBER = _word_set("no nos fig figs eq eqs sec vol ch p pp thm lem ref refs ver")
"""Abbreviations that end no sentence before a number: "fig. 3"."""
_STARTERS = _word_set(
    "a after also an and as at but each finally first for from he hence her his however if in it"
    " its let next no now on option our she since so that the their then there therefore they this"
    " thus to we when which yes you"
)


class _Line(NamedTuple):
    """A line that is not blank: its range and its indentation."""

    start: int
    end: int
    indent: int


def split_steps(text: str) -> tuple[str, ...]:
    r"""Split a chain of thought into its steps.

    Returns
    -------
    tuple of str
        The steps in order, verbatim (labels such as ``Step 1:`` stay), without outer white space.
        No step is empty; together they have every character that is not white space.

    Notes
    -----
    In this order: numbered steps (``Step 1:``, ``1.``, ``2)``, ``**Step 3**:``), where what
    precedes the first is one step, further lines belong to their step, and a closing line such as
    ``So the answer is 5.`` is a step of its own; else lines, where display mathematics, headings,
    rules, hard-wrapped and indented lines join their neighbour; else, where there is only one line
    (but for closing lines), sentences. Fenced code and LaTeX are never cut.

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
    protected = _protected(text)
    lines = _lines(text, protected)
    cuts = _numbered_cuts(text, lines, protected)
    return _trimmed(text, _line_cuts(text, lines, protected) if cuts is None else cuts)


def sentence_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return the ranges of the sentences of a text, as `step_spans`; a line end ends a sentence."""
    protected = _protected(text)
    lines = _lines(text, protected)
    starts = [line.start for line in lines]
    return _trimmed(
        text,
        starts
        + [cut for line in lines for cut in _sentence_cuts(text, line.start, line.end, protected)],
    )


def label_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of step and list labels at line starts; their numbers state nothing."""
    for line in _lines(text, ()):
        label = _STEP_LABEL.match(text, line.start, line.end) or _NUMBER_LABEL.match(
            text, line.start, line.end
        )
        if label:
            yield label.span()


def _trimmed(text: str, cuts: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return the ranges between cuts without outer white space; blank ones are dropped."""
    edges = sorted({0, len(text), *cuts})
    spans = []
    for start, end in pairwise(edges):
        piece = text[start:end]
        body = piece.strip()
        if body:
            at = start + len(piece) - len(piece.lstrip())
            spans.append((at, at + len(body)))
    return tuple(spans)


def _protected(text: str) -> tuple[tuple[int, int], ...]:
    """Return the ranges that are never cut: fenced code, inline code, LaTeX that is closed."""
    spans: list[tuple[int, int]] = []
    missing: set[str] = set()
    at = 0
    while (match := _OPENER.search(text, at)) is not None:
        fence, pair, dollar, tick = match.groups()
        at, end = match.end(), -1
        if fence:
            closing = text.find("\n" + fence, at)
            # an unclosed fence runs to the end, as in CommonMark
            end = closing + 1 + len(fence) if closing >= 0 else len(text)
        elif pair and _CLOSER[pair] not in missing:
            closing = text.find(_CLOSER[pair], at)
            end = closing + 2 if closing >= 0 else -1
            if closing < 0:
                missing.add(_CLOSER[pair])
        elif dollar:
            end = _inline_maths(text, at)
        elif tick and (code := _CODE.match(text, at)):
            end = code.end()
        if end >= 0:
            spans.append((match.start(), end))
            at = end
    opened: list[tuple[str, int]] = []
    for mark in _ENVIRONMENT.finditer(text):
        if mark[1] == "begin":
            opened.append((mark[2], mark.start()))
        elif opened and opened[-1][0] == mark[2]:
            spans.append((opened.pop()[1], mark.end()))
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def _inline_maths(text: str, at: int) -> int:
    """Return the end of ``$...$`` opened before ``at``, or -1 (Pandoc's rule; "$5 and $18": -1)."""
    close = text.find("$", at, at + 500)
    if close <= at or text[at].isspace() or text[close - 1].isspace() or text[close - 1] == "\\":
        return -1
    after = text[close + 1 : close + 2]
    return -1 if after.isdigit() or _PROSE.search(text, at, close) else close + 1


def _inside(spans: Sequence[tuple[int, int]], at: int) -> bool:
    """Return whether a cut would fall inside a protected range."""
    i = bisect_right(spans, (at, -1)) - 1
    return i >= 0 and spans[i][0] < at < spans[i][1]


def _lines(text: str, protected: Sequence[tuple[int, int]]) -> list[_Line]:
    """Return the lines that are not blank; line breaks in protected ranges do not count."""
    lines: list[_Line] = []
    start = 0
    ends = [
        (m.start(), m.end()) for m in _NEWLINE.finditer(text) if not _inside(protected, m.start())
    ]
    for end, following in [*ends, (len(text), len(text))]:
        body = text[start:end]
        if body.strip():
            lines.append(_Line(start, end, len(body) - len(body.lstrip())))
        start = following
    return lines


def _numbered_cuts(
    text: str, lines: list[_Line], protected: Sequence[tuple[int, int]]
) -> list[int] | None:
    """Return the starts of numbered steps and of closing lines; None if there are no numbers."""
    cuts = [line.start for line in lines if _STEP_LABEL.match(text, line.start, line.end)]
    cuts += [m.end() for m in _INLINE_STEP.finditer(text) if not _inside(protected, m.end())]
    if not cuts:
        cuts = _counted(text, lines)
    if not cuts:
        return None
    last = max(cuts)
    owner = next(line for line in reversed(lines) if line.start <= last)
    rest = lines[lines.index(owner) + 1 :]
    inline = last > owner.start and not text[owner.start : last].isspace()
    closing = (
        [
            cut
            for cut in _sentence_cuts(text, last, owner.end, protected)
            if _CONCLUSION.match(text, cut)
        ]
        if inline
        else []
    )
    title = bool(_TITLE.fullmatch(text, owner.start, owner.end)) or text[
        : owner.end
    ].rstrip().endswith(":")
    hung = False
    for i, line in enumerate(rest):
        blank_line = text.count("\n", rest[i - 1].end if i else owner.end, line.start) > 1
        hung = hung or (i > 0 and rest[i - 1].indent > owner.indent)
        new_paragraph = (
            blank_line
            and (hung or not title)
            and line.indent <= owner.indent
            and not _BULLET.match(text, line.start)
        )
        heading = (
            bool(_TITLE.fullmatch(text, line.start, line.end))
            and line.indent <= owner.indent
            and title
        )
        if _CONCLUSION.match(text, line.start, line.end) or new_paragraph or heading:
            closing += _joined(text, rest[i:])
            break
    return cuts + closing


def _counted(text: str, lines: list[_Line]) -> list[int]:
    """Return the starts of lines labelled 1, 2, 3 …; a stray "12." does not count."""
    labelled = [
        (line, m) for line in lines if (m := _NUMBER_LABEL.match(text, line.start, line.end))
    ]
    labelled = [(line, m) for line, m in labelled if line.indent <= labelled[0][0].indent + 1]
    numbers = [int(m[2]) for _, m in labelled]
    cuts: list[int] = []
    expected = -1
    for i, (line, _) in enumerate(labelled):
        starts = (
            line is lines[0]
            or numbers[i] in (0, 1)
            or (not cuts and numbers[i + 1 : i + 2] == [numbers[i] + 1])
        )
        if numbers[i] == expected or starts:
            cuts.append(line.start)
            expected = numbers[i] + 1
    return cuts if len(cuts) > 1 or (cuts and labelled[0][0] is lines[0]) else []


def _line_cuts(text: str, lines: list[_Line], protected: Sequence[tuple[int, int]]) -> list[int]:
    """Return cuts at lines, and at sentences if one line has the whole reasoning."""
    cuts = _joined(text, lines)
    edges = [*cuts, len(text)]
    bodies = [(a, b) for a, b in pairwise(edges) if not _CONCLUSION.match(text, a, b)]
    if len(bodies) == 1 and not _BULLET.match(text, bodies[0][0]):
        cuts += _sentence_cuts(text, *bodies[0], protected)
    elif not bodies and len(cuts) == 1:
        cuts += _sentence_cuts(text, cuts[0], len(text), protected)
    return cuts


def _joined(text: str, lines: list[_Line]) -> list[int]:
    """Return the starts of lines that do not continue the line before."""
    cuts: list[int] = []
    indent: int | None = None  # of the bullet that indented lines continue
    pending = False  # whether a heading or a line without a letter joins the next line
    for i, line in enumerate(lines):
        body = text[line.start : line.end]
        bullet = _BULLET.match(body)
        blank = not any(c.isalnum() for c in body)
        previous = lines[i - 1] if i else None
        blank_line = previous is not None and text.count("\n", previous.end, line.start) > 1
        wrapped = (
            previous is not None
            and not blank_line
            and _wraps(text[previous.start : previous.end], body)
        )
        hangs = indent is not None and not bullet and not blank_line and line.indent > indent
        title = bool(_TITLE.fullmatch(body))
        if previous is None or not (pending or blank or wrapped or hangs or _DISPLAY.match(body)):
            cuts.append(line.start)
        pending = title or (blank and (previous is None or pending))
        indent = len(bullet[1]) if bullet else indent if hangs else None
    return cuts


def _wraps(line: str, following: str) -> bool:
    """Return whether a long line without a full stop continues in a lower-case line."""
    line, following = line.rstrip(), following.lstrip()
    return (
        len(line) >= 60
        and line[-1] not in ".!?:;…"
        and following[:2].isalpha()
        and following[:2].islower()
    )


def _sentence_cuts(
    text: str, start: int, end: int, protected: Sequence[tuple[int, int]]
) -> list[int]:
    """Return the starts of sentences, the first excluded."""
    cuts = []
    for stop in _STOP.finditer(text, start, end):
        cut = stop.end()
        while cut < end and text[cut].isspace():
            cut += 1
        if (
            cut < end
            and not _inside(protected, stop.start())
            and not _inside(protected, cut)
            and _ends(text, start, stop, cut)
        ):
            cuts.append(cut)
            start = cut
    return cuts


def _ends(text: str, start: int, stop: re.Match[str], following: int) -> bool:
    """Return whether a stop ends a sentence; ``following`` is the start of the next one."""
    mark = stop.group()
    if mark[0] in "。！？":
        return True
    follows = text[following]
    word = _WORD.match(text, following)
    if follows.islower() and not _VARIABLE.match(text, following):
        return False
    if follows in "=+*/^<>.,;:)]}%" and not text.startswith("**", following):
        return False
    if mark[0] != "." or mark.startswith(".."):
        return not (mark.startswith((".", "…")) and follows.isdigit())
    before = text[max(start, stop.start() - 20) : stop.start() + 1]
    if _LIST_NUMBER.fullmatch(before):  # "1." is a label, not a sentence
        return False
    abbreviation = _WORD_BEFORE.search(before)
    if not abbreviation:
        return True
    name = abbreviation.group()[:-1].lower()
    starter = word is not None and word.group().lower() in _STARTERS and word.group()[0].isupper()
    if name in _BEFORE_NUMBER:
        return not (follows.isdigit() or follows in "(#")
    if name in _NEVER_LAST:
        return False
    if name in ("a.m", "p.m", "etc"):
        return True
    if name in _SELDOM_LAST or "." in name:
        return starter
    if (
        len(name) == 1 and abbreviation.group()[0].isupper() and follows.isalpha()
    ):  # J. K. Rowling; but "vitamin C. Then …"
        return starter and word is not None and word.group() != "A"
    return True
