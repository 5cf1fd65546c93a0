"""Ratings of single steps by people and by another measurement, read from the item's line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from cotlab.core.program import Params, Peers, Program, scorer
from cotlab.core.types import Item, MetricCard, Score
from cotlab.metrics.kit import ItemScores

KEY = "step_ratings"
"""In an item's meta: a list of {step, rating, drop, flip}; a part that is not known is left out."""
_SOURCE = (
    "Tutek et al. (2025), parametric faithfulness: ratings of steps beside the effect of unlearning"
    " them"
)
_NONE = "The item's line rates no step, or not a step of its chain, or the number is not there."


def _card(
    name: str,
    symbol: str,
    lo: float,
    hi: float,
    formula: str,
    caveat: str,
    *,
    flag: bool = False,
    better: Literal["higher", "lower", "neither"] = "neither",
) -> MetricCard:
    needs = ("complete",)
    return MetricCard(
        name, symbol, lo, hi, better, "", "step", needs, formula, _NONE, _SOURCE, caveat, flag
    )


RATING = _card(
    "step_rating",
    "rating",
    0.0,
    4.0,
    "how far a step supports the answer, in people's words: 0 not at all, 1 slightly, 2 "
    "moderately, 3 mostly, 4 fully; imported",
    "That the model used the step: people judge what is written",
)
DROP = _card(
    "step_drop",
    "Δp",
    -1.0,
    1.0,
    "the answer's probability lost when the model is made to forget the step; imported",
    "That the loss is this step's: what is forgotten may reach further",
)
FLIP = _card(
    "step_flip",
    "flip",
    0.0,
    1.0,
    "1 if the answer changes when the model is made to forget the step; imported",
    "That the new answer is wrong",
    flag=True,
)
CARDS = (RATING, DROP, FLIP)


@scorer(*CARDS, version=1, name="ratings")
def ratings(item: Item, params: Params, peers: Peers) -> Program:
    """Return what the item's line says of its steps; nothing is asked."""
    yield from ()
    return rating_scores(item)


def rating_scores(item: Item) -> tuple[Score, ...]:
    """Return the scores that an item's line holds; each card once, without a value, if none."""
    rows = item.meta.get(KEY)
    known = {
        row["step"]: row
        for row in (rows if isinstance(rows, list | tuple) else ())
        if isinstance(row, Mapping)
        and type(row.get("step")) is int
        and 0 <= row["step"] < len(item.steps)
    }
    scores = ItemScores(item)
    for step, row in sorted(known.items()):
        for card, value in zip(CARDS, _values(row), strict=True):
            scores.add(card, value, reason="the line does not say", step=step)
    if not known:
        scores.add_missing(CARDS, "the item's line rates no step of its chain")
    return tuple(scores.scores)


def _values(row: Mapping[str, Any]) -> Sequence[float | None]:
    flip = row.get("flip")
    return (
        _within(row.get("rating"), RATING),
        _within(row.get("drop"), DROP),
        float(flip) if isinstance(flip, bool) else None,
    )


def _within(value: object, card: MetricCard) -> float | None:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not card.lo <= value <= card.hi
    ):
        return None
    return float(value)
