"""Tags around an answer: ``<answer>18</answer>``, ``<b>18</b>``; ``<18>`` for a placeholder."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import NamedTuple

from cotlab.text.answers.placeholders import is_about_markup
from cotlab.text.answers.reading import has_content

# "<answer>", "</final_answer>", "[ANSWER]", "<|begin_of_box|>"
_TAG_RE = re.compile(
    r"(?i)<(/?)(?:(?:final[ _-]?)?answer|final|result)(?:\s[^<>\n]{0,60})?>"
    r"|\[(/?)(?:final )?answer\]|<\|(begin|end)_of_box\|>"
)
# "<b>18</b>"
_EMPHASIS_RE = re.compile(
    r"(?i)<(b|strong|i|em|u|mark|code|p|span)(?:\s[^<>\n]{0,80})?>([^<>\n]{1,400})</\1>"
)
_LINE_BREAK_RE = re.compile(r"(?i)<br\s?/?>")
# "<18>", "<18 coins>", which is no vector <3, 4>
_FILLED_PLACEHOLDER_RE = re.compile(
    r"<\s?([-−]?[$€£]?\d[\d.]{0,30}%?(?: [A-Za-z°²³/]{1,20}){0,3})\s?>"
)
# ", " of "<answer>3</answer>, <answer>4</answer>"
_BETWEEN_RE = re.compile(r"\s{0,3}(?:,|;|and|,\s?and)\s{0,3}")
# "18", "$18", "\\frac", "B" after an opening tag alone
_VALUE_RE = re.compile(r"\s{0,9}[*$:(]{0,4}\s?(?:[-−]?[$€£]?\d|\\|[A-J]\b|(?i:yes|no)\b)")
_MAX_PAIRS = 200
"""Pairs of tags that are looked at, the last ones."""
_NOT_BEFORE_RE = re.compile(r"(?i)(?:\bnot|n['’]t)\s{0,3}[*\"'(]{0,2}$")


class TaggedAnswer(NamedTuple):
    """What stands between a pair of answer tags."""

    start: int
    """First character of the content."""
    end: int
    """Character after the content."""
    content: str
    """The content; of pairs with a comma or "and" between them that of all."""


def find_tagged_answers(text: str) -> tuple[list[TaggedAnswer], str]:
    """Return the contents of pairs of answer tags, and the text with blanks for those tags.

    A pair that "not" stands before is none. An opening tag alone is blanked where a value follows;
    else it is a placeholder, and is left.
    """
    if not (tags := list(_TAG_RE.finditer(text))):
        return [], text
    pairs: list[tuple[re.Match[str], re.Match[str]]] = []
    blanked = list(text)
    for tag, following in zip_longest(tags, tags[1:]):
        is_pair = following is not None and not _is_closing(tag) and _is_closing(following)
        if is_pair and following is not None:
            pairs.append((tag, following))
        if is_pair or _is_closing(tag) or _VALUE_RE.match(text, tag.end()):
            blanked[tag.start() : tag.end()] = " " * (tag.end() - tag.start())
    answers: list[TaggedAnswer] = []
    last_end = -1
    for opening, closing in pairs[-_MAX_PAIRS:]:
        content = text[opening.end() : closing.start()].strip()
        is_denied = _NOT_BEFORE_RE.search(text, max(0, opening.start() - 12), opening.start())
        if is_denied or not has_content(content, pair=True):
            continue
        if answers and _BETWEEN_RE.fullmatch(text, last_end, opening.start()):
            content = f"{answers.pop().content}, {content}"
        answers.append(TaggedAnswer(opening.end(), closing.start(), content))
        last_end = closing.end()
    return answers, "".join(blanked)


def without_emphasis(text: str, question: str) -> str:
    """Return a text without the tags of bold, italics, code and lines.

    Where the question is about markup it stays as it is.
    """
    if "<" not in text or is_about_markup(question):
        return text
    return _EMPHASIS_RE.sub(r"\2", _EMPHASIS_RE.sub(r"\2", _LINE_BREAK_RE.sub("\n", text)))


def without_brackets(answer: str) -> str:
    """Return an answer without the angle brackets of the placeholder that it stands for."""
    match = _FILLED_PLACEHOLDER_RE.fullmatch(answer)
    return match[1].strip() if match else answer


def _is_closing(tag: re.Match[str]) -> bool:
    return "/" in (tag[1], tag[2]) or (tag[3] or "").lower() == "end"
