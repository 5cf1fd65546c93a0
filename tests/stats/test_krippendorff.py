"""Krippendorff's alpha against his own worked examples and by hand, and where there is none."""

from __future__ import annotations

import random
import warnings
from collections.abc import Hashable, Sequence

import krippendorff
import numpy as np
import pytest

from cotlab.stats import agreement as ours
from cotlab.stats.agreement import nominal_alpha
from cotlab.stats.intervals import Interval

GAP = None


def alpha(*raters: Sequence[Hashable | None]) -> Interval:
    """Of raters in the place of items."""
    return nominal_alpha(list(zip(*raters, strict=True)), seed=1)


def test_two_raters_of_two_labels() -> None:
    """Krippendorff (2011), section A: o_01 = 4 of n = 20 labels, 14 zeros and 6 ones: 1 - 19 · 4 /
    (14 · 6) = 0.095."""
    found = alpha([0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0])
    assert found.point == pytest.approx(1 - 19 * 4 / 84) and round(found.point or 0, 3) == 0.095
    assert (
        found.n == 10 and found.lo is not None and found.hi is not None and found.lo < 0 < found.hi
    )
    assert found.note is not None and found.note.endswith(
        "of 2000 resamples hold one label alone and are left out"
    )


def test_two_raters_of_five_labels() -> None:
    """Krippendorff (2011), section B: 0.692."""
    assert round(alpha("aabbdcccedda", "babbbccceddd").point or 0, 3) == 0.692


def test_four_raters_with_gaps() -> None:
    """Krippendorff (2011), section C: 0.743; the last item has one label alone and counts for
    nothing.

    Its coincidences: o_11 = 7, o_22 = 10, o_33 = 8, o_44 = 4, o_55 = 3 of n = 40 labels, n_c = 9,
    13, 10, 5, 3: 1 - 39 · (40 - 32) / (40² - 384) = 0.743.
    """
    found = alpha(
        [1, 2, 3, 3, 2, 1, 4, 1, 2, GAP, GAP, GAP],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, GAP, 3],
        [GAP, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, GAP],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, GAP],
    )
    assert (
        found.point == pytest.approx(1 - 39 * 8 / (1600 - 384))
        and round(found.point or 0, 3) == 0.743
    )
    assert (found.n, found.note) == (11, "1 item of one rater left out")


def test_a_resample_has_the_alpha_that_the_package_gives_it() -> None:
    draw = np.random.default_rng(3)
    kinds = np.array([[3, 0, 0], [2, 1, 0], [0, 0, 2], [1, 1, 1], [0, 2, 2]])
    often = draw.integers(0, 6, size=(20, len(kinds)))
    expected = [
        krippendorff.alpha(
            value_counts=np.repeat(kinds, row, axis=0), level_of_measurement="nominal"
        )
        for row in often
    ]
    assert ours._alphas(often @ ours._alpha_parts(kinds)) == pytest.approx(expected)


def test_the_order_of_items_and_raters_does_not_matter() -> None:
    draw = random.Random(2)
    items = [[draw.choice("abb"), draw.choice("ab"), draw.choice(["a", None])] for _ in range(30)]
    mixed = [draw.sample(item, 3) for item in draw.sample(items, 30)]
    assert (
        nominal_alpha(items, seed=4) == nominal_alpha(mixed, seed=4) != nominal_alpha(items, seed=5)
    )


def test_the_interval_covers_the_alpha_of_the_many() -> None:
    """Raters who copy the truth with chance 0.6 and else guess of two: alpha is 0.36 where both
    labels are as frequent."""
    draw, hits = random.Random(0), 0
    for seed in range(60):
        truth = [draw.random() < 0.5 for _ in range(60)]
        items = [
            [one if draw.random() < 0.6 else draw.random() < 0.5 for _ in range(3)] for one in truth
        ]
        found = nominal_alpha(items, seed=seed)
        assert found.lo is not None and found.hi is not None
        hits += found.lo <= 0.36 <= found.hi
    assert 51 <= hits <= 60  # 95 % of 60 are 57; fewer than 51 come by chance once in 1000


@pytest.mark.parametrize(
    ("items", "point", "reason"),
    [
        ([], None, "no item was rated by two"),
        ([["a"], [None, "b"]], None, "no item was rated by two"),
        ([["a", "a"]] * 9, None, "all raters give one label to all 9 items"),
        ([["a", "a"], ["b", "b"], ["c"]], 1.0, "an interval needs 5 items, here are 2"),
        ([["a", "a"], ["b", "b"]] * 5, 1.0, "every item is agreed on"),
        ([["a", "a"]] * 19 + [["a", "b"]], pytest.approx(0.0), "resamples hold one label alone"),
    ],
)
def test_what_has_no_alpha_or_no_interval(
    items: list[list[str | None]], point: float | None, reason: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = nominal_alpha(items, seed=1)
    assert found.point == point and found.lo is None and found.hi is None
    assert found.reason is not None and reason in found.reason
