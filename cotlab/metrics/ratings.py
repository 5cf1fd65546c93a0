"""Ratings of single steps by people and by another measurement, read from the item's line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cotlab.core.program import Params, Peers, Program, scorer
from cotlab.core.types import Item, MetricCard, Score
from cotlab.metrics.cards import metric_card
from cotlab.metrics.kit import ItemScores

RATINGS_KEY = "step_ratings"
"""In an item's meta: a list of {step, rating, drop, flip}; a part that is not known is left out."""
_SOURCE = (
    "Tutek et al. (2025), parametric faithfulness: ratings of steps beside the effect of unlearning"
    " them"
)
_UNDEFINED_TEXT = (
    "The item's line rates no step, or not a step of its chain, or the number is not there."
)
_card = partial(metric_card, level="step", source=_SOURCE)
STEP_RATING = _card(
    "step_rating",
    "rating",
    "how far a step supports the answer, in people's words: 0 not at all, 1 slightly, 2 "
    "moderately, 3 mostly, 4 fully; imported",
    _UNDEFINED_TEXT,
    "That the model used the step: people judge what is written",
    hi=4.0,
)
STEP_DROP = _card(
    "step_drop",
    "Δp",
    "the answer's probability lost when the model is made to forget the step; imported",
    _UNDEFINED_TEXT,
    "That the loss is this step's: what is forgotten may reach further",
    lo=-1.0,
)
STEP_FLIP = _card(
    "step_flip",
    "flip",
    "1 if the answer changes when the model is made to forget the step; imported",
    _UNDEFINED_TEXT,
    "That the new answer is wrong",
    flag=True,
)
CARDS = (STEP_RATING, STEP_DROP, STEP_FLIP)


@scorer(*CARDS, version=1, name="ratings")
def ratings(item: Item, params: Params, peers: Peers) -> Program:
    """Return what the item's line says of its steps; nothing is asked."""
    yield from ()
    return rating_scores(item)


def rating_scores(item: Item) -> tuple[Score, ...]:
    """Return the scores that an item's line holds; each card once, without a value, if none."""
    rows = item.meta.get(RATINGS_KEY)
    row_by_step = {
        row["step"]: row
        for row in (rows if isinstance(rows, list | tuple) else ())
        if isinstance(row, Mapping)
        and type(row.get("step")) is int
        and 0 <= row["step"] < len(item.steps)
    }
    scores = ItemScores(item)
    for step, row in sorted(row_by_step.items()):
        for card, value in zip(CARDS, _card_values(row), strict=True):
            scores.add(card, value, reason="the line does not say", step=step)
    if not row_by_step:
        scores.add_missing(CARDS, "the item's line rates no step of its chain")
    return tuple(scores.scores)


def _card_values(row: Mapping[str, Any]) -> Sequence[float | None]:
    flip = row.get("flip")
    return (
        _number_in_range(row.get("rating"), STEP_RATING),
        _number_in_range(row.get("drop"), STEP_DROP),
        float(flip) if isinstance(flip, bool) else None,
    )


def _number_in_range(value: object, card: MetricCard) -> float | None:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not card.lo <= value <= card.hi
    ):
        return None
    return float(value)
