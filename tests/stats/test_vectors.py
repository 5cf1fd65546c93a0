"""Cosines, clusters and the alignment of chains: values by hand, and laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.errors import UnknownName
from cotlab.stats.vectors import LINKAGES, clusters, cosines, dtw_similarity, pooled

VECTORS = st.lists(
    st.lists(st.floats(-5, 5).filter(lambda x: abs(x) > 1e-3), min_size=3, max_size=3),
    min_size=0,
    max_size=7,
)


def at(*degrees: float) -> list[tuple[float, float]]:
    return [(math.cos(math.radians(d)), math.sin(math.radians(d))) for d in degrees]


def test_cosines_of_three_directions() -> None:
    found = cosines(at(0, 60, 90))
    assert found[0, 1] == pytest.approx(0.5) and found[0, 2] == pytest.approx(0, abs=1e-12)
    assert found[1, 2] == pytest.approx(math.sqrt(3) / 2)
    assert np.diag(found).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("threshold", "linkage", "expected"),
    [
        # 0°, 10°, 21°: neighbours have .98481 and .98163, the ends cos 21° = .93358
        (0.99, "average", (0, 1, 2)),
        (0.97, "single", (0, 0, 0)),  # neighbours chain
        (0.97, "complete", (0, 0, 1)),
        (0.97, "average", (0, 0, 1)),  # after the first pair: (.98163 + .93358) / 2 = .95760
        (0.95, "average", (0, 0, 0)),
        (0.95, "complete", (0, 0, 1)),
        (0.93, "complete", (0, 0, 0)),
    ],
)
def test_each_linkage_by_hand(threshold: float, linkage: str, expected: tuple[int, ...]) -> None:
    assert clusters(cosines(at(0, 10, 21)), threshold, linkage) == expected


def test_clusters_are_counted_in_the_order_in_which_they_appear() -> None:
    assert clusters(cosines(at(90, 0, 91, 1, 180)), 0.9) == (0, 1, 0, 1, 2)


def test_a_similarity_equal_to_the_threshold_joins_whatever_rounding_does() -> None:
    same = cosines([(0.1, 0.2, 0.3), (0.2, 0.4, 0.6), (1, 2, 3)])
    assert clusters(same, 1.0) == (0, 0, 0)
    assert clusters(cosines([(1, 0), (0.6, 0.8)]), 0.6) == (0, 0)


def test_one_thing_is_one_cluster_and_nothing_is_none() -> None:
    assert clusters(cosines([(1, 2)]), 0.5) == (0,)
    assert clusters(np.zeros((0, 0)), 0.5) == ()


@given(VECTORS, st.floats(-1, 1), st.sampled_from(LINKAGES))
def test_a_higher_threshold_never_gives_fewer_clusters(
    vectors: list[list[float]], threshold: float, linkage: str
) -> None:
    similarity = cosines(vectors) if vectors else np.zeros((0, 0))
    low = clusters(similarity, threshold, linkage)
    high = clusters(similarity, min(1.0, threshold + 0.1), linkage)
    assert len(set(low)) <= len(set(high)) <= len(vectors)
    assert sorted(set(low)) == list(range(len(set(low))))


def test_what_cannot_be_clustered() -> None:
    square = cosines([(1, 0), (0, 1)])
    with pytest.raises(UnknownName, match="average"):
        clusters(square, 0.5, "averge")
    with pytest.raises(ValueError, match="threshold"):
        clusters(square, 1.5)
    with pytest.raises(ValueError, match="square"):
        clusters(np.zeros((2, 3)), 0.5)
    with pytest.raises(ValueError, match="direction"):
        cosines([(0, 0), (1, 0)])
    with pytest.raises(ValueError, match="different lengths"):
        cosines([(1, 0), (1, 0, 0)])


def test_pooling_weighs_steps_alike() -> None:
    # (1, 0) and (0, 1) whatever their norms: the diagonal
    assert pooled([(7, 0), (0, 1e-200)]) == pytest.approx((math.sqrt(0.5), math.sqrt(0.5)))
    # twice (1, 0) and once (0, 1): (2/3, 1/3), scaled: (2, 1) / √5
    assert pooled([(1, 0), (1, 0), (0, 1)]) == pytest.approx((2 / math.sqrt(5), 1 / math.sqrt(5)))


@pytest.mark.parametrize(
    "vectors",
    [
        [],
        [()],
        [(1.0, 0.0), (1.0,)],
        [(float("nan"), 1.0)],
        [(float("inf"), 1.0)],
        [(0.0, 0.0)],
        [(1.0, 0.0), (-1.0, 0.0)],
        [(1.0, 0.0), (0.0, 0.0)],
    ],
)
def test_what_has_no_direction_is_not_pooled(vectors: list[tuple[float, ...]]) -> None:
    assert pooled(vectors) is None


X, Y, MINUS_X = (1.0, 0.0), (0.0, 2.0), (-3.0, 0.0)
STEP_VECTORS = st.lists(
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


@given(STEP_VECTORS, STEP_VECTORS)
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
