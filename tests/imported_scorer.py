"""The scorer that imported scores belong to, where it is not registered yet."""

from __future__ import annotations

from cotlab.core.program import Params, Peers, Program, scorer
from cotlab.core.registry import SCORERS
from cotlab.core.types import Item
from cotlab.metrics.cards_unfaithfulness import UNFAITHFULNESS


@scorer(UNFAITHFULNESS, version=1, name="unfaithfulness")
def unfaithfulness(item: Item, params: Params, peers: Peers) -> Program:
    yield from ()
    return ()


def register() -> None:
    if "unfaithfulness" not in SCORERS:
        SCORERS.add("unfaithfulness", "imported_scorer:unfaithfulness")
