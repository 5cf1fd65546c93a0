"""The scorer that imported scores belong to, where it is not registered yet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cotlab.core.program import Params, Peers, Program, scorer
from cotlab.core.registry import SCORERS
from cotlab.core.types import Item
from cotlab.metrics.cards_unfaithfulness import UNFAITHFULNESS


@scorer(UNFAITHFULNESS, version=1, name="unfaithfulness")
def unfaithfulness(item: Item, params: Params, peers: Peers) -> Program:
    yield from ()
    return ()


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    """Imported by a test module, it registers the scorer for that module's tests."""
    missing = "unfaithfulness" not in SCORERS
    if missing:
        SCORERS.add("unfaithfulness", "imported_scorer:unfaithfulness")
    yield
    if missing:
        del SCORERS._targets["unfaithfulness"]
