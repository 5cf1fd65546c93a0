"""The step rules on GSM8K's reference chains: how many steps they reach, and what they never do."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from cotlab.text.edits.ablations import corrupt_step, paraphrase_step
from cotlab.text.steps import split_steps

FILE = Path(__file__).parents[3] / "shared" / "data" / "gsm8k" / "test.jsonl"
pytestmark = pytest.mark.skipif(
    not FILE.is_file(), reason="GSM8K is not beside the repository (../shared/data/gsm8k)"
)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+")


@pytest.fixture(scope="module")
def steps() -> list[str]:
    chains = [
        json.loads(line)["answer"].rpartition("\n####")[0]
        for line in FILE.read_text("utf-8").splitlines()
    ]
    return [re.sub(r"<<[^<>]*>>", "", step) for chain in chains for step in split_steps(chain)]


def test_corrupt(steps: list[str]) -> None:
    changed = [(step, corrupt_step(step, random.Random(i))) for i, step in enumerate(steps)]
    assert len(steps) > 4000
    assert sum(after is not None for _, after in changed) / len(steps) >= 0.99
    for before, after in changed:
        assert after != before
        if after is not None and NUMBER.search(before):
            numbers, others = NUMBER.findall(before), NUMBER.findall(after)
            assert len(numbers) == len(others) and NUMBER.sub("#", before) == NUMBER.sub("#", after)
            assert 1 <= sum(a != b for a, b in zip(numbers, others, strict=True)) <= 3


def test_the_value_that_an_equation_gives_is_what_changes(steps: list[str]) -> None:
    """Where a step ends in "= value" and a unit, that value is the one that moves."""
    ends = re.compile(r"= ?\$?(\d[\d,]*(?:\.\d+)?)(?!st|nd|rd|th)[a-z ]{0,30}\.?$")
    checked = 0
    for i, step in enumerate(steps):
        found, after = ends.search(step), corrupt_step(step, random.Random(i))
        if found and after is not None:
            moved = ends.search(after)
            assert moved and moved[1] != found[1], (step, after)
            checked += 1
    assert checked > 1500


def test_paraphrase(steps: list[str]) -> None:
    changed = [(step, paraphrase_step(step, random.Random(i))) for i, step in enumerate(steps)]
    assert sum(after is not None for _, after in changed) / len(steps) >= 0.93
    for before, after in changed:
        assert after != before
        if after is not None:
            assert NUMBER.findall(before) == NUMBER.findall(after)
            assert not re.match(r"(?i)so,? (?:so|thus|therefore|hence|however|but)\b", after)
