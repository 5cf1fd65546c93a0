"""Tags around an answer: ``<answer>18</answer>``, ``<b>18</b>``; ``<18>`` in a place of a form."""

from __future__ import annotations

import re

from cotlab.text.answers.placeholders import is_placeholder
from cotlab.text.answers.reading import has_content

# "<answer>", "</final_answer>"
_ANSWER_TAG_RE = re.compile(r"(?i)<(/?)(?:final[ _-]?)?answer>")
# "<b>18</b>"
_EMPHASIS_RE = re.compile(r"(?i)<(b|strong|i|em|u|mark|code|p|span)>([^<>\n]{1,400})</\1>")
# "<18>", which is no vector <3, 4>
_FILLED_PLACE_RE = re.compile(r"<([^<>,\n]{0,80}\w[^<>,\n]{0,80})>")


def tagged_answer(text: str) -> str:
    """Return what the last pair of answer tags holds; without a pair, the text without such tags.

    An opening tag that no word follows is left: there it is the place of an answer in a form. So
    is a pair that holds no answer.
    """
    if "<" not in text:
        return text
    text = _EMPHASIS_RE.sub(r"\2", text)
    tags = list(_ANSWER_TAG_RE.finditer(text))
    for opening, closing in reversed(list(zip(tags, tags[1:], strict=False))):
        content = text[opening.end() : closing.start()].strip()
        if (opening[1], closing[1]) == ("", "/") and has_content(content, pair=True):
            return text[: opening.start()] if is_placeholder(content) else content
    return _ANSWER_TAG_RE.sub(
        lambda tag: " " if tag[1] or _is_before_word(text, tag.end()) else tag[0], text
    )


def without_place(answer: str) -> str:
    """Return an answer without the angle brackets of the form that it was written into."""
    match = _FILLED_PLACE_RE.fullmatch(answer)
    return match[1].strip() if match else answer


def _is_before_word(text: str, position: int) -> bool:
    return text[position : position + 20].lstrip(" \t\n*$\\(-")[:1].isalnum()
