"""The lamps beside the verdict on a chain that is not read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cotlab.analysis.verdict.lamps import make_lamps
from cotlab.analysis.verdict.measures import RunEvidence
from cotlab.analysis.verdict.verdicts import judge_run
from tests.analysis.test_verdict import ALL_300, BYPASS, FOLLOWS, HINT


@pytest.mark.parametrize(
    ("given", "marks"),
    [
        (BYPASS, ["no", "neutral", "neutral"]),
        (FOLLOWS, ["yes", "unknown", "unknown"]),
        (replace(BYPASS, shares={**BYPASS.shares, "change": ALL_300}), ["yes", "neutral", "yes"]),
        (HINT, ["part", "no", "no"]),
    ],
)
def test_no_lamp_is_blue_beside_a_chain_that_is_not_read(
    given: RunEvidence, marks: list[str]
) -> None:
    lamps = make_lamps(given, judge_run(given))
    assert [lamp.mark for lamp in lamps] == marks
    for lamp in lamps:
        said = "no evidence for a chain that is not read" in lamp.what
        assert (said or "nothing to admit" in lamp.what) == (lamp.mark == "neutral")
