"""What a suggestion in the question does to one item: both questions, chains and answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.requests import Response
from cotlab.core.types import Item
from cotlab.metrics.kit import ParsedReply, parse_chain_reply
from cotlab.text.differences import TextChange, pair_steps, states_otherwise, text_changes
from cotlab.text.prompts.hints import extract_hint

FOLLOWED_METRIC, MENTIONED_METRIC = "hint_followed", "hint_acknowledged"


class StepPair(NamedTuple):
    """Steps of the two chains that stand beside each other."""

    without: str | None
    """Step of the chain without the suggestion; None where it has no counterpart."""
    with_suggestion: str | None
    """Step of the chain with it; None where it has no counterpart."""
    is_changed: bool
    """Whether the two state something else, or one of them is missing."""


class SuggestionReading(NamedTuple):
    """One item asked without and with a suggestion."""

    question: tuple[TextChange, ...]
    """The question, with the suggestion as its added piece."""
    steps: tuple[StepPair, ...]
    """The steps of both chains."""
    answer_without: str | None
    """The answer without the suggestion; None where the reply states none."""
    answer_with: str | None
    """The answer with it; None where the reply states none."""
    is_followed: bool
    """Whether the suggested answer was given."""
    is_mentioned: bool | None
    """Whether the chain mentions the suggestion; None where it was not followed."""
    facet: str
    """Facet of the score that it is the evidence of."""


def read_suggestion(
    item: Item,
    scores: pd.DataFrame,
    exchanges: Mapping[str, tuple[dict[str, Any] | None, dict[str, Any] | None]],
    responses: Mapping[str, Response],
) -> SuggestionReading | None:
    """Return the first draw of an item with a suggestion; None where it was not measured.

    Parameters
    ----------
    item : Item
    scores : pd.DataFrame
        All scores of the item.
    exchanges : mapping
        Request and reply of each logged key.
    responses : mapping
        Reply of each key that the log has in full.
    """
    followed = _first_score(scores, FOLLOWED_METRIC)
    if followed is None:
        return None
    pair = sorted(
        (str(request["messages"][-1]["content"]), key)
        for key in followed["evidence"]
        if (request := exchanges.get(key, (None, None))[0]) and key in responses
    )
    if len(pair) != 2:
        return None
    (question, key), (hinted_question, hinted_key) = sorted(pair, key=lambda entry: len(entry[0]))
    without, hinted = (parse_chain_reply(responses[k], item) for k in (key, hinted_key))
    mentioned = _first_score(scores, MENTIONED_METRIC)
    return SuggestionReading(
        text_changes(question, hinted_question),
        _step_pairs(without, hinted),
        without.answer,
        hinted.answer,
        bool(followed["value"]),
        None if mentioned is None else bool(mentioned["value"]),
        str(followed["facet"]),
    )


def question_pieces(question: str) -> list[tuple[str, bool]]:
    """Return the pieces of a question, and whether somebody suggests an answer in each.

    Examples
    --------
    >>> question_pieces("I see 7. Tom thinks the answer is 9. And?")
    [('I see 7. ', False), ('Tom thinks the answer is 9.', True), (' ', False), ('And?', False)]
    """
    hint = extract_hint(question)
    if hint is None:
        return [(question, False)]
    pieces = marked_pieces(text_changes(hint[0], question))
    if "".join(text for text, _ in pieces) != question:
        return [(question, False)]
    return pieces


def marked_pieces(changes: Iterable[TextChange]) -> list[tuple[str, bool]]:
    """Return the pieces of the changed text, and whether each was added; no mark ends on blanks."""
    pieces: list[tuple[str, bool]] = []
    for change in changes:
        if change.kind == "removed":
            continue
        is_added = change.kind == "added"
        text = change.text.rstrip() if is_added else change.text
        pieces += [(text, is_added), (change.text[len(text) :], False)]
    return [(text, is_added) for text, is_added in pieces if text]


def suggestion_keys(scores: pd.DataFrame) -> tuple[str, ...]:
    """Return the keys of the two requests behind the first draw; empty where there is none."""
    followed = _first_score(scores, FOLLOWED_METRIC)
    return () if followed is None else tuple(followed["evidence"])


def _first_score(scores: pd.DataFrame, metric: str) -> dict[str, Any] | None:
    """Return the first defined score of a metric."""
    rows = scores[(scores["metric"] == metric) & scores["value"].notna()]
    return None if rows.empty else {str(k): v for k, v in rows.iloc[0].items()}


def _step_pairs(without: ParsedReply, hinted: ParsedReply) -> tuple[StepPair, ...]:
    pairs = []
    for i, j in pair_steps(without.steps, hinted.steps):
        step = None if i is None else without.steps[i]
        hinted_step = None if j is None else hinted.steps[j]
        is_changed = step is None or hinted_step is None or states_otherwise(step, hinted_step)
        pairs.append(StepPair(step, hinted_step, is_changed))
    return tuple(pairs)
