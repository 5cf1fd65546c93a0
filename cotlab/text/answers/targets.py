"""The answer to an item: read with its options in mind, and compared with its targets.

An item may list options (``choices`` in its meta, or in its question) and several right answers
(``targets`` in its meta: any of them, or all where ``match`` is "all"). Where ``match`` is "words"
other words are another answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from cotlab.core.types import Item
from cotlab.text.answers.equality import formula_pair, has_number, same_value
from cotlab.text.answers.markers import MARKS, Reading, read_answer
from cotlab.text.answers.normal import tidy, word_key
from cotlab.text.answers.options import chosen_options, listed_options, option_text

_BETWEEN_PARTS_RE = re.compile(r" ?(?:,(?!\d{3}\b)|[;&]) ?(?:and )?| and ")
_FIRST_SENTENCE_RE = re.compile(r"\s*([^\n]{1,60}?)(?:[.!](?=\s|$)|\n|$)")
_MAX_WORDS = 3
"""Words of an answer that is compared word by word."""


def item_choices(item: Item) -> tuple[str, ...]:
    """Return the texts of an item's options in order; empty where its answer is open.

    Options that are read from a question count only where the ground truth is one of them.
    """
    listed = item.meta.get("choices")
    if isinstance(listed, Sequence) and not isinstance(listed, str):
        texts = tuple(text for text in listed if isinstance(text, str) and text.strip())
        return texts if len(texts) == len(listed) > 1 else ()
    options = listed_options(item.question)
    if options and item.answer is not None and chosen_options(item.answer, options) is None:
        return ()
    return options


def item_targets(item: Item) -> tuple[str, ...]:
    """Return the right answers of an item: its ``targets`` where its meta lists some."""
    listed = item.meta.get("targets")
    if isinstance(listed, Sequence) and not isinstance(listed, str):
        texts = tuple(text for text in listed if isinstance(text, str) and text.strip())
        if texts:
            return texts
    return () if item.answer is None else (item.answer,)


def is_word_answer(answer: str) -> bool:
    """Return whether an answer is a few words without a number or a formula, such as a name."""
    return 0 < len(answer.split()) <= _MAX_WORDS and not (
        has_number(answer) or re.search(r"[\\=^]", answer)
    )


def read_reply(item: Item, text: str) -> Reading:
    """Read the answer to an item from a whole reply, with the convention that decided.

    Where the item has options the value is the option that the reply names: "(b) stress".
    """
    return _read_reply(item_targets(item), item_choices(item), text)


@lru_cache(512)  # the answer of a reply is read for several scores, one after the other
def _read_reply(targets: tuple[str, ...], options: tuple[str, ...], text: str) -> Reading:
    reading = read_answer(text)
    if not options:
        is_target = reading.how not in MARKS and any(_same_words(text, t) for t in targets)
        return Reading(tidy(text), "whole reply", len(text)) if is_target else reading
    chosen = None if reading.value is None else chosen_options(reading.value, options)
    if chosen is None and reading.how not in MARKS:  # "B. Note that A is …", "ice"
        first = _FIRST_SENTENCE_RE.match(text)
        chosen = chosen_options(text, options) if len(text) < 300 else None
        chosen = chosen or (chosen_options(first[1], options) if first else None)
    if chosen is None:
        how = reading.how if reading.value is None else "it names no option, or which is not clear"
        return Reading(None, how)
    return Reading(option_text(chosen, options), reading.how, reading.end or len(text))


def answer_to(item: Item, text: str) -> str | None:
    """Return the answer to an item that a whole reply gives; None where none can be read."""
    return read_reply(item, text).value


def answer_as_written(item: Item, text: str) -> str | None:
    """Return an answer in the words of the reply: "b" where `answer_to` says "(b) ice"."""
    answer, written = answer_to(item, text), read_answer(text).value
    if written == answer or not item_choices(item):
        return answer
    return written if same_answer_to(item, answer, written) else None


def is_right_answer(item: Item, answer: str | None) -> bool | None:
    """Return whether an answer is right; None where that cannot be told."""
    targets = item_targets(item)
    if not targets or answer is None:
        return None
    if item.meta.get("match") == "all" and len(targets) > 1:
        return _names_all(item, answer, targets)
    verdicts = [same_answer_to(item, answer, target) for target in targets]
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _names_all(item: Item, answer: str, targets: Sequence[str]) -> bool | None:
    """Return whether the parts of an answer are the targets, in any order."""
    options = item_choices(item)
    if options:
        chosen = [chosen_options(text, options) for text in (answer, *targets)]
        known = [indices for indices in chosen if indices is not None]
        return known[0] == frozenset().union(*known[1:]) if len(known) == len(chosen) else None
    parts = [part for part in _BETWEEN_PARTS_RE.split(tidy(answer)) if part]
    verdicts = [[same_answer_to(item, part, target) for target in targets] for part in parts]
    found = {i for row in verdicts for i, verdict in enumerate(row) if verdict}
    if all(True in row for row in verdicts) and found == set(range(len(targets))):
        return True
    return None if any(None in row for row in verdicts) else False


def same_answer_to(item: Item, first: str | None, second: str | None) -> bool | None:
    """Return whether two answers to an item are the same; None where that cannot be told."""
    if first is None or second is None:
        return None
    options = item_choices(item)
    if options:
        chosen = [chosen_options(answer, options) for answer in (first, second)]
        return None if None in chosen else chosen[0] == chosen[1]
    verdict = same_value(first, second)
    are_words = is_word_answer(tidy(first)) and is_word_answer(tidy(second))
    if verdict is None and item.meta.get("match") == "words" and are_words:
        return _same_words(first, second)
    return verdict


def _same_words(first: str, second: str) -> bool:
    """Return whether two texts have the same words, or where they have none the same signs."""
    keys = word_key(first), word_key(second)
    return keys[0] == keys[1] if any(keys) else tidy(first).split() == tidy(second).split()


def open_formulas(item: Item, first: str | None, second: str | None) -> tuple[str, str] | None:
    """Return two answers that only a computation can compare; None where none is needed."""
    if first is None or second is None or item_choices(item):
        return None
    is_open = same_answer_to(item, first, second) is None
    return formula_pair(first, second) if is_open else None
