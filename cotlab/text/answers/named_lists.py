"""The names of a list that ends a reply, where the question asks for so many."""

from __future__ import annotations

import re

from cotlab.text.answers.question import last_question
from cotlab.text.answers.reading import tidy_answer
from cotlab.text.written_numbers import word_list

_COUNTS = {word: n for n, word in enumerate(word_list("two three four five six seven"), start=2)}
# "Which three colors", "Name the four seasons"
_QUESTION_RE = re.compile(
    rf"(?i)\b(?:which|what|name|list|give|state)\s(?:are\s)?(?:the\s)?({'|'.join(_COUNTS)}|[2-7])\s"
    r"[a-z]{3,}"
)
# "1. **Green** (hoist side)", "- White"
_ITEM_RE = re.compile(
    r"\s{0,8}(?:[-*•]|\d{1,2}[.)])\s{1,4}\*{0,2}([A-Za-z][\w' -]{0,40}?)\*{0,2}"
    r"(?:\s{1,3}\([^()]{1,80}\))?[\s.,;]{0,4}"
)


def closing_names(text: str, question: str) -> str | None:
    """Return "Green, White, Red" of a list that ends a reply; None for another list.

    It has as many items as the question asks for, each a name alone, with an aside in brackets at
    most.
    """
    match = _QUESTION_RE.search(last_question(question))
    if match is None:
        return None
    n_names = _COUNTS.get(match[1].lower()) or int(match[1])
    lines = [line for line in text.rstrip().split("\n")[-2 * n_names :] if line.strip()]
    items = [_ITEM_RE.fullmatch(line) for line in lines]
    names = [tidy_answer(item[1]) for item in items[-n_names:] if item is not None]
    is_longer = len(items) > n_names and items[-n_names - 1] is not None
    return ", ".join(names) if len(names) == n_names and not is_longer else None
