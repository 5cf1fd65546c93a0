"""Intervals of one item over donors and draws: cases by hand, and an organism's own scores."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import cotlab
from cotlab.metrics.mediation.spread import (
    ESTIMATORS,
    PatchDrop,
    item_spreads,
    single_draw_cmis,
    spread_interval,
)

CONTROL = [PatchDrop(donor, value) for donor, value in (("a", 0.0), ("b", 1.0)) for _ in range(3)]
"""Two donors that differ and whose three draws do not."""


def test_donors_are_drawn_before_draws() -> None:
    """Both donors are a in a quarter of the resamples and b in a quarter: the mean control is 0, .5
    or 1.

    Six rows drawn one by one would all be a's in 1 of 64 only, fewer than 2.5 %, and the bounds
    would be 1/6 and 5/6.
    """
    found = spread_interval("drop_control", [], CONTROL, control="other", seed=1)
    assert (found.point, found.lo, found.hi, found.n) == (0.5, 0.0, 1.0, 6)
    assert found.method == "bootstrap over donors, then draws (percentile, 2000 resamples)"


def test_one_deterministic_chain_drop_stays_and_only_the_control_is_drawn() -> None:
    """CMI at controls 0, .5 and 1 with a chain drop of 1: 1, .5 / 1.5 and 0."""
    found = spread_interval("cmi", [PatchDrop("", 1.0)], CONTROL, control="other", seed=1)
    assert (found.point, found.lo, found.hi, found.n) == (pytest.approx(1 / 3), 0.0, 1.0, 7)
    assert found.method.endswith("; the chain's one drop is deterministic")
    told = spread_interval(
        "share", [PatchDrop("", -1.0)], CONTROL, control="other", seed=1
    )  # -1 / (1 + 0), -1 / 1.5, -1 / (1 + 1)
    assert (told.point, told.lo, told.hi) == (pytest.approx(-2 / 3), -1.0, -0.5)


def test_a_donor_brings_its_chain_and_its_control_together() -> None:
    """Donor a drops 2 and 2, b 1 and 1: each resample has as much of the one as of the other, so
    the share is always .5."""
    cots = [PatchDrop("a", 2.0), PatchDrop("b", 1.0)]
    controls = [PatchDrop(d.donor, d.value) for d in cots for _ in range(2)]
    found = spread_interval("share", cots, controls, control="other", seed=1)
    assert (found.point, found.lo, found.hi, found.reason) == (
        0.5,
        None,
        None,
        "all resamples give the same value",
    )


def test_draws_without_a_donor_are_drawn_by_themselves() -> None:
    found = spread_interval(
        "drop_cot", [PatchDrop("", float(k)) for k in range(8)], [], control="other", seed=1
    )
    assert (
        found.point == 3.5
        and found.lo is not None
        and 1.5 < found.lo < 3
        and found.hi is not None
        and 4 < found.hi < 5.5
    )
    assert (
        "over draws " in found.method
    )  # sd of the mean is sqrt(5.25 / 8) = .81, so about 1.9 and 5.1


@pytest.mark.parametrize(
    ("metric", "cots", "controls", "point", "reason"),
    [
        ("drop_cot", [PatchDrop("", 2.0)], CONTROL, 2.0, "1 drop: an interval needs 5"),
        (
            "drop_cot",
            [PatchDrop(d, 2.0) for d in "abcd"],
            CONTROL,
            2.0,
            "4 drops: an interval needs 5",
        ),
        ("mass_lost", [PatchDrop("", 0.0)], CONTROL, 0.0, "1 drop: an interval needs 5"),
        (
            "drop_control",
            [],
            [PatchDrop("a", float(k)) for k in range(8)],
            3.5,
            "one donor has no spread",
        ),
        (
            "cmi",
            [PatchDrop("", 1.0)],
            [PatchDrop(d, 0.0) for d in "aabbcc"],
            1.0,
            "all resamples give the same value",
        ),
        ("cmi", [PatchDrop("", 0.001)], [PatchDrop(d, 0.001) for d in "aabbcc"], None, "no signal"),
        ("cmi", [PatchDrop("", 1.0)], [], None, "no drop with the control patched"),
        ("cmi", [], CONTROL, None, "no drop with the chain patched"),
        ("cmi", [PatchDrop("", None)], CONTROL, None, "1 of 7 drops are missing"),
        (
            "drop_control",
            [PatchDrop("", None)],
            CONTROL,
            0.5,
            None,
        ),  # the control does not need the chain's drop
        (
            "cmi",
            [PatchDrop("", 0.0)],
            CONTROL,
            0.0,
            "resamples have no signal",
        ),  # a quarter of them hold a's zeros only
    ],
)
def test_what_has_no_interval_says_why(
    metric: str,
    cots: list[PatchDrop],
    controls: list[PatchDrop],
    point: float | None,
    reason: str | None,
) -> None:
    found = spread_interval(metric, cots, controls, control="other", seed=1)
    assert found.point == point
    if reason is None:
        assert found.lo is not None and found.reason is None
    else:
        assert (found.lo, found.hi) == (None, None) and reason in (found.reason or "")


def test_the_seed_the_item_and_the_place_decide() -> None:
    rows = [
        {
            "part": part,
            "source": "filler",
            "control": "other",
            "span": span,
            "keep": "",
            "donor": donor,
            "value": value,
        }
        for span in ("0", "all")
        for part, donor, value in (
            ("cot", "", 1.0),
            *(("control", d, k * k / 99) for k, d in enumerate("abcdabcd")),
        )
    ]
    one, again, reverse = (
        list(item_spreads(some, seed=5, item_id="i")) for some in (rows, rows, rows[::-1])
    )
    assert one == again and sorted(map(str, one)) == sorted(map(str, reverse))
    by = {(s.span, s.metric): s.interval for s in one}
    assert set(by) == {(span, metric) for span in ("0", "all") for metric in ESTIMATORS}
    assert by["0", "drop_control"].lo != by["all", "drop_control"].lo
    assert by["0", "drop_control"].point == by["all", "drop_control"].point
    other = {(s.span, s.metric): s.interval for s in item_spreads(rows, seed=6, item_id="i")}
    assert other["0", "drop_control"] != by["0", "drop_control"]


def test_single_draws_are_paired_by_number_or_by_donor() -> None:
    def row(
        part: str,
        donor: str,
        sample: int,
        value: float | None,
        keep: str = "",
        span: str = "all",
        control: str = "other",
    ) -> dict[str, Any]:
        return {
            "part": part,
            "source": "s",
            "span": span,
            "keep": keep,
            "donor": donor,
            "sample": sample,
            "value": value,
            "control": control,
        }

    one = [row("cot", "", 0, 3.0), row("cot", "", 0, 9.0, span="0")]
    controls = [
        row("control", "a", 0, 1.0),
        row("control", "a", 1, 5.0),
        row("control", "b", 2, None),
    ]
    assert single_draw_cmis([*one, *controls]) == [
        0.5,
        0.0,
    ]  # (3 − 1) / (3 + 1), and a control that drops more
    of_donors = [
        row("cot", "a", 0, 3.0),
        row("cot", "b", 0, 1.0),
        row("control", "a", 0, 1.0),
        row("control", "b", 1, 0.0),
    ]
    assert single_draw_cmis(of_donors) == [0.5, 1.0]
    kept = [
        row(part, "", n, v, "0.4")
        for part, n, v in (
            ("kept", 0, 3.0),
            ("kept", 1, 0.0),
            ("kept_control", 1, 0.001),
            ("kept_control", 0, 2.0),
        )
    ]
    assert single_draw_cmis([*one, *kept], "0.4") == [
        pytest.approx(0.2)
    ]  # the second has no signal
    assert single_draw_cmis(kept) == single_draw_cmis([], "0.8") == []
    total = [
        row("kept", "", 0, 1.0, "0.4", control="total"),
        row("kept", "", 1, 0.0, "0.4", control="total"),
        row("control", "", 0, 2.0, control="total"),
    ]
    share = (1 - math.exp(-1)) / (1 - math.exp(-2))
    assert single_draw_cmis(total, "0.4") == [pytest.approx(share), 0.0]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("control", "filler_counts", "interchange_counts"),
    [("other", (9, 4), (12, 4)), ("total", (2, 0), (8, 4))],
)
def test_on_an_organism_each_point_is_the_stored_score(
    control: str,
    filler_counts: tuple[int, int],
    interchange_counts: tuple[int, int],
    tmp_path: Path,
) -> None:
    """Doses in between have drops on both sides; every score of a span has its spread, with the
    same value."""
    result = cotlab.run_suite(
        "wordproblems",
        store=tmp_path,
        model="r50",
        scorer=["mediation"],
        source=["filler", "interchange"],
        control=control,
        limit=2,
    )
    scores = result.scores.assign(told=result.scores["facet"].map(json.loads))
    raw = scores[scores["metric"] == "patch_drop"]
    columns = ("part", "source", "control", "span", "keep", "donor")
    compared = bounded = 0
    for item, own in raw.groupby("item_id"):
        rows = [
            {**{c: f.get(c, "") for c in columns}, "value": v}
            for f, v in zip(own["told"], own["value"], strict=True)
        ]
        stored = {
            (
                r.metric,
                r.told["source"],
                r.told["control"],
                r.told["span"],
                r.told.get("keep", ""),
            ): r.value
            for r in scores[
                (scores["item_id"] == item) & scores["metric"].isin({*ESTIMATORS, "cmi_kept"})
            ].itertuples()
        }
        found = {
            (s.metric, s.source, s.control, s.span, s.keep): s
            for s in item_spreads(rows, seed=42, item_id=str(item))
        }
        assert set(found) == set(stored)
        for place, value in stored.items():
            told = found[place].interval
            assert (told.point is None) == (value != value)
            if told.point is not None:
                assert told.point == pytest.approx(value, abs=1e-12)
                compared += 1
                if told.lo is not None and told.hi is not None:
                    assert told.lo <= told.point <= told.hi
                    bounded += 1
                else:
                    assert told.reason
        alone = found["cmi", "filler", control, "all", ""]
        assert (alone.interval.n, alone.n_donors) == filler_counts
        both = found["cmi", "interchange", control, "all", ""]
        assert (both.interval.n, both.n_donors) == interchange_counts
    assert compared > 100 and bounded > 20
