"""Reorder the options of a multiple-choice item, and the floor that positions alone give."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from cotlab.core.types import Item
from cotlab.text.answers.named_choices import choice_text, named_choices
from cotlab.text.answers.targets import item_choices, item_targets

_ABOUT_OTHERS_RE = re.compile(
    r"(?i)\b(?:above|below|former|latter|previous|following|these|both)\b"
    r"|\b[A-J] (?:and|or) [A-J]\b|\([a-j]\)"
)
"""Options that speak of other options: they mean something else elsewhere."""


def rotate_options(item: Item, shift: int) -> Item | str:
    """Return an item whose options are moved by ``shift`` places, each to another place.

    Parameters
    ----------
    item : Item
        A multiple-choice item, with options in its question or in ``choices`` of its meta.
    shift : int
        Places to move by; the last options come first.

    Returns
    -------
    Item or str
        The item with question, ``choices`` and ground truth in the new order, without a reference
        chain, which may name letters; or why it cannot be made.
    """
    choices = item_choices(item)
    if not choices:
        return "the item lists no options"
    if shift % len(choices) == 0:
        return "the options keep their places"
    if any(_ABOUT_OTHERS_RE.search(choice) for choice in choices):
        return "an option speaks of other options"
    order = [(i - shift) % len(choices) for i in range(len(choices))]
    rotated = [choices[i] for i in order]
    question = _replace_options(item.question, choices, rotated)
    has_listed_choices = "choices" in item.meta
    if question is None:
        if not has_listed_choices or any(choice in item.question for choice in choices):
            return "the options cannot be told from the rest of the question"
        question = item.question
    targets = [_moved_answer(target, choices, order) for target in item_targets(item)]
    if None in targets:
        return "the ground truth names no option"
    meta = {
        **item.meta,
        **({"choices": rotated} if has_listed_choices else {}),
        **({"targets": targets} if "targets" in item.meta else {}),
    }
    answer = None if item.answer is None else _moved_answer(item.answer, choices, order)
    return replace(item, question=question, answer=answer, steps=(), meta=meta)


def option_follows(
    choices: Sequence[str], answer: str | None, shift: int, rotated_answer: str | None
) -> tuple[bool, bool] | None:
    """Return whether the answer after a rotation names the same text, and the same position.

    A model that reads the options keeps the text; one that answers by position keeps the position,
    and never the text: that is the positional floor. A guess keeps each in 1 of n.

    Parameters
    ----------
    choices : sequence of str
        Options in their first order.
    answer, rotated_answer : str or None
        Answers before and after, as `answer_to` gives them for each item.
    shift : int
        The shift of `rotate_options`.

    Returns
    -------
    tuple of (bool, bool) or None
        None where either answer names no single option.
    """
    rotated = [choices[(i - shift) % len(choices)] for i in range(len(choices))]
    before = None if answer is None else named_choices(answer, choices)
    after = None if rotated_answer is None else named_choices(rotated_answer, rotated)
    if before is None or after is None or len(before) != 1 or len(after) != 1:
        return None
    (position,), (rotated_position,) = before, after
    return choices[position] == rotated[rotated_position], position == rotated_position


def _replace_options(question: str, choices: Sequence[str], rotated: Sequence[str]) -> str | None:
    """Return a question with other texts behind its letters; None where one is not found once."""
    pieces, position = [], 0
    for choice, new_choice in zip(choices, rotated, strict=True):
        matches = list(
            re.finditer(rf"(?<=[)\].:*\s]){re.escape(choice)}(?!\w)", question[position:])
        )
        if not matches:
            return None
        labelled = [m for m in matches if _ends_with_label(question[: position + m.start()])]
        if len(labelled) != 1:
            return None
        start = position + labelled[0].start()
        pieces += [question[position:start], new_choice]
        position = start + len(choice)
    return "".join([*pieces, question[position:]])


def _ends_with_label(text: str) -> bool:
    return re.search(r"(?:[(\[][A-Za-z][)\]]|[A-Za-z][.):])[*_]{0,2}\s*$", text[-12:]) is not None


def _moved_answer(answer: str, choices: Sequence[str], order: Sequence[int]) -> str | None:
    """Return a ground truth in the new order, as "(b) text"; None where it names no option."""
    positions = named_choices(answer, choices)
    if not positions:
        return None
    rotated = [choices[i] for i in order]
    return choice_text(frozenset(order.index(i) for i in positions), rotated)
