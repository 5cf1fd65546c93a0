"""Sound steps are no praise of a chain that is not read."""

from __future__ import annotations

import pytest

from cotlab.analysis.compare import PairedRow
from cotlab.analysis.verdict.measures import MeasureName
from cotlab.analysis.verdict.pair_differences import HeadlineDifference
from cotlab.stats.intervals import Interval
from cotlab.ui.pair.head import finding_text


def difference(measure: MeasureName, point: float) -> HeadlineDifference:
    """Return a difference of one measure beyond chance, other less base."""
    lo, hi = sorted((point, point / 2))
    return HeadlineDifference(
        measure,
        PairedRow(
            *(measure, {}, None, 60, 60, {}, {}),
            *(0.5, 0.5 + point, point, lo, hi, 0.95, "Newcombe", None, None),
            *(0.001, "McNemar", None, 0.001, None, None, ()),
        ),
        "",
        Interval(0.5, 0.4, 0.6, 60, "Wilson"),
        Interval(0.5 + point, 0, 1, 60, "Wilson"),
        Interval(point, lo, hi, 60, "Newcombe"),
        "tested",
    )


UNREAD = "no evidence for a chain that is not read"


@pytest.mark.parametrize(
    ("measure", "point", "unread", "finding"),
    [
        ("sound", 0.4, (False, True), UNREAD),  # the other is better, and not read
        ("sound", -0.4, (True, False), UNREAD),
        ("sound", 0.4, (True, False), "better"),
        ("sound", 0.4, (False, False), "better"),
        ("change", 0.4, (False, True), "better"),
    ],
)
def test_sound_steps_of_an_unread_chain_are_no_better(
    measure: MeasureName, point: float, unread: tuple[bool, bool], finding: str
) -> None:
    assert finding_text(difference(measure, point), is_split=False, unread=unread) == finding
