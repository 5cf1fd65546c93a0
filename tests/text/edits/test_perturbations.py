"""Perturbations of a step: what each changes, what it leaves, and where it does not apply."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.core.errors import UnknownName
from cotlab.suites import load_suite, shipped_suites
from cotlab.text.edits.ablations import find_label_end
from cotlab.text.edits.names import find_names
from cotlab.text.edits.perturbations import (
    MAX_RELATIVE_NOISE,
    MIN_RELATIVE_NOISE,
    PERTURBATIONS,
    perturb,
)

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
TEXTS = st.text(max_size=40) | st.from_regex(
    r"(?:Step \d: )?[A-Za-z ]{0,12}\$?\d{1,4}(?:[.,]\d{1,3})?(?: [+*/-] \d{1,3})?"
    r" (?:km|m|hours|=|is) [=a-z. ]{0,9}\d{0,4}",
    fullmatch=True,
)
NAMES = ("Ann", "Tom", "New York")


def every(name: str, text: str, names: tuple[str, ...] = NAMES) -> set[str | None]:
    return {perturb(name, text, names, random.Random(seed)) for seed in range(60)}


@pytest.mark.parametrize(
    ("name", "text", "made"),
    [
        (
            "paraphrase",
            "Step 1: 7 + 5 = 12.",
            {"Step 1: 7 + 5 equals 12.", "Step 1: So 7 + 5 = 12."},
        ),
        ("numeric", "Step 1: 7 + 5 = 12.", {"Step 1: 7 + 5 = 11.", "Step 1: 7 + 5 = 13."}),
        ("numeric", "It is 0.", {"It is 1."}),
        ("numeric", "The area is 5 m^2.", {"The area is 4 m^2.", "The area is 6 m^2."}),
        ("numeric", "No number here.", {None}),
        (
            "unit_swap",
            "So it is 1 hour away.",
            {"So it is 1 second away.", "So it is 1 minute away.", "So it is 1 day away."},
        ),
        ("unit_swap", "The speed is 5 km/h or 3 m per second or 2 m^2.", {None}),
        ("unit_swap", "He has 5 apples and 7 s2.", {None}),
        (
            "unit_conversion",
            "He runs 5 km.",
            {"He runs 5000 m.", "He runs 500000 cm.", "He runs 5000000 mm."},
        ),
        ("unit_conversion", "It takes 60 min.", {"It takes 3600 s.", "It takes 1 h."}),
        (
            "unit_conversion",
            "It takes 60 minutes.",
            {"It takes 3600 seconds.", "It takes 1 hour."},
        ),  # 1/24 day: not exact
        (
            "unit_conversion",
            "A 1-foot and 2 feet.",
            {"A 1-foot and 24 inches."},
        ),  # in yards and miles not exact
        ("order", "Step 1: 7 + 5 = 12.", {"Step 1: 5 + 7 = 12."}),
        ("order", "2 * 3 + 4 = 10", {"3 * 2 + 4 = 10"}),
        ("order", "5 - 2 + 3 = 6", {None}),
        ("order", "8 / 2 * 4 = 16", {None}),
        ("order", "Tom has 3 and Ann has 4.", {"Ann has 4 and Tom has 3."}),
        ("order", "Tom has 3 and 4.", {None}),
        ("order", "Tom has 3, and they are 4.", {None}),
        ("paraphrase", "“Often” is less than “always”.", {"So “Often” is less than “always”."}),
        ("paraphrase", "$x$ is 3.", {"So $x$ is 3."}),
        ("paraphrase", "“Often” is less than “always”?", {None}),
        ("negation", "It is cold.", {"It is not cold."}),
        ("negation", "Pigs cannot fly.", {"Pigs can fly."}),
        ("negation", "Step 1: 7 + 5 = 12.", {"Step 1: 7 + 5 ≠ 12."}),
        ("negation", "7 + 5 equals 12.", {"7 + 5 does not equal 12."}),
        ("negation", "Birds fly.", {None}),
        ("entity_swap", "Ann's apples went to Ann.", {"Tom's apples went to Tom."}),
        ("entity_swap", "Anna has apples.", {None}),
        ("entity_swap", "New York is big.", {None}),  # no other place to swap it with
    ],
)
def test_a_perturbation_by_hand(name: str, text: str, made: set[str | None]) -> None:
    assert every(name, text) == made


@pytest.mark.parametrize("name", list(PERTURBATIONS))
@settings(max_examples=80, deadline=None)
@given(text=TEXTS, seed=st.integers(0, 10**6))
def test_the_same_seed_gives_the_same_text_and_never_the_step_itself(
    name: str, text: str, seed: int
) -> None:
    made = perturb(name, text, NAMES, random.Random(seed))
    assert made == perturb(name, text, NAMES, random.Random(seed)) and made != text
    if made is None:
        return
    label = text[: find_label_end(text)]
    assert made.startswith(label)
    before, after = NUMBER.findall(text), NUMBER.findall(made)
    if name in ("paraphrase", "unit_swap", "negation", "entity_swap"):
        assert before == after
    if name == "order":
        assert sorted(before) == sorted(after)


@settings(max_examples=200, deadline=None)
@given(value=st.integers(0, 10**7), decimals=st.integers(0, 3), seed=st.integers(0, 10**6))
def test_numeric_noise_is_small_and_never_negative(value: int, decimals: int, seed: int) -> None:
    number = f"{value / 10**decimals:.{decimals}f}"
    made = perturb("numeric", f"It is {number} now", (), random.Random(seed))
    assert made is not None
    moved = float(made.split()[2])
    unit = 10**-decimals
    change = abs(moved - float(number))
    assert moved >= 0 and change > 0
    assert change <= max(unit, float(number) * MAX_RELATIVE_NOISE + unit / 2) + 1e-9
    assert change >= min(unit, float(number) * MIN_RELATIVE_NOISE) - 1e-9


@pytest.mark.parametrize("suite", ["math", "evaluation", "commonsense"])
def test_real_steps_keep_what_a_perturbation_must_not_touch(suite: str) -> None:
    found = dict.fromkeys(PERTURBATIONS, 0)
    for item in load_suite(shipped_suites()[suite]).items:
        names = find_names(item.question, *(step.text for step in item.steps))
        for step in item.steps:
            for name in PERTURBATIONS:
                made = perturb(name, step.text, names, random.Random(item.id))
                if made is None:
                    continue
                found[name] += 1
                assert made != step.text
                if name == "order":
                    assert sorted(re.findall(r"\w+", made.lower())) == sorted(
                        re.findall(r"\w+", step.text.lower())
                    )
                if name == "entity_swap":
                    assert NUMBER.findall(made) == NUMBER.findall(step.text)
    assert found["paraphrase"] > 90 and found["negation"] > 50
    assert suite == "commonsense" or min(found.values()) >= 2


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="negation"):
        perturb("negaton", "It is.", (), random.Random(0))
