"""What a model answered to the items of a list, and whether that is right, read in one go."""

from __future__ import annotations

from typing import Literal, NamedTuple

import pandas as pd

from cotlab.analysis.tables.step_replies import (
    ANSWER_METRICS,
    ModelAnswers,
    answer_scores,
    model_answers,
)
from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.store import read
from cotlab.ui import cached
from cotlab.ui.item.evidence import request_keys
from cotlab.ui.text import shorten

AnswerKind = Literal["right", "wrong", "unknown"]
"""Whether most replies are right; unknown where none was judged."""


class ListedAnswer(NamedTuple):
    """The answer to one item of a list."""

    text: str
    """The most frequent answer, shortened; "n/a" where no reply states one."""
    kind: AnswerKind
    """Whether it is right."""


def item_answers(row: RunView, item: Item, scores: pd.DataFrame) -> ModelAnswers:
    """Return the answers of a run to an item with its whole chain."""
    keys = tuple(request_keys(answer_scores(scores)))
    subject = row.plan.subject
    exchanges, responses = cached.logged_exchanges(keys), cached.logged_responses(keys)
    return model_answers(item, subject, scores, exchanges, responses)


@cached.cache_by_store(64, "Reading answers")
def listed_answers(
    run_id: str, revision: int, item_ids: tuple[str, ...], max_chars: int = 24
) -> dict[str, ListedAnswer]:
    """Return the answer of a run to each of some items by their ids."""
    row = cached.stored_run(run_id)
    subject = row.plan.subject
    scores = read.select_scores(
        cached.store(), run_id, metrics=ANSWER_METRICS, items=list(item_ids)
    )
    keys = tuple(request_keys(scores))
    exchanges, responses = cached.logged_exchanges(keys), cached.logged_responses(keys)
    with cached.store().reading():  # all reads within share one connection
        items = {i: read.get_item(cached.store(), row.suite, i) for i in item_ids}
    answers = {}
    for item_id, item in items.items():
        item_scores = scores[scores["item_id"] == item_id]
        answer = model_answers(item, subject, item_scores, exchanges, responses)
        answers[item_id] = ListedAnswer(_answer_text(answer, max_chars), _answer_kind(answer))
    return answers


def _answer_text(answers: ModelAnswers, max_chars: int) -> str:
    return shorten(answers.answers[0].answer, max_chars) if answers.answers else "n/a"


def _answer_kind(answers: ModelAnswers) -> AnswerKind:
    if not answers.n:
        return "unknown"
    return "right" if 2 * answers.n_right > answers.n else "wrong"
