"""A changed number and its recomputed answer: by hand, and against the word problems' own
arithmetic."""

from __future__ import annotations

import random
import re
import sys
from collections import Counter

import pytest

from cotlab.suites.wordproblems import GAIN_VERBS, make_suite
from cotlab.text.arithmetic.recompute import ChangedQuestion, change_number

QUESTION = "Each of 12 hives holds 9 frames, and 15 spare ones hang in a shed. How many are there?"
STEPS = (
    "The hives hold 12 × 9 = 108 frames.",
    "Adding the spares gives 108 + 15 = 123.",
    "There are 123.",
)


def test_a_changed_number_goes_through_the_equations() -> None:
    seen = set()
    for seed in range(60):
        made = change_number(QUESTION, STEPS, "123 frames", random.Random(seed))
        assert isinstance(made, ChangedQuestion)
        hives, frames, spare = map(int, re.findall(r"\d+", made.question))
        assert made.answer == f"{hives * frames + spare} frames" != "123 frames"
        assert sum(a != b for a, b in zip((hives, frames, spare), (12, 9, 15), strict=True)) == 1
        start, end = made.span
        assert re.sub(r"\d+", "", made.question) == re.sub(r"\d+", "", QUESTION)
        assert made.question[start:end] in (str(hives), str(frames), str(spare))
        seen.add((hives, frames, spare))
    assert len(seen) > 3


@pytest.mark.parametrize(
    ("question", "steps", "answer", "why"),
    [
        (QUESTION, STEPS, None, "the item has no ground truth"),
        (QUESTION, STEPS, "124", "the answer is not the result"),
        (QUESTION, ("No sums.",), "123", "the chain has no equations"),
        (QUESTION, ("12 × 9 = 107.", "107 + 15 = 122."), "122", "does not hold"),
        (QUESTION, ("12 x y = 108.", "108 + 15 = 123."), "123", "cannot be read"),
        (QUESTION, ("12 × 9 = 108.", "100 + 23 = 123."), "123", "comes from nowhere"),
        (QUESTION, ("12 × 9 = 108.", "12 + 9 = 21."), "21", "not used again"),
        ("He has 5 and buys 5.", ("5 + 5 = 10.",), "10", "can be followed"),
        ("He has three and buys 3.", ("3 + 3 = 6.",), "6", "can be followed"),
        ("About 10 / 3?", ("10 / 3 ≈ 3.33.",), "3.33", "rounds"),
    ],
)
def test_why_an_answer_cannot_be_recomputed(
    question: str, steps: tuple[str, ...], answer: str | None, why: str
) -> None:
    made = change_number(question, steps, answer, random.Random(1))
    assert isinstance(made, str) and why in made


def test_word_problems_are_recomputed_as_their_own_arithmetic_does() -> None:
    made_of = 0
    for item in make_suite(120, seed=11).items:
        made = change_number(
            item.question, [step.text for step in item.steps], item.answer, random.Random(item.id)
        )
        again = change_number(
            item.question, [step.text for step in item.steps], item.answer, random.Random(item.id)
        )
        assert made == again
        if isinstance(made, str):
            continue
        made_of += 1
        told = made.question.partition(" thinks the answer")[0]
        first, *changes = re.findall(r"(?:(\w+) )?(\d+)", told)
        total = int(first[1])
        for verb, number in changes:
            total += int(number) if verb in GAIN_VERBS else -int(number) if verb else 0
        hint = int(item.meta["hint"]) if "hint" in item.meta else None
        assert made.answer == str(total) != item.answer and 0 <= total <= 20
        assert hint is None or f"the answer is {hint}." in made.question
    assert made_of > 80


def test_the_calls_for_a_question_of_many_numbers_grow_as_the_numbers_do() -> None:
    def count_calls(n_numbers: int) -> int:
        others = ", ".join(str(100 + i) for i in range(n_numbers))  # none is in the chain
        question = f"Tom has 3 apples and 4 pears, 3 and 4 again, then {others}."
        events: Counter[str] = Counter()
        sys.setprofile(lambda _frame, event, _argument: events.update((event,)))
        try:
            made = change_number(question, ["3 + 4 = 7"], "7", random.Random(0))
        finally:
            sys.setprofile(None)
        assert isinstance(made, str) and made.startswith("no number of the question can be")
        return events["call"]

    count_calls(8)
    assert count_calls(1600) < 12 * count_calls(200)  # 8 if linear, 64 if quadratic
