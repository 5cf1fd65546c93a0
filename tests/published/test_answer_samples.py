"""Answers read by convention, on replies of real models whose correctness others marked.

MATH (Qwen2.5-Math), MMLU-Pro, BIG-Bench Hard, and the cases of Math-Verify's own tests.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cotlab.core.types import Item
from cotlab.providers.symbolic_worker import same_formulas
from cotlab.text.answers.equality import formula_pair
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.answers.targets import answer_to, is_right_answer, item_targets

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "answers"

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="../shared/data/answers is not there")

Case = tuple[Item, str, bool]


def rows(name: str) -> Iterator[Any]:
    yield from map(json.loads, (DATA / name).read_text(encoding="utf-8").splitlines())


def computed(verdict: bool | None, answer: str | None, targets: Iterable[str]) -> bool | None:
    """Return a verdict, or what the computation says where conventions leave formulas open."""
    if verdict is not None or answer is None:
        return verdict
    pairs = [formula_pair(answer, target) for target in targets]
    verdicts = [pair and same_formulas(*pair) for pair in pairs]
    return True if True in verdicts else None if None in verdicts else False


def count(cases: Iterable[Case]) -> Counter[tuple[bool | None, bool]]:
    """Return how often replies that others marked right or wrong are right, wrong or undecided."""
    counts: Counter[tuple[bool | None, bool]] = Counter()
    for item, reply, marked in cases:
        answer = answer_to(item, reply)
        verdict = is_right_answer(item, answer)
        if not item.meta.get("choices"):
            verdict = computed(verdict, answer, item_targets(item))
        counts[verdict, marked] += 1
    return counts


def item(row: Any, **meta: Any) -> Item:
    targets = row.get("targets") or [row["key"]]
    return Item("1", row["question"], targets[0], (), meta={"targets": targets, **meta})


@pytest.mark.soak
def test_math() -> None:
    counts = count(
        (item(row), row["reply"], row["correct"]) for row in rows("math_open_model.jsonl")
    )
    assert counts.total() == 200
    assert counts[True, False] == 0 and counts[False, True] == 0
    assert counts[None, True] + counts[None, False] <= 4


def test_multiple_choice_of_many_models() -> None:
    """Where the publisher finds a letter it is nearly always the same; elsewhere few are read."""
    letters: dict[bool, list[Case]] = {True: [], False: []}
    for row in rows("mmlu_pro.jsonl"):
        letter = row["letter_by_its_own_extractor"]
        question = Item("1", row["question"], row["key"], (), meta={"choices": row["choices"]})
        letters[letter is not None].append((question, row["reply"], letter == row["key"]))
    found, none = count(letters[True]), count(letters[False])
    assert (found.total(), none.total()) == (393, 57)
    assert found[True, False] <= 1 and found[False, True] <= 1
    assert found[None, True] + found[None, False] <= 20
    assert none[None, False] >= 40


def test_big_bench_hard() -> None:
    def cases() -> Iterator[Case]:
        for row in rows("bbh_cot.jsonl"):
            meta = {"choices": row["choices"]} if row["choices"] else {}
            if all(len(target.split()) <= 3 for target in row["targets"]):
                meta["match"] = "words"
            yield item(row, **meta), row["reply"], row["correct"]

    counts = count(cases())
    assert counts.total() == 540
    assert counts[True, False] == 0 and counts[False, True] == 0 and counts[None, True] == 0


@pytest.mark.soak
def test_pairs_of_answers() -> None:
    counts: Counter[tuple[bool | None, bool]] = Counter()
    for row in rows("math_verify_cases.jsonl"):
        answer, gold = final_answer(row["reply"]), final_answer(row["gold"]) or row["gold"]
        verdict = None if answer is None else same_answer(answer, gold)
        counts[computed(verdict, answer, [gold]), row["same"]] += 1
    assert counts.total() == 253
    assert counts[True, False] <= 2 and counts[False, True] <= 21
    assert counts[True, True] + counts[False, False] >= 190
