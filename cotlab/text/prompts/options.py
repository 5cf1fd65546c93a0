"""Prepare a suite for a run: options that questions do not list, answers that are words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from cotlab.core.types import Item, Suite
from cotlab.text.answers.normal import word_key
from cotlab.text.answers.options import listed_options
from cotlab.text.answers.targets import is_word_answer, item_choices, item_targets

_MAX_LETTERS = 26
# ", " or "\nb) " between two options; no operator, so that "2 + 4" lists nothing
_GAP_RE = re.compile(r"[\s\w,;/|()\[\].:\"'•–-]*")
_MAX_GAP = 14


def with_listed_options(suite: Suite) -> Suite:
    """Return a suite whose questions list the options of ``choices``, by letter.

    The suite itself, with its digest, where each question lists them already.
    """
    items = tuple(map(_list_options, suite.items))
    return suite if items == suite.items else Suite.from_items(suite.name, items)


def with_word_matching(suite: Suite) -> Suite:
    """Return a suite in which other words are another answer, where all its answers are words.

    Where some answers are sentences, numbers or formulas, two different wordings stay undecided.
    """
    answers = [target for item in suite.items for target in item_targets(item)]
    if not answers or not all(map(is_word_answer, answers)):
        return suite
    items = tuple(
        item
        if "match" in item.meta or item_choices(item)
        else replace(item, meta={**item.meta, "match": "words"})
        for item in suite.items
    )
    return suite if items == suite.items else Suite.from_items(suite.name, items)


def _list_options(item: Item) -> Item:
    choices = item_choices(item) if "choices" in item.meta else ()
    if not 1 < len(choices) <= _MAX_LETTERS or _shows_options(item.question, choices):
        return item
    lines = (f"{chr(ord('A') + k)}) {choice.strip()}" for k, choice in enumerate(choices))
    return replace(item, question="\n".join((f"{item.question.rstrip()}\n", *lines)))


def _shows_options(question: str, choices: Sequence[str]) -> bool:
    """Whether a question lists the options, with letters or one after another."""
    if list(map(word_key, listed_options(question))) == list(map(word_key, choices)):
        return True
    end = -1
    for choice in choices:  # each after the one before, with a few characters between
        found = re.compile(r"\s+".join(map(re.escape, choice.split())), re.IGNORECASE).search(
            question, max(end, 0)
        )
        gap = question[end : found.start()] if found and end >= 0 else ""
        if found is None or len(gap) > _MAX_GAP or not _GAP_RE.fullmatch(gap):
            return False
        end = found.end()
    return True
