"""Spearman, and a mean with a covariate held at 0: values by hand, and what is undefined."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.stats.correlation import at_equal, spearman


def test_rho_is_that_of_the_rank_differences() -> None:
    """Differences of rank 1, −1, 1, −1, 1, −1: 1 − 6·6/(6·35) = 0.828571; z ± 1.959964·sqrt((1 +
    rho²/2)/3)."""
    found = spearman([1, 2, 3, 4, 5, 6], [20, 10, 40, 30, 60, 50])
    assert found.point == pytest.approx(1 - 36 / 210)
    half = 1.959964 * math.sqrt((1 + found.point**2 / 2) / 3)
    assert found.lo == pytest.approx(math.tanh(math.atanh(1 - 36 / 210) - half), abs=1e-6)
    assert found.hi == pytest.approx(math.tanh(math.atanh(1 - 36 / 210) + half), abs=1e-6)


def test_there_is_none_of_few_pairs_or_a_constant() -> None:
    assert spearman([1, 2, 3, 4], [1, 2, 3, 4]).reason == "fewer than 5 pairs"
    told = spearman([1, 1, 1, 1, 1], [1, 2, 3, 4, 5])
    assert told.point is None and told.reason == "one of the two is constant" and told.n == 5


def test_rounding_errors_are_ties() -> None:
    """A mean of cosines of equal vectors is 1, or one unit in the last place below it."""
    told = spearman([1.0, 1.0, 1 - 2**-53, 1.0, 1 - 2**-53], [1, 2, 3, 4, 5])
    assert told.point is None and told.reason == "one of the two is constant"


def test_a_perfect_order_has_no_interval() -> None:
    told = spearman([1, 2, 3, 4, 5], [9, 7, 5, 3, 1])
    assert told.point == -1.0 and told.lo is None and "perfect" in str(told.reason)


def test_what_is_no_pair_is_refused() -> None:
    for bad in ([1.0, 2.0], [float("nan")] * 5):
        with pytest.raises(ValueError, match="finite pairs"):
            spearman(bad, [1.0, 2.0, 3.0, 4.0, 5.0])


NUMBERS = st.floats(-10, 10) | st.integers(-3, 3).map(float)


def test_against_statsmodels() -> None:
    """statsmodels 0.15: OLS(values, add_constant(lengths)).fit(cov_type="HC3", use_t=True),
    params[0] and conf_int()[0]."""
    values, lengths = [1.0, 3.0, 2.0, 5.0, 4.0, 0.0, 2.0], [-3.0, -1.0, 0.0, 2.0, 5.0, 1.0, -2.0]
    found = at_equal(values, lengths)
    assert (found.point, found.lo, found.hi) == pytest.approx(
        (2.328947, 0.806202, 3.851692), abs=1e-6
    )
    assert (found.n, found.method) == (7, "least squares at 0, HC3")
    clustered = at_equal(values, lengths, [0, 0, 1, 2, 3, 4, 4])
    assert (
        clustered.point == pytest.approx(found.point)
        and clustered.n == 5
        and clustered.lo != pytest.approx(found.lo)
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(0, 5)), max_size=12), st.booleans())
def test_a_point_never_lies_outside_its_interval(
    rows: list[tuple[float, float, int]], clustered: bool
) -> None:
    values, covariate, clusters = ([row[k] for row in rows] for k in range(3))
    found = at_equal(values, covariate, [int(c) for c in clusters] if clustered else None)
    if found.lo is None or found.hi is None:
        assert found.reason and found.hi is None
    else:
        assert found.point is not None and found.lo <= found.point <= found.hi


@pytest.mark.parametrize(
    ("values", "covariate", "clusters", "why"),
    [
        ([1, 2, 3, 4], [-1, 0, 1, 2], None, "fewer than 5 values"),
        ([1, 2, 3, 4, 5], [1] * 5, None, "constant"),
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], None, "one side"),
        ([1, 2, 3, 4, 5], [-1, -2, -3, -4, -5], None, "one side"),
        ([1, 2, 3, 4, 5], [-1, 0, 1, 2, 3], [0, 0, 0, 1, 2], "fewer than 5 clusters"),
    ],
)
def test_there_is_no_number_where_the_line_would_be_extended(
    values: list[float], covariate: list[float], clusters: list[int] | None, why: str
) -> None:
    found = at_equal(values, covariate, clusters)
    assert found.point is found.lo is None and why in (found.reason or "")


def test_equal_values_are_a_point_without_an_interval() -> None:
    found = at_equal([2.0] * 6, [-1.0, 0.0, 1.0, 2.0, 3.0, 4.0])
    assert (found.point, found.lo, found.hi) == (2.0, None, None) and "equal" in (
        found.reason or ""
    )


@pytest.mark.parametrize(
    ("values", "covariate"), [([1.0], []), ([float("nan")], [1.0]), ([1.0], [float("inf")])]
)
def test_what_cannot_be_fitted_raises(values: list[float], covariate: list[float]) -> None:
    with pytest.raises(ValueError):
        at_equal(values, covariate)
