"""How often intervals hold the truth: exact sums for Wilson, seeded draws for Student's t."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from cotlab.stats.intervals import t_interval, wilson

RATES = np.round(np.arange(0.10, 0.9001, 0.01), 2)


def coverage(n: int) -> NDArray[np.float64]:
    """Probability that Wilson's 95 % interval of n trials holds p, for each p of RATES: a sum over
    all n + 1 outcomes."""
    found = [wilson(k, n) for k in range(n + 1)]
    lo, hi = (np.array([[getattr(one, side)] for one in found]) for side in ("lo", "hi"))
    weights = binom.pmf(np.arange(n + 1)[:, None], n, RATES[None, :])
    return np.asarray((weights * ((lo <= RATES) & (hi >= RATES))).sum(axis=0))


@pytest.mark.parametrize("n", [51, 60, 75, 100, 150, 300])
def test_wilson_from_51_items_on(n: int) -> None:
    held = coverage(n)
    assert held.min() >= 0.93 and held.max() <= 0.97


def test_wilson_at_50_items_holds_the_band_but_for_one_rate() -> None:
    """At p = .1 (and .9) an interval holds p for 1 to 9 yes of 50: P(1 <= X <= 9) = .97031, a hair
    above the band."""
    held = dict(zip(RATES.tolist(), coverage(50).tolist(), strict=True))
    above = {p: share for p, share in held.items() if not 0.93 <= share <= 0.97}
    assert above == {0.1: pytest.approx(0.97031, abs=1e-5), 0.9: pytest.approx(0.97031, abs=1e-5)}
    assert above[0.1] == pytest.approx(binom.cdf(9, 50, 0.1) - binom.cdf(0, 50, 0.1))


@pytest.mark.parametrize("n", [10, 20])
def test_wilson_of_few_items(n: int) -> None:
    held = coverage(n)
    assert held.min() >= 0.91 and 0.94 <= held.mean() <= 0.965


@pytest.mark.soak
@pytest.mark.parametrize("n", [5, 12, 40])
def test_t_on_normal_values(n: int) -> None:
    """4,000 samples: the share has a standard error of .0034 about .95."""
    rng = np.random.default_rng(20 + n)
    held = 0
    for sample in rng.normal(3.0, 2.0, (4000, n)):
        found = t_interval(sample.tolist())
        assert found.lo is not None and found.hi is not None
        held += found.lo <= 3.0 <= found.hi
    assert 0.94 <= held / 4000 <= 0.96
