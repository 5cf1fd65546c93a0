"""Human ratings of how much one step supports its answer, and what unlearning the step does to it (FUR)."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from cotlab.stats.correlation import pearson

FILE = Path(__file__).resolve().parents[3] / "shared" / "data" / "fur_ratings" / "reasoning-chain-study.csv"
pytestmark = pytest.mark.skipif(not FILE.is_file(), reason="no ratings beside the repository (../shared/data/fur_ratings)")
SCALE = (
    "Not Supportive At All", "Slightly Supportive", "Moderately Supportive", "Mostly Supportive", "Fully Supportive",
)  # fmt: skip


def ratings() -> list[tuple[float, int]]:
    """Of each rated step: by how much the answer's probability drops, and the rating's place on the scale."""
    with FILE.open(encoding="utf-8-sig", newline="") as stream:
        found = list(csv.DictReader(stream))
    assert all(0 <= int(row["target_step_idx"]) < len(row["segmented_cot"].split("||")) for row in found)
    return [(float(row["dp"]), SCALE.index(row["rating"])) for row in found]


def test_the_correlation_that_was_published_leaves_out_every_drop_that_is_none() -> None:
    kept = [(drop, rating) for drop, rating in ratings() if drop > 0]
    found = pearson(*zip(*kept, strict=True))
    assert (found.r.n, f"{found.r.point:.3f}", f"{found.p:.3f}") == (81, "0.267", "0.016")
    assert found.r.lo is not None and found.r.lo > 0


def test_over_all_ratings_the_interval_holds_zero() -> None:
    found = pearson(*zip(*ratings(), strict=True))
    assert (found.r.n, f"{found.r.point:.3f}", f"{found.p:.3f}") == (100, "0.151", "0.134")
    assert found.r.lo is not None and found.r.lo < 0 < found.r.hi  # type: ignore[operator]
