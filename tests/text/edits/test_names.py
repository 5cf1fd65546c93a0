"""Names in a text: which words are names, and the same text with its people called otherwise."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.suites.wordproblems import FRIEND_NAMES, make_problem, vocabulary
from cotlab.text.edits.names import (
    FEMALE_REPLACEMENT_NAMES,
    MALE_REPLACEMENT_NAMES,
    choose_new_names,
    find_given_names,
    find_names,
    replace_names,
)


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (("Ann has 7 apples.", "So Ann gives Tom 3."), ("Ann", "Tom")),
        (("In May we fly from Paris to New York on Monday.",), ("Paris", "New York")),
        (("Undo the sum. The Sun is a star, and the sun is hot.",), ()),
        (("Then Lena sleeps.",), ("Lena",)),
        (("I think that 7 + 5 = 12.",), ()),
    ],
)
def test_names_of_people_and_things(texts: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert find_names(*texts) == names


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("Ann's roof. Then Max buys 3.", ("Ann", "Max")),
        ("James Cook sailed. Martin Luther wrote to King John.", ()),
        ("The jack lifts. Jack holds it.", ()),
        ("Paris is big.", ()),
    ],
)
def test_people_stand_alone(text: str, people: tuple[str, ...]) -> None:
    assert find_given_names(text) == people


def test_a_new_name_has_the_sex_of_the_old_one() -> None:
    for seed in range(50):
        told = choose_new_names(
            "Ann gives Tom 3 apples. He eats one, she two.", random.Random(seed)
        )
        assert told is not None and set(told) == {"Ann", "Tom"}
        assert (
            told["Ann"] in FEMALE_REPLACEMENT_NAMES
            and told["Tom"] in MALE_REPLACEMENT_NAMES
            and not set(told) & set(told.values())
        )
        alone = choose_new_names("Sam has 3. She eats one.", random.Random(seed))
        assert alone is not None and alone["Sam"] in FEMALE_REPLACEMENT_NAMES
    assert choose_new_names("How many cards has the girl?", random.Random(1)) is None


def test_names_change_places_at_once() -> None:
    assert (
        replace_names("Ann's Tom and Anna saw Ann.", {"Ann": "Tom", "Tom": "Ann"})
        == "Tom's Ann and Anna saw Tom."
    )


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), hint=st.sampled_from(["", "wrong"]))
def test_a_renamed_word_problem_keeps_its_numbers_and_its_language(seed: int, hint: str) -> None:
    problem = make_problem(random.Random(seed), hint=hint)  # type: ignore[arg-type]
    told = choose_new_names(problem.question, random.Random(seed))
    assert told is not None and problem.name in told and set(told) <= {problem.name, *FRIEND_NAMES}
    made = replace_names(problem.question, told)
    assert re.findall(r"\d+", made) == re.findall(r"\d+", problem.question)
    assert made != problem.question and problem.name not in re.findall(r"\w+", made)
    assert {f" {word}" for word in re.findall(r"[A-Za-z]+", made)} <= set(vocabulary())
    back = {new: old for old, new in told.items()}
    assert replace_names(made, back) == problem.question
