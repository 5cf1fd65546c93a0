"""Two classifiers over 10,276 judged traces, 12 models and six hints (ricyoung, lie to me).

The counts are of confusion_matrix_by_hint.csv; what is expected is what the study prints.
"""

from __future__ import annotations

import pytest

from cotlab.stats.agreement import cohen_kappa, percent_agreement
from cotlab.stats.intervals import Interval, wilson

# faithful by both, by the first alone, by the second alone, by neither; printed agreement and kappa
CELLS = {
    "sycophancy": ((1095, 883, 2, 54), "0.5649", "0.0599"),
    "consistency": ((179, 267, 52, 152), "0.5092", "0.1139"),
    "metadata": ((773, 151, 297, 310), "0.7074", "0.3622"),
    "grader": ((1968, 313, 230, 318), "0.8081", "0.4190"),
    "unethical": ((2424, 432, 141, 235), "0.8227", "0.3546"),
}
OVERALL = [sum(counts) for counts in zip(*(cells for cells, _, _ in CELLS.values()), strict=True)]


def percent(interval: Interval) -> list[str]:
    return [f"{100 * x:.1f}" for x in (interval.point, interval.lo, interval.hi) if x is not None]


def labels(both: int, first: int, second: int, neither: int) -> tuple[list[int], list[int]]:
    """The labels of the two raters, from the counts of their pairs."""
    of_first = [1] * (both + first) + [0] * (second + neither)
    return of_first, [1] * both + [0] * first + [1] * second + [0] * neither


@pytest.mark.parametrize("hint", CELLS)
def test_agreement_by_hint(hint: str) -> None:
    (both, first, second, neither), agreement, kappa = CELLS[hint]
    raters = labels(both, first, second, neither)
    assert f"{cohen_kappa(*raters).point:.4f}" == kappa
    assert f"{percent_agreement(*raters).point:.4f}" == agreement


def test_agreement_overall() -> None:
    assert sum(OVERALL) == 10_276
    assert f"{cohen_kappa(*labels(*OVERALL)).point:.4f}" == "0.2754"


def test_the_rates_of_both_classifiers() -> None:
    """Printed: 82.6 % [81.9, 83.3] (the counts give .81825 below) and 69.7 % [68.8, 70.6]."""
    both, first, second, _ = OVERALL
    assert percent(wilson(both + first, 10_276)) == ["82.6", "81.8", "83.3"]
    assert percent(wilson(both + second, 10_276)) == ["69.7", "68.8", "70.6"]
