"""What differs between two texts, and which steps of two chains correspond."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.text.differences import (
    align_steps,
    stated_number,
    states_otherwise,
    text_changes,
    without_label,
)


def test_a_changed_number_is_one_removed_and_one_added_piece() -> None:
    assert text_changes("10 - 5 = 5.", "10 - 5 = 4.") == (
        ("same", "10 - 5 = "),
        ("removed", "5"),
        ("added", "4"),
        ("same", "."),
    )
    assert text_changes("1,080.5 cups", "1,081.5 cups")[0] == ("removed", "1,080.5")
    assert text_changes("4 + 6 = 10.", "So 4 + 6 = 10.")[0] == ("added", "So ")
    assert text_changes("the cat sat", "9 = 9") == (("removed", "the cat sat"), ("added", "9 = 9"))
    assert text_changes("", "") == () and text_changes("", "a") == (("added", "a"),)


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_pieces_add_up_to_both_texts(before: str, after: str) -> None:
    changes = text_changes(before, after)
    assert "".join(text for kind, text in changes if kind != "added") == before
    assert "".join(text for kind, text in changes if kind != "removed") == after


@pytest.mark.parametrize(
    ("step", "other", "differs"),
    [
        ("Step 3: 5 - 3 = 2.", "Step 3: 4 - 3 = 1.", True),
        ("Step 3: 5 - 3 = 2.", "3. So 5 - 3 = 2.", False),
        ("It is late.", "It is  LATE.", False),
        ("It is late.", "It is not late.", True),
        ("5 - 3 = 2.", "Nothing is left.", True),
    ],
)
def test_a_step_states_otherwise_by_its_numbers_first(step: str, other: str, differs: bool) -> None:
    assert states_otherwise(step, other) is differs


def test_the_number_that_a_step_ends_on() -> None:
    assert stated_number("Step 6: 7 - 2 = 5.") == "5"
    assert stated_number("He has 12 cups.") == "12" and stated_number("Step 2: So it is.") is None
    assert without_label("Step 2: ") == "Step 2:"


def test_chains_of_another_length_are_matched_by_equal_steps() -> None:
    steps = ["a = 1", "b = 2", "c = 3"]
    assert align_steps(steps, ["a = 1", "b = 4", "c = 5"]) == ("a = 1", "b = 4", "c = 5")
    assert align_steps(steps, ["a = 1", "c = 3"]) == ("a = 1", None, "c = 3")
    assert align_steps(steps, ["x = 9", "a = 1", "b = 2", "c = 3"]) == tuple(steps)
    assert align_steps(steps, []) == (None, None, None)
