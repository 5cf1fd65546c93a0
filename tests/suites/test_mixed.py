"""The mixed suite: every chain is what its kind says, and is called valid exactly where it is the
true one."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest

from benchmarks.mixed import SHARE_BY_KIND, draw_chain, is_valid_chain, mixed_suite
from cotlab.metrics.verification import first_mistake
from cotlab.suites.jsonl import load_suite, write_suite
from cotlab.suites.wordproblems import make_problem

EQUATION = re.compile(r"Step (\d+): (\d+) ([+-]) (\d+) = (\d+)\.")
SUITE = mixed_suite(600, 3)


def stated(steps: tuple[str, ...]) -> list[tuple[int, int, int, int]]:
    """(number, before, change, after) of each step, read back from its text."""
    found = [EQUATION.fullmatch(text) for text in steps]
    return [
        (int(m[1]), int(m[2]), int(m[4]) * (1 if m[3] == "+" else -1), int(m[5]))
        for m in found
        if m
    ]


def test_what_is_called_valid_is_what_the_question_says_read_back_from_the_text() -> None:
    """Numbers of the question, signs of its verbs: recomputed without the generator's totals."""
    for item in SUITE.items:
        told = item.question.split(" thinks ")[0]
        start, *changes = [int(n) for n in re.findall(r"\d+", told)][: len(item.meta["totals"])]
        verbs = re.findall(r"(buys|finds|picks|gets|wins|loses|sells|drops|uses) \d", told)
        signs = [-1 if verb in ("loses", "sells", "drops", "uses") else 1 for verb in verbs]
        total, true = start, []
        for number, (change, sign) in enumerate(zip(changes, signs, strict=True), start=1):
            true.append((number, total, change * sign, total + change * sign))
            total += change * sign
        assert str(total) == item.answer
        assert (stated(tuple(step.text for step in item.steps)) == true) is item.meta["valid"], item


def test_each_kind_does_what_it_says() -> None:
    seen = Counter(item.meta["kind"] for item in SUITE.items)
    assert set(seen) == set(SHARE_BY_KIND)
    for kind, share in SHARE_BY_KIND.items():
        assert abs(seen[kind] / 600 - share) < 0.06
    for item in SUITE.items:
        kind, steps = item.meta["kind"], tuple(step.text for step in item.steps)
        said, last = stated(steps), len(item.meta["totals"]) - 1
        assert ("hint" in item.meta) == kind.startswith("hint") == (item.category == "hinted")
        if kind in ("clean", "hint_ignored"):
            assert item.meta["valid"] and first_mistake(steps) is None
        elif kind == "hint_followed":
            assert str(said[-1][3]) == item.meta["hint"] != item.answer
        elif kind == "missing":
            assert len(steps) == last - 1
        elif kind == "misread":
            assert said[0][1] != item.meta["totals"][0] and first_mistake(steps) is None
        elif kind == "carried":
            assert str(said[-1][3]) != item.answer and first_mistake(steps) is not None
        elif kind == "wrong":
            assert sum(b + c != a for _, b, c, a in said) == 1


def test_no_question_is_asked_twice_nor_one_that_is_taken() -> None:
    questions = {item.question for item in SUITE.items}
    assert len(questions) == 600
    again = mixed_suite(50, 3, excluded_questions=questions)
    assert not questions & {item.question for item in again.items}
    assert mixed_suite(20, 5).digest == mixed_suite(20, 5).digest != mixed_suite(20, 6).digest


def test_a_random_chain_that_happens_to_be_true_is_valid() -> None:
    """What makes a chain valid is what it states, not how it was drawn."""
    problem = make_problem(random.Random(0), 2)
    chains = [draw_chain(problem, "random", random.Random(seed)) for seed in range(3000)]
    hits = [chain for chain in chains if is_valid_chain(problem, chain)]
    assert 0 < len(hits) < 30  # 3,000 / 21² = 6.8
    with pytest.raises(ValueError, match="needs a problem with one"):
        draw_chain(problem, "hint_followed", random.Random(0))


def test_it_reads_back_from_its_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "mixed.jsonl"
    write_suite(SUITE, path)
    assert load_suite(path).digest == SUITE.digest
