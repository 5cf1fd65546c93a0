"""Two classifiers over 10,276 judged traces, 12 models and six hints (ricyoung, lie to me).

The counts are of confusion_matrix_by_hint.csv; what is expected is what the study prints.
"""

from __future__ import annotations

import pytest

from cotlab.stats.agreement import cohen_kappa_table, percent_agreement_table
from cotlab.stats.intervals import Interval, wilson
from cotlab.stats.paired_rates import mcnemar_counts

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


@pytest.mark.parametrize("hint", CELLS)
def test_agreement_by_hint(hint: str) -> None:
    (both, first, second, neither), agreement, kappa = CELLS[hint]
    square = [[both, first], [second, neither]]
    assert f"{cohen_kappa_table(square).point:.4f}" == kappa
    assert f"{percent_agreement_table(square).point:.4f}" == agreement


def test_agreement_overall() -> None:
    """Printed: kappa .2754, and chi-squared 633.3 for McNemar without continuity correction."""
    both, first, second, neither = OVERALL
    assert sum(OVERALL) == 10_276
    assert f"{cohen_kappa_table([[both, first], [second, neither]]).point:.4f}" == "0.2754"
    assert f"{mcnemar_counts(*OVERALL, exact=False).statistic:.1f}" == "633.3"


def test_the_rates_of_both_classifiers() -> None:
    """Printed: 82.6 % [81.9, 83.3] (the counts give .81825 below) and 69.7 % [68.8, 70.6]."""
    both, first, second, _ = OVERALL
    assert percent(wilson(both + first, 10_276)) == ["82.6", "81.8", "83.3"]
    assert percent(wilson(both + second, 10_276)) == ["69.7", "68.8", "70.6"]
