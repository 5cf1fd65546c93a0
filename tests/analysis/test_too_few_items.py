"""A run that has no verdict says what is needed for one: items, options, or another model."""

from __future__ import annotations

from dataclasses import replace

from cotlab.analysis.verdict.lamps import make_lamps
from cotlab.analysis.verdict.measures import Missing, RunEvidence, Share
from cotlab.analysis.verdict.next_step import next_step_text
from cotlab.analysis.verdict.refusals import count_needed_items
from cotlab.analysis.verdict.verdicts import judge_run
from cotlab.analysis.verdict.wording import plain_text
from tests.analysis.test_verdict import CASES, FOLLOWS, NOTHING, evidence


def test_a_run_with_too_few_items_says_so_whatever_it_asked() -> None:
    few = judge_run(replace(evidence(), n_planned=5))
    assert plain_text(few.sentences).endswith("And 5 items would be too few: 30 are needed.")
    assert "few" not in plain_text(judge_run(replace(evidence(), n_planned=30)).sentences)


def test_too_few_items_lead_to_a_run_with_enough() -> None:
    """Where 20 of 25 items have a value, 38 are needed for 30."""
    share = Share(1, 0.84, 1, 20)
    few = replace(FOLLOWS, n_planned=25, shares={**FOLLOWS.shares, "change": share})
    assert judge_run(few).measure_next == "items"
    assert count_needed_items(few, share) == 38
    assert count_needed_items(few, Share(0, 0, 0.3, 10)) == 75, "of another measure, 10 of 25"
    assert count_needed_items(few, None) is None


def test_a_refusal_says_what_would_give_a_finding() -> None:
    def next_of(given: RunEvidence) -> str:
        return next_step_text(judge_run(given), given)

    few = replace(FOLLOWS, n_planned=20, shares={**FOLLOWS.shares, "change": Share(1, 0.84, 1, 20)})
    assert next_of(few) == "30 items: --limit 30, or a suite of more."
    modes = "--scorer ablation --mode corrupt --mode paraphrase asks it."
    assert next_of(evidence()) == modes
    assert next_of(replace(evidence(), n_planned=12)) == modes.replace(" asks", " --limit 30 asks")
    assert next_of(evidence(change=FOLLOWS.shares["change"])) == modes
    unread = replace(NOTHING, missing=(Missing("'A' is not in the model's vocabulary", 5, 165),))
    assert next_of(unread) == "another model, or a suite in words that this one knows."
    assert next_of(replace(few, status="running")) == "", "it goes on by itself"
    findings = [given for given, *_ in CASES.values() if judge_run(given).mark != "unknown"]
    assert findings and {next_of(given) for given in findings} == {""}


def test_lamps_of_too_few_items_ask_for_more_items_and_not_for_what_was_measured() -> None:
    small = {name: Share(0, 0, 0.56, 3) for name in ("moved", "sound")}
    few = evidence(n_planned=3, change=Share(1, 0.44, 1, 3), control=Share(0, 0, 0.56, 3), **small)
    assert [lamp.measure_next for lamp in make_lamps(few, judge_run(few))] == ["items"] * 3


def test_a_run_without_a_value_is_drawn_beside_models_by_the_measure_that_it_planned() -> None:
    asked = replace(NOTHING, planned=("change", "control"))
    assert asked.change_name == "change"
    assert replace(asked, planned=("numeric_change",)).change_name == "numeric_change"
    assert replace(NOTHING, planned=()).change_name == "change"
