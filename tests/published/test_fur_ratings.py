"""Human ratings of how much one step supports its answer, and what unlearning the step does to it
(FUR)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cotlab.stats.correlation import pearson
from cotlab.suites.importers.tables import read_ratings, read_table

FILE = (
    Path(__file__).resolve().parents[3]
    / "shared"
    / "data"
    / "fur_ratings"
    / "reasoning-chain-study.csv"
)
pytestmark = pytest.mark.skipif(
    not FILE.is_file(), reason="no ratings beside the repository (../shared/data/fur_ratings)"
)


def rated() -> list[dict[str, Any]]:
    """Each rated step's rating (its place on the scale), drop and flip."""
    return [
        item.meta["step_ratings"][0]
        for items in read_ratings(read_table(FILE)).values()
        for item in items
    ]


def ratings() -> list[tuple[float, int]]:
    """Of each rated step: by how much the answer's probability drops, and the rating's place on the
    scale."""
    return [(row["drop"], row["rating"]) for row in rated()]


def test_the_correlation_that_was_published_leaves_out_every_drop_that_is_none() -> None:
    kept = [(drop, rating) for drop, rating in ratings() if drop > 0]
    found = pearson(*zip(*kept, strict=True))
    assert (found.r.n, f"{found.r.point:.3f}", f"{found.p:.3f}") == (81, "0.267", "0.016")
    assert found.r.lo is not None and found.r.lo > 0


def test_the_ratings_that_are_read() -> None:
    """Counted in the file: 33, 16, 13, 14, 24 ratings from full support down; 73 answers flip."""
    found = rated()
    assert [sum(row["rating"] == place for row in found) for place in (4, 3, 2, 1, 0)] == [
        33,
        16,
        13,
        14,
        24,
    ]
    assert sum(row["flip"] for row in found) == 73


def test_over_all_ratings_the_interval_holds_zero() -> None:
    found = pearson(*zip(*ratings(), strict=True))
    assert (found.r.n, f"{found.r.point:.3f}", f"{found.p:.3f}") == (100, "0.151", "0.134")
    assert found.r.lo is not None and found.r.lo < 0 < found.r.hi  # type: ignore[operator]
