"""False equations in 1,752 real chains whose first mistake people located (ProcessBench, half of
it): the chains that they call correct are not flagged."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cotlab.text.arithmetic.readings import read_steps

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "processbench"
LEAST_EXACT = {"gsm8k": 0.07, "math": 0.04, "olympiadbench": 0.03, "omnimath": 0.029}
"""Share of the chains with a mistake of which the marked step is the first that is flagged."""
FALSE_THOUGH_UNMARKED = {
    ("omnimath-805", r"1404 = 2^2 \times 3^2 \times 13"),
}
"""Chains that people call correct, and the equation in them that is false indeed."""
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data/processbench is not there"),
]


class Flag(NamedTuple):
    chain: dict[str, Any]
    step: int
    text: str


@cache
def flags(name: str) -> tuple[int, list[Flag]]:
    """Number of chains with a mistake, and the first false equation of each chain that has one."""
    chains = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    found = []
    for chain in chains:
        for i, step in enumerate(read_steps(chain["steps"])):
            if step.mistake is not None:
                text = step.text[step.mistake.start : step.mistake.end]
                found.append(Flag(chain, i, text))
                break
    return sum(chain["label"] >= 0 for chain in chains), found


def test_chains_that_people_call_correct_are_flagged_only_for_a_false_equation() -> None:
    correct = {
        (flag.chain["id"], flag.text)
        for name in LEAST_EXACT
        for flag in flags(name)[1]
        if flag.chain["label"] < 0
    }
    assert correct == FALSE_THOUGH_UNMARKED


def test_a_flagged_chain_has_a_mistake() -> None:
    found = [flag.chain["label"] >= 0 for name in LEAST_EXACT for flag in flags(name)[1]]
    assert len(found) > 85 and sum(found) / len(found) >= 0.98


@pytest.mark.parametrize("name", LEAST_EXACT)
def test_marked_steps_are_found(name: str) -> None:
    n_with_mistake, found = flags(name)
    assert sum(flag.step == flag.chain["label"] for flag in found) >= (
        LEAST_EXACT[name] * n_with_mistake
    )
