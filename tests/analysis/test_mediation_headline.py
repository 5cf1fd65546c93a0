"""CMI as the headline of a page: refused where its control loses more than the chain."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import cotlab
from cotlab.analysis.tables.mediation import (
    Setting,
    all_layer_rows,
    headline_rows,
    item_headline_reason,
    with_facets,
)
from cotlab.suites.wordproblems import make_suite


def estimates(control: str, cmi: float | None, cot: float, control_drop: float) -> pd.DataFrame:
    rows = [("cmi", cmi), ("drop_cot", cot), ("drop_control", control_drop), ("mass_lost", 0.9)]
    return pd.DataFrame(
        [
            {
                "metric": metric,
                "control": control,
                "point": point,
                "lo": point,
                "hi": point,
                "n": 5,
                "reason": None if point is not None else "no signal",
            }
            for metric, point in rows
        ]
    )


def cmi_row(table: pd.DataFrame) -> dict[str, object]:
    (row,) = table[table["metric"] == "cmi"].to_dict("records")
    return {str(name): value for name, value in row.items()}


def test_a_control_that_loses_more_than_the_chain_leaves_no_cmi_and_says_why() -> None:
    before = estimates("other", 0.0, 3.05, 13.2)
    after = headline_rows(before)
    row = cmi_row(after)
    assert pd.isna(row["point"]) and pd.isna(row["lo"]) and row["n"] == 0
    assert "13.2 nats" in str(row["reason"]) and "3.05" in str(row["reason"])
    pd.testing.assert_frame_equal(
        after[after["metric"] != "cmi"], before[before["metric"] != "cmi"], check_dtype=False
    )
    assert cmi_row(before)["point"] == 0.0  # what was given is as it was


@pytest.mark.parametrize(
    ("control", "cmi", "cot", "control_drop"),
    [
        ("other", 0.5, 3.0, 1.0),
        ("other", 0.0, 1.0, 1.0),
        ("total", 0.02, 0.1, 3.0),
    ],
)
def test_any_other_cmi_stays(control: str, cmi: float, cot: float, control_drop: float) -> None:
    assert cmi_row(headline_rows(estimates(control, cmi, cot, control_drop)))["point"] == cmi


def test_the_headline_of_a_run_on_a_model_that_bypasses_its_chain(tmp_path: Path) -> None:
    result = cotlab.run_suite(
        make_suite(6, seed=3, hint_share=0.0),
        store=tmp_path,
        model="r0",
        scorer=["mediation"],
        control="other",
        layers=["all"],
        subsets=1,
    )
    means = all_layer_rows(with_facets(result.estimates))
    setting = Setting("reference", "prefix", "filler", "other")
    row = cmi_row(headline_rows(setting.select_rows(means)))
    assert pd.isna(row["point"]) and "the control loses more" in str(row["reason"])
    assert cmi_row(setting.select_rows(means))["point"] == 0.0  # the estimate itself is stored
    scores = all_layer_rows(with_facets(result.scores))
    of_item = scores[scores["item_id"] == scores["item_id"].iloc[0]]
    assert "the control loses more" in item_headline_reason(of_item, setting)
    other = setting._replace(control="total")
    assert item_headline_reason(of_item, other) == ""
