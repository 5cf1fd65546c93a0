"""Corrupted, rephrased and blanked steps: what each must change, and what it must leave."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.suites.wordproblems import (
    MAX_NUMBER,
    STEP_STYLES,
    TOKEN_PATTERN,
    StatedStep,
    make_problem,
    step_text,
    vocabulary,
)
from cotlab.text.edits.ablations import corrupt_step, filler_text, paraphrase_step

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
SEEDS = st.integers(0, 10**6)
TEXTS = st.text(max_size=40) | st.from_regex(
    r"(?:Step \d: |\d\. |- )?[A-Za-z ]{0,12}\d{1,4}(?:[.,]\d{1,3})?[ =a-z.]{0,9}\d{0,4}",
    fullmatch=True,
)


@st.composite
def organism_steps(draw: st.DrawFn) -> tuple[str, StatedStep]:
    before, after = draw(st.integers(0, MAX_NUMBER)), draw(st.integers(0, MAX_NUMBER))
    stated = StatedStep(before, draw(st.sampled_from([-9, -1, 1, 9])), after)
    return (
        step_text(draw(st.integers(1, 6)), stated, "apples", draw(st.sampled_from(STEP_STYLES))),
        stated,
    )


def every(text: str) -> set[str | None]:
    return {corrupt_step(text, random.Random(seed)) for seed in range(40)}


def every_paraphrase(text: str) -> set[str | None]:
    return {paraphrase_step(text, random.Random(seed)) for seed in range(40)}


# --- corrupt: what is stated changes
# --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("Step 1: 7 + 5 = 12.", {f"Step 1: 7 + 5 = {n}." for n in (10, 11, 13, 14)}),
        ("Step 3: 4 - 4 = 0.", {f"Step 3: 4 - 4 = {n}." for n in (1, 2)}),  # never below zero
        ("x = 0.5", {f"x = {n}" for n in (0.3, 0.4, 0.6, 0.7)}),  # decimals in their last place
        ("It takes .5 hours", {f"It takes .{n} hours" for n in (3, 4, 6, 7)}),
        ("It costs $1,080.", {f"It costs $1,0{n}." for n in (78, 79, 81, 82)}),
        (
            "It costs $999.",
            {"It costs $997.", "It costs $998.", "It costs $1000.", "It costs $1001."},
        ),
        (
            "The roots are 1,2,3",
            {f"The roots are 1,2,{n}" for n in (1, 2, 4, 5)},
        ),  # a list, not 123
        ("n = -2", {"n = -0", "n = -1", "n = -3", "n = -4"}),
        (
            "He eats 16 - 3 = 13 eggs on day 2.",
            {f"He eats 16 - 3 = {n} eggs on day 2." for n in (11, 12, 14, 15)},
        ),
        (
            "3 * 4 = 12, so 12 are left.",
            {f"3 * 4 = 12, so {n} are left." for n in (10, 11, 13, 14)},
        ),
        ("x = 5, so the total is 17.", {f"x = 5, so the total is {n}." for n in (15, 16, 18, 19)}),
        ("5 + 3 = <<5+3=8>>8 eggs", {f"5 + 3 = <<5+3={n}>>{n} eggs" for n in (6, 7, 9, 10)}),
    ],
)
def test_the_stated_number_moves_by_one_or_two(text: str, changed: set[str]) -> None:
    assert every(text) == changed


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("The sky is blue.", "The sky is not blue."),
        ("The sky is not blue.", "The sky is blue."),
        ("Birds can fly.", "Birds can not fly."),
        ("Birds cannot fly.", "Birds can fly."),
        ("Birds can't fly.", "Birds can fly."),
        ("It won’t rain.", "It will rain."),
        ("They weren't there, and it was late.", "They were there, and it was late."),
        (
            "On the 3rd day it is over.",
            "On the 3rd day it is not over.",
        ),  # an ordinal states nothing to shift
        ("Step 2: The heart does pump blood.", "Step 2: The heart does not pump blood."),
    ],
)
def test_without_a_number_the_first_verb_is_negated_or_affirmed(text: str, changed: str) -> None:
    assert every(text) == {changed}


@pytest.mark.parametrize(
    "text", ["", " ", "Step 3:", "Step 3: ", "4. ", "- ", "Birds fly.", "…", "x2 + H2O"]
)
def test_no_rule(text: str) -> None:
    assert every(text) == {None}


@given(organism_steps(), SEEDS)
def test_a_step_of_the_language_states_another_value_and_nothing_else_changes(
    case: tuple[str, StatedStep], seed: int
) -> None:
    text, stated = case
    changed = corrupt_step(text, random.Random(seed))
    assert changed is not None
    numbers, others = NUMBER.findall(text), NUMBER.findall(changed)
    assert [int(n) for n in others[:-1]] == [
        int(n) for n in numbers[:-1]
    ]  # the label and both operands
    assert 1 <= abs(int(others[-1].rstrip(".")) - stated.number_after) <= 2 and int(others[-1]) >= 0
    assert NUMBER.sub("#", changed) == NUMBER.sub("#", text)


@settings(max_examples=300)
@given(TEXTS, SEEDS)
def test_a_corrupted_text_differs_and_is_a_function_of_text_and_seed(text: str, seed: int) -> None:
    changed = corrupt_step(text, random.Random(seed))
    assert changed is None or changed != text
    assert corrupt_step(text, random.Random(seed)) == changed


@pytest.mark.parametrize(
    "label",
    ["Step 7: ", "7. ", "7) ", "(7) ", "- ", "**Step 7:** ", "**Step 7**: ", "Step 7 - ", "* 7. "],
)
def test_labels_are_left_alone(label: str) -> None:
    for changed in (*every(f"{label}5 boys"), *every_paraphrase(f"{label}5 boys")):
        assert changed is not None and changed.startswith(label)
    assert corrupt_step(f"{label}Birds fly.", random.Random(1)) is None


def test_a_leading_decimal_is_no_label() -> None:
    assert every_paraphrase("3.5 + 2 = 5.5") == {"3.5 + 2 equals 5.5", "So 3.5 + 2 = 5.5"}


def test_long_numbers_are_exact() -> None:
    number = "1" + "0" * 4000
    changed = corrupt_step(f"n = {number}", random.Random(2))
    assert changed is not None and changed != f"n = {number}"


# --- paraphrase: what is stated stays
# -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Step 1: 7 + 5 = 12.", {"Step 1: 7 + 5 equals 12.", "Step 1: So 7 + 5 = 12."}),
        ("Step 1: 7 + 5 equals 12.", {"Step 1: 7 + 5 = 12.", "Step 1: So 7 + 5 equals 12."}),
        ("Step 1: So 7 + 5 = 12.", {"Step 1: So 7 + 5 equals 12.", "Step 1: 7 + 5 = 12."}),
        ("Step 1: Clearly, 7 + 5 = 12.", {"Step 1: Clearly, 7 + 5 equals 12."}),
        ("The sky is blue.", {"So the sky is blue."}),
        ("Ann is tall.", {"So Ann is tall."}),
        ("So, the sky is blue.", {"The sky is blue."}),
        ("Therefore, it is not red.", {"It is not red."}),
        ("So far, 5 are left.", {None}),  # "so far" is no connective
        ("So", {None}),
        (
            "However, the sky is blue.",
            {None},
        ),  # a contrast turned into a consequence would mean something else
        ("But wait, it is red.", {None}),
        ("Is it blue?", {None}),
        ("Let n = 4.", {"Let n equals 4."}),
    ],
)
def test_paraphrases(text: str, expected: set[str | None]) -> None:
    assert every_paraphrase(text) == expected


@given(organism_steps(), SEEDS)
def test_a_step_of_the_language_keeps_its_numbers_and_stays_in_the_language(
    case: tuple[str, StatedStep], seed: int
) -> None:
    text, _ = case
    changed = paraphrase_step(text, random.Random(seed))
    assert changed is not None and changed != text
    assert NUMBER.findall(changed) == NUMBER.findall(text)
    pieces = TOKEN_PATTERN.findall(changed)
    assert "".join(pieces) == changed
    assert {piece for piece in pieces if not piece.strip().isdigit()} <= set(vocabulary())


@settings(max_examples=300)
@given(TEXTS, SEEDS)
def test_a_paraphrase_differs_keeps_every_number_and_every_word_but_the_connective(
    text: str, seed: int
) -> None:
    changed = paraphrase_step(text, random.Random(seed))
    assert paraphrase_step(text, random.Random(seed)) == changed
    if changed is not None:
        assert changed != text
        assert NUMBER.findall(changed) == NUMBER.findall(text)
        kept = {
            *("so", "thus", "therefore", "hence", "consequently", "accordingly", "equals", "="),
            ",",
        }
        words = [
            [w for w in re.findall(r"\w+|=", t.casefold()) if w not in kept]
            for t in (text, changed)
        ]
        assert words[0] == words[1]


# --- filler
# ---------------------------------------------------------------------------------------------


@given(st.text(max_size=60))
def test_filler_has_one_group_of_dots_a_word(text: str) -> None:
    assert filler_text(text).split() == ["..."] * max(1, len(text.split()))


def test_filler_is_of_the_language() -> None:
    problem = make_problem(random.Random(1), 2)
    line = step_text(
        1,
        StatedStep(problem.totals[0], problem.changes[0], problem.totals[1]),
        problem.counted_object,
    )
    assert filler_text(line) == "... ... ... ... ... ... ..."
    assert set(TOKEN_PATTERN.findall(filler_text(line))) <= set(vocabulary())
