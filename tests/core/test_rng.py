"""Draws depend on their purpose, not on call order, the process or a global generator."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.keys import derive, derive_seed
from cotlab.core.program import Peers
from cotlab.core.types import Suite
from cotlab.suites.wordproblems import make_suite

SHOW = (
    "from cotlab.core.keys import derive, derive_seed; print(derive_seed('a', 1), derive('ring',"
    " 'x', 42).random())"
)


@given(st.lists(st.text(max_size=6) | st.integers(), min_size=1, max_size=4))
def test_the_same_parts_give_the_same_draws(parts: list[str | int]) -> None:
    random.seed(0)
    first = [derive(*parts).random() for _ in range(2)]
    random.seed(1)
    assert first == [derive(*parts).random()] * 2
    assert 0 <= derive_seed(*parts) < 2**63


def test_the_order_of_calls_does_not_matter() -> None:
    forward = [derive("step", k).random() for k in range(10)]
    backward = [derive("step", k).random() for k in reversed(range(10))]
    assert backward[::-1] == forward and len(set(forward)) == 10


def test_parts_are_told_apart() -> None:
    assert (
        len(
            {
                derive_seed("a", "b"),
                derive_seed("ab"),
                derive_seed("b", "a"),
                derive_seed("a", "b", ""),
            }
        )
        == 4
    )


@pytest.mark.parametrize("hash_seed", ["0", "12345"])
def test_every_process_draws_the_same(hash_seed: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", SHOW],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert told == [str(derive_seed("a", 1)), str(derive("ring", "x", 42).random())]


def test_a_suite_in_a_ring() -> None:
    suite = make_suite(9, seed=1)
    peers = Peers.from_suite(suite, 42)
    assert sorted(item.id for item in peers.ring_items) == sorted(item.id for item in suite.items)
    assert Peers.from_suite(suite, 42) == peers != Peers.from_suite(suite, 43)
    for item in suite.items:
        others = peers.donors_for(item)
        assert len(others) == 8 and item not in others
        assert others == peers.donors_for(item)
        assert peers.donors_for(item, 3) == others[:3]
        assert tuple(peers.iter_donors(item)) == others == peers.donors_for(item, 99)
        assert peers.donors_for(others[0])[-1] == item  # the item that comes next has this one last
    single = Suite.from_items("s", suite.items[:1])
    assert Peers.from_suite(single, 1).donors_for(single.items[0]) == ()
