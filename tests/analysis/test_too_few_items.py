"""A run with too few items says so, and how many a run needs that has a verdict."""

from __future__ import annotations

from dataclasses import replace

from cotlab.analysis.verdict.measures import Share
from cotlab.analysis.verdict.refusals import count_needed_items
from cotlab.analysis.verdict.verdicts import judge_run
from cotlab.analysis.verdict.wording import plain_text
from tests.analysis.test_verdict import FOLLOWS, evidence


def test_a_run_with_too_few_items_says_so_whatever_it_asked() -> None:
    few = judge_run(replace(evidence(), n_planned=5))
    assert plain_text(few.sentences).endswith("And 5 items would be too few: 30 are needed.")
    assert "few" not in plain_text(judge_run(replace(evidence(), n_planned=30)).sentences)


def test_too_few_items_lead_to_a_run_with_enough() -> None:
    """Where 20 of 25 items have a value, 38 are needed for 30."""
    share = Share(1, 0.84, 1, 20)
    few = replace(FOLLOWS, n_planned=25, shares={**FOLLOWS.shares, "change": share})
    assert judge_run(few).measure_next == "items"
    assert count_needed_items(few) == 38
    assert count_needed_items(replace(few, shares={})) is None
