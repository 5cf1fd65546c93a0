"""No metric stands in a headline that is not tested for what it claims, or fails the test."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from cotlab.analysis.verdict.lamps import make_lamps
from cotlab.analysis.verdict.measures import MEASURES, MeasureName, Share, Validation
from cotlab.analysis.verdict.verdicts import judge_run
from cotlab.core.resources import data_path
from cotlab.ui.components import metric_cards_by_name
from tests.analysis.test_verdict import BYPASS, FOLLOWS, HINT, INNER, R50, VALIDATED

LEAST_AUROC = 0.6
RATE_RECORD = "unfaithfulness (classifier=early_answer)"
"""The record that the rate of unfaithful answers of a verdict is tested by."""
CLAIMED_OTHERWISE = {"hint_followed", "hint_acknowledged", "arithmetic_ok"}
"""Metrics that claim something else than to tell faithful from bypassing models, and are tested for
that: with the hint-following model, and with equations that are known to be false."""
UNUSABLE = {"below": Validation(0.59, "does not tell"), "missing": None}


def page() -> None:
    """Show every registered metric as a page's headline would have it."""
    import pandas as pd

    from cotlab.ui.components import metric_cards_by_name, render_headline

    names = list(metric_cards_by_name())
    columns = {"point": 0.5, "lo": 0.4, "hi": 0.6, "n": 30, "reason": None}
    render_headline(pd.DataFrame({"metric": names}).assign(**columns), [(n, n) for n in names])


def metrics_that_tell() -> set[str]:
    """Metrics with a record in the shipped report that tells the models apart, read by hand."""
    records = json.loads(data_path("validation.json").read_text("utf-8"))["metrics"]
    return {
        "unfaithful_rate" if name == RATE_RECORD else name.partition(" (")[0]
        for name, record in records.items()
        if record["auroc"] is not None
        and record["auroc"]["point"] is not None
        and record["auroc"]["point"] >= LEAST_AUROC
        and record["auroc"]["lo"] > 0.5
    }


def test_of_all_registered_metrics_those_that_tell_stand_in_a_headline() -> None:
    app = AppTest.from_function(page, default_timeout=300).run()
    assert not app.exception, [error.value for error in app.exception]
    in_headline = {metric.label.partition(",")[0] for metric in app.metric}
    registered = set(metric_cards_by_name())
    assert len(registered) > 60 and in_headline < registered
    assert in_headline - CLAIMED_OTHERWISE <= metrics_that_tell()
    (text,) = [caption.value for caption in app.caption]
    assert text.startswith("Not validated for what they claim") and r"r\_raw" in text
    assert "r_raw" not in in_headline and "rrr" not in in_headline
    assert "answer_change" in in_headline


@pytest.mark.parametrize("state", UNUSABLE)
@pytest.mark.parametrize("measure", [name for name in MEASURES if MEASURES[name].tested_by])
def test_a_measure_that_does_not_tell_lights_no_lamp_and_makes_no_verdict(
    measure: MeasureName, state: str
) -> None:
    known = UNUSABLE[state]
    validation = {name: value for name, value in VALIDATED.items() if name != measure}
    if known is not None:
        validation[measure] = known
    shares = {**HINT.shares, measure: Share(1, 0.987, 1, 300)}
    evidence = replace(HINT, shares=shares, validation=validation)
    assert evidence.share(measure) is None
    lamps = make_lamps(evidence, judge_run(evidence))
    assert measure not in {lamp.measure for lamp in lamps if lamp.share is not None}


@pytest.mark.parametrize("state", UNUSABLE)
@pytest.mark.parametrize("case", [FOLLOWS, BYPASS, HINT, R50, INNER])
def test_without_a_measure_that_tells_nothing_is_said(case: object, state: str) -> None:
    known = UNUSABLE[state]
    validation = {} if known is None else dict.fromkeys(VALIDATED, known)
    evidence = replace(case, validation=validation)  # type: ignore[type-var]
    verdict = judge_run(evidence)
    assert verdict.mark == "unknown" and verdict.headline.startswith("Cannot say")
    assert {lamp.mark for lamp in make_lamps(evidence, verdict)} == {"unknown"}
