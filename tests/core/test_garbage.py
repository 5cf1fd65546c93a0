"""What is loaded already is left out of garbage collection during a run, and only then."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from cotlab.core.garbage import loaded_objects_frozen


@pytest.fixture(autouse=True)
def _nothing_frozen() -> Iterator[None]:
    """Test libraries freeze what they have loaded."""
    was_frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    yield
    if was_frozen:
        gc.freeze()


class Node:
    """An object that refers to itself, which only a collection can free."""

    def __init__(self) -> None:
        self.itself = self


def test_objects_made_within_are_collected_and_earlier_ones_after() -> None:
    earlier = Node()
    earlier_ref = weakref.ref(earlier)
    with loaded_objects_frozen():
        del earlier
        later_ref = weakref.ref(Node())
        gc.collect()
        assert later_ref() is None
        assert earlier_ref() is not None
    gc.collect()
    assert earlier_ref() is None


def test_an_error_ends_it_and_objects_frozen_by_others_stay_so() -> None:
    with pytest.raises(ValueError), loaded_objects_frozen():
        raise ValueError
    assert gc.get_freeze_count() == 0
    gc.freeze()
    try:
        with loaded_objects_frozen():
            pass
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
