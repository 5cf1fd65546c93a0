"""One pattern of written numbers for every reader of chains."""

from __future__ import annotations

import random
import re
from fractions import Fraction

import pytest

from cotlab.text.arithmetic.expressions import tokenize
from cotlab.text.edits.ablations import corrupt_step
from cotlab.text.edits.perturbations import perturb
from cotlab.text.written_numbers import NUMBER_PATTERN, read_number


@pytest.mark.parametrize(
    ("text", "value", "n_decimals"),
    [
        ("18", 18, 0),
        ("1,080.5", Fraction(2161, 2), 1),
        (".50", Fraction(1, 2), 2),
        ("1{,}080", 1080, 0),
    ],
)
def test_a_number_is_one_number_to_every_reader(
    text: str, value: Fraction, n_decimals: int
) -> None:
    """The readers of edits took 1{,}080 for two numbers, and .5 for none."""
    assert re.fullmatch(NUMBER_PATTERN, text) and read_number(text) == (value, n_decimals)
    assert [token.value for token in tokenize(text)] == [value]
    corrupted = corrupt_step(f"It is {text}.", random.Random(1))
    assert corrupted and len(re.findall(NUMBER_PATTERN, corrupted)) == 1
    swapped = perturb("order", f"So 3 * {text} = x.", (), random.Random(1))
    assert swapped == f"So {text} * 3 = x."


@pytest.mark.parametrize("text", ["1,0805", "1,080,5", "12,34"])
def test_commas_that_separate_no_thousands_end_a_number(text: str) -> None:
    assert not re.fullmatch(NUMBER_PATTERN, text)
