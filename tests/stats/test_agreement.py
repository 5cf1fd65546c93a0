"""Agreement of two raters, p-values of several tests, consistency of direction, and correlation:
golden values and gaps."""

from __future__ import annotations

import math

import pytest

from cotlab.stats.agreement import (
    agreement_table,
    cohen_kappa,
    percent_agreement,
)
from cotlab.stats.multiple import benjamini_hochberg, direction

FIRST = ["yes"] * 25 + ["no"] * 25
SECOND = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15


def test_kappa_by_hand() -> None:
    """Observed .7, by chance .5 · .6 + .5 · .4 = .5: kappa .4.

    Variance of Fleiss, Cohen and Everitt: A = .4 (1 - 1.1 · .6)² + .3 (1 - .9 · .6)² = .10972, B =
    .6² (.1 · 1.1² + .2 · .9²) = .10188, C = (.4 - .5 · .6)² = .01; (A + B - C) / (50 · .5²) =
    .016128 = .126996².
    """
    found = cohen_kappa(FIRST, SECOND)
    assert (found.point, found.n) == (pytest.approx(0.4), 50)
    assert (found.lo, found.hi) == pytest.approx(
        (0.4 - 1.959964 * 0.126996, 0.4 + 1.959964 * 0.126996), abs=1e-5
    )
    narrow = cohen_kappa(FIRST, SECOND, level=0.9)
    assert narrow.lo == pytest.approx(0.4 - 1.644854 * 0.126996, abs=1e-5) and narrow.level == 0.9


def test_labels_and_their_table_say_the_same() -> None:
    assert agreement_table(FIRST, SECOND) == [[15, 10], [5, 20]]  # no before yes
    share = percent_agreement(FIRST, SECOND)
    assert (share.point, share.method, share.n) == (0.7, "Wilson", 50)
    for call in (cohen_kappa, percent_agreement):
        with pytest.raises(ValueError, match="two raters"):
            call([1, 0], [1])


def test_three_labels() -> None:
    """Agreed on 6 of 9, by chance (3 · 3 + 3 · 3 + 3 · 3) / 81 = 1/3: (2/3 - 1/3) / (2/3) = .5."""
    found = cohen_kappa("aaabbbccc", "aabbbccca")
    assert found.point == pytest.approx(0.5) and percent_agreement(
        "aaabbbccc", "aabbbccca"
    ).point == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("first", "second", "point", "reason"),
    [
        ([], [], None, "no item was rated by both"),
        (
            [1, 1, 1, 1, 1, 1],
            [1, 0, 1, 0, 1, 0],
            None,
            "the first rater gives one label to all 6 items",
        ),
        (
            [1, 0, 1, 0, 1, 0],
            [0, 0, 0, 0, 0, 0],
            None,
            "the second rater gives one label to all 6 items",
        ),
        ([1] * 6, [1] * 6, None, "both raters give one label to all 6 items"),
        (
            [1, 0, 1, 0, 1, 0],
            [1, 0, 1, 0, 1, 0],
            1.0,
            "the agreement is perfect: its variance is 0",
        ),
        ([1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1], -1.0, "the large-sample variance is 0"),
        ([1, 0, 1, 0], [1, 0, 0, 0], 0.5, "an interval needs 5 items, here are 4"),
    ],
)
def test_kappa_without_an_interval_says_why(
    first: list[int], second: list[int], point: float | None, reason: str
) -> None:
    found = cohen_kappa(first, second)
    assert found.point == (None if point is None else pytest.approx(point)) and (
        found.lo,
        found.hi,
    ) == (None, None)
    assert found.reason is not None and found.reason.startswith(reason)


# --- several tests


def test_benjamini_hochberg() -> None:
    """By hand: 4 · .005 = .02; 4/2 · .01 = .02; 4/3 · .03 = .04; .04. R: p.adjust(c(.01, .04, .03,
    .005), "BH")."""
    assert benjamini_hochberg([0.01, None, 0.04, 0.03, 0.005]) == [
        pytest.approx(p) if p else None for p in (0.02, None, 0.04, 0.04, 0.02)
    ]
    assert benjamini_hochberg([]) == [] and benjamini_hochberg([None, None]) == [None, None]
    for bad in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="p-value"):
            benjamini_hochberg([0.1, bad])


@pytest.mark.parametrize(
    ("gaps", "k", "m", "sign", "text"),
    [
        ([0.2, 0.1, 0.3], 3, 3, 1, "3 of 3 up"),
        ([-0.2, -0.1, 0.3, 0.0, None], 2, 4, -1, "2 of 4 down, 1 zero, 1 undefined"),
        ([0.2, -0.1], 1, 2, None, "1 of 2 up and as many down"),
        ([0.0, 0.0], 0, 2, None, "0 of 2 differ"),
        ([None], 0, 0, None, "no difference is defined, 1 undefined"),
        ([], 0, 0, None, "no difference is defined"),
    ],
)
def test_direction(gaps: list[float | None], k: int, m: int, sign: int | None, text: str) -> None:
    found = direction(gaps)
    assert (found.k, found.m, found.sign, found.text) == (k, m, sign, text)
    turned = direction([None if gap is None else -gap for gap in gaps])
    assert (turned.k, turned.m, turned.sign) == (k, m, None if sign is None else -sign)
    with pytest.raises(ValueError, match="finite"):
        direction([*gaps, math.nan])
