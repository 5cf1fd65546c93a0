"""Dynamic time warping against cases worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.stats.vectors import dtw_similarity

X, Y, MINUS_X = (1.0, 0.0), (0.0, 2.0), (-3.0, 0.0)
VECTORS = st.lists(
    st.tuples(st.floats(-1, 1), st.floats(-1, 1)).filter(lambda v: abs(v[0]) + abs(v[1]) > 0.1),
    max_size=5,
)


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        ([X, Y], [X, Y], 1.0),
        ([X, X, Y], [X, Y, Y], 1.0),  # a step said twice costs nothing
        ([X], [Y], 0.0),  # 2 d = 2 over n + m = 2
        ([X], [MINUS_X], -1.0),  # 2 d = 4 over 2
        (
            [X, Y],
            [Y, X],
            0.25,
            # costs 1 0 / 0 1: (1,1) 2, (1,2) + 0, (2,2) + 1 = 3; diagonal 2 + 2 = 4; 1 − 3/4
        ),
        ([X, Y], [X], 1 - 1 / 3),  # 0, then the second step against X once: 1 over 3
    ],
)
def test_by_hand(
    first: list[tuple[float, float]], second: list[tuple[float, float]], value: float
) -> None:
    assert dtw_similarity(first, second) == pytest.approx(value, abs=1e-12)


def test_an_empty_chain_has_no_alignment() -> None:
    assert dtw_similarity([], [X]) is None and dtw_similarity([X], []) is None


@given(VECTORS, VECTORS)
def test_it_is_symmetric_in_range_and_one_for_equal_chains(
    first: list[tuple[float, float]], second: list[tuple[float, float]]
) -> None:
    one, other = dtw_similarity(first, second), dtw_similarity(second, first)
    if not first or not second:
        assert one is None
        return
    assert one is not None and other is not None and -1 <= one <= 1
    assert one == pytest.approx(other, abs=1e-12) and dtw_similarity(first, first) == pytest.approx(
        1
    )
