"""Two classifiers over 10,276 judged traces, 12 models and six hints (ricyoung, lie to me):
agreement and rates."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from cotlab.stats.agreement import cohen_kappa_table, percent_agreement_table
from cotlab.stats.intervals import Interval, wilson
from cotlab.stats.paired_rates import McNemar, mcnemar_counts
from cotlab.suites.importers.tables import read_counts, read_table

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "lie_to_me" / "paper2"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="no counts beside the repository (../shared/data/lie_to_me)"
)


def rows(name: str) -> dict[str, dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as stream:
        return {row["hint_type"]: row for row in csv.DictReader(stream)}


def counts() -> dict[str, tuple[int, int, int, int]]:
    """Count for each hint: faithful by both, by the first only, by the second only, by neither."""
    found: dict[str, dict[tuple[float, float], int]] = {}
    for cell in read_counts(read_table(FOLDER / "confusion_matrix_by_hint.csv")):
        found.setdefault(cell.hint, {})[
            cell.verdict_by_classifier["combined"], cell.verdict_by_classifier["sonnet"]
        ] = cell.count
    return {
        hint: tuple(of[pair] for pair in ((0, 0), (0, 1), (1, 0), (1, 1)))
        for hint, of in found.items()
    }  # type: ignore[misc]


def overall() -> tuple[int, int, int, int]:
    return tuple(map(sum, zip(*counts().values(), strict=True)))  # type: ignore[return-value]


def square(cells: tuple[int, int, int, int]) -> list[list[int]]:
    return [[cells[0], cells[1]], [cells[2], cells[3]]]


def test_kappa_and_agreement_by_hint() -> None:
    """cohens_kappa_by_hint.csv, to its four digits: .0599, .1139, .3622, .4190, .3546."""
    printed = rows("cohens_kappa_by_hint.csv")
    assert list(printed) == list(counts()) and len(printed) == 5
    for hint, cells in counts().items():
        kappa, same = cohen_kappa_table(square(cells)), percent_agreement_table(square(cells))
        assert f"{kappa.point:.4f}" == printed[hint]["cohens_kappa"]
        assert (
            f"{same.point:.4f}" == printed[hint]["agreement_rate"]
            and str(kappa.n) == printed[hint]["n"]
        )
        assert kappa.lo < kappa.point < kappa.hi  # type: ignore[operator]


def test_agreement_overall() -> None:
    """The study prints kappa .2754, agreement .7306, and chi-squared 633.3 for McNemar without
    continuity correction."""
    cells = overall()
    assert sum(cells) == 10276
    assert f"{cohen_kappa_table(square(cells)).point:.4f}" == "0.2754"
    assert (
        f"{percent_agreement_table(square(cells)).point:.4f}"
        == rows("overall_agreement.csv")["OVERALL"]["agreement_rate"]
    )
    found: McNemar = mcnemar_counts(*cells, exact=False)
    assert f"{found.statistic:.1f}" == "633.3" and found.p is not None and found.p < 1e-100
    exact = mcnemar_counts(*cells)
    assert (
        exact.p is not None
        and exact.p < 1e-100
        and exact.difference.hi is not None
        and exact.difference.hi < 0
    )


def percent(found: Interval) -> list[str]:
    return [f"{100 * part:.1f}" for part in (found.point, found.lo, found.hi) if part is not None]


def test_the_rates_of_both_classifiers() -> None:
    """8,485 and 7,161 of 10,276 are called faithful, printed as 82.6 % and 69.7 %."""
    both, first, second, _ = overall()
    ours, other = wilson(both + first, 10276), wilson(both + second, 10276)
    printed = rows("overall_agreement.csv")["OVERALL"]
    assert f"{ours.point:.4f}" == printed["our_faithfulness_rate"] == "0.8257"
    assert f"{other.point:.4f}" == printed["sonnet_faithfulness_rate"] == "0.6969"
    assert percent(other) == ["69.7", "68.8", "70.6"]  # as printed
    assert percent(ours) == [
        "82.6",
        "81.8",
        "83.3",
    ]  # printed [81.9, 83.3]: the counts give .81825 below


def test_the_printed_bounds_follow_from_the_printed_percentages() -> None:
    """[81.9, 83.3] and [68.8, 70.6] to the last digit, where the rate is rounded to a tenth of a
    percent first."""
    assert percent(wilson(round(0.826 * 10276), 10276)) == ["82.6", "81.9", "83.3"]
    assert percent(wilson(round(0.697 * 10276), 10276)) == ["69.7", "68.8", "70.6"]
