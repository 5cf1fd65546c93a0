"""Show the options of a multiple-choice item that its question does not list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from cotlab.core.types import Item, Suite
from cotlab.text.answers.question_choices import find_choices
from cotlab.text.answers.reading import answer_key
from cotlab.text.answers.targets import item_choices

_MAX_LETTERS = 26
# ", " or "\nb) " between two options; no operator, so that "2 + 4" lists nothing
_SEPARATOR_PATTERN = r"[\s\w,;/|()\[\].:\"'•–-]{1,14}?"


def with_listed_options(suite: Suite) -> Suite:
    """Return a suite whose questions list the options of ``choices``, by letter.

    The suite itself, with its digest, where each question lists them already.
    """
    items = tuple(map(_list_options, suite.items))
    return suite if items == suite.items else Suite.from_items(suite.name, items)


def _list_options(item: Item) -> Item:
    choices = item_choices(item) if "choices" in item.meta else ()
    if not 1 < len(choices) <= _MAX_LETTERS or _shows_options(item.question, choices):
        return item
    lines = (f"{chr(ord('A') + k)}) {choice.strip()}" for k, choice in enumerate(choices))
    return replace(item, question="\n".join((f"{item.question.rstrip()}\n", *lines)))


def _shows_options(question: str, choices: Sequence[str]) -> bool:
    """Whether a question lists the options, with letters or one after another."""
    if list(map(answer_key, find_choices(question))) == list(map(answer_key, choices)):
        return True
    texts = (r"\s+".join(map(re.escape, choice.split())) for choice in choices)
    pattern = rf"(?i)(?<!\w){_SEPARATOR_PATTERN.join(rf'(?:{text})' for text in texts)}(?!\w)"
    return re.search(pattern, question) is not None
