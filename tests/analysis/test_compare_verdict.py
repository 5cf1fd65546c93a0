"""What differs between two runs: the sentence, its tested metrics, and what became of each item."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cotlab.analysis.compare import compare_runs
from cotlab.analysis.compare_outcomes import (
    count_outcomes,
    default_measure,
    filter_item_pairs,
    list_item_pairs,
)
from cotlab.analysis.compare_verdict import (
    PairVerdict,
    judge_pair,
    measure_values,
    pair_sentences,
)
from cotlab.analysis.verdict.measures import Validation
from cotlab.analysis.verdict.pair_differences import difference_text, headline_differences
from cotlab.core.provider import Finding
from cotlab.core.types import Score
from cotlab.stats.paired_rates import mcnemar
from cotlab.store import write
from cotlab.store.database import Store
from cotlab.store.server_checks import ServerCheck, add_server_check
from tests.support.stores import MODEL, add_run
from tests.support.stores.judged import add_measured_run, numbered_suite

N = 40
RIGHT = {
    "left": [1.0] * 30 + [0.0] * 9 + [None],
    "right": [1.0] * 18 + [0.0] * 12 + [1.0] * 2 + [0.0] * 7 + [1.0],
    "tied": [0.5] * N,
}
"""Of the first two 18 both right, 12 regressed, 2 improved, 7 both wrong, 1 that cannot be told."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("pair"))
    values = {"change": 1.0, "control": 0.0, "moved": 0.0}
    add_measured_run(store, "follows", values)
    add_measured_run(store, "same", values)
    add_measured_run(store, "bypass", {**values, "change": 0.0})
    add_measured_run(store, "change-only", {"change": 1.0, "control": 0.0})
    add_measured_run(store, "hints-only", {"moved": 0.0})
    suite = numbered_suite(12, "few")
    for run, change in (("few-a", 1.0), ("few-b", 0.0)):
        add_measured_run(store, run, {"change": change}, suite=suite)
    suite = numbered_suite(N, "answers")
    for run, rights in RIGHT.items():
        ended = [
            write.EndedItem("ablation", 1, "p", item.id, tuple(answer_scores(item.id, value)))
            for item, value in zip(suite.items, rights, strict=True)
        ]
        add_run(store, run, suite, ended, scorers=("ablation",))
    return store


def answer_scores(item_id: str, value: float | None) -> list[Score]:
    """One judged reply, or two that disagree."""
    if value is None:
        reason = "no answer can be extracted"
        return [Score("baseline_correct", item_id, None, status="undefined", reason=reason)]
    values = [1.0, 0.0] if value == 0.5 else [value]
    return [Score("baseline_correct", item_id, v, sample=k) for k, v in enumerate(values)]


def judge(store: Store, base: str, other: str) -> PairVerdict:
    return judge_pair(store, base, other, (base, other))


def test_the_sentence_names_the_tested_metric_in_which_the_runs_differ(store: Store) -> None:
    result = judge(store, "follows", "bypass")
    assert result.headline == (
        "bypass changes its answer for 0 % of the steps that state something else, follows for"
        " 100 %."
    )
    (change,) = [entry for entry in result.differences if entry.measure == "change"]
    want = mcnemar([1] * 40, [0] * 40)
    assert change.difference == want.difference and change.difference.lo is not None
    assert change.is_worse is True and change.row.n == 40
    assert difference_text(change.difference) in result.detail and "n = 40" in result.detail
    assert judge(store, "bypass", "follows").differences[0].is_worse is False
    assert default_measure(result.differences) == "change"


def test_runs_that_do_not_differ_are_not_said_to(store: Store) -> None:
    result = judge(store, "follows", "same")
    assert result.headline == "same and follows do not differ beyond chance in any tested metric."
    assert [entry.is_worse for entry in result.differences] == [None, None]


def test_what_one_run_lacks_is_named_with_that_run(store: Store) -> None:
    assert judge(store, "follows", "bypass").lacking == {}
    lacking = {"moved": "change-only"}
    assert judge(store, "follows", "change-only").lacking == lacking
    assert judge(store, "change-only", "follows").lacking == lacking
    assert not judge(store, "follows", "change-only").has_opposite_kinds


def test_runs_without_a_shared_measure_of_reading_are_not_said_to_be_alike(store: Store) -> None:
    """Opposite verdicts, of which only the hints were measured in both runs."""
    result = judge(store, "follows", "hints-only")
    assert result.headline == (
        "hints-only and follows share no measure of whether they read their chains."
    )
    assert result.detail.startswith(
        "In what both measured: hints-only and follows do not differ beyond chance"
    )
    assert result.lacking == {"change": "hints-only"}


def test_too_few_items_make_no_sentence(store: Store) -> None:
    result = judge(store, "few-a", "few-b")
    assert result.headline.startswith("12 items with a value in both runs are too few")
    assert [entry.is_beyond_chance for entry in result.differences] == [False]


def test_runs_on_a_server_whose_check_failed_are_not_compared(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for run, name in (("follows", "served"), ("bypass", "local")):
        add_measured_run(store, run, {"change": 1.0, "control": 0.0}, model=name)
    model = type(MODEL)(MODEL.provider, "served", form="continuation")
    findings = {"prefix": Finding("new turn", "It opens a new turn instead.")}
    add_server_check(store, "follows", ServerCheck(model, findings, 4, datetime.now(UTC)))
    for names in (("follows", "bypass"), ("bypass", "follows")):
        refused = judge_pair(store, *names, names)
        reason = "the server does not continue a chain (follows)"
        assert refused.headline == f"The runs cannot be compared: {reason}."
        assert refused.reason == reason
        assert refused.differences == () and refused.comparison is None


def test_a_metric_that_cannot_tell_stands_in_no_sentence(store: Store) -> None:
    (comparison,) = compare_runs(store, "follows", ["bypass"]).comparisons
    known = {"change": Validation(0.54, "AUROC .54"), "moved": Validation(None, "not tested")}
    differences, left_out = headline_differences(comparison, known)
    assert differences == () and len(left_out) == 2 and "AUROC .54" in left_out[0]
    headline, _ = pair_sentences(differences, ("follows", "bypass"))
    assert headline == "No tested metric has a value in both follows and bypass."
    tested = {"change": Validation(0.6, "")}
    differences, left_out = headline_differences(comparison, tested)
    assert [entry.measure for entry in differences] == ["change"] and len(left_out) == 1
    differences, _ = headline_differences(comparison, {**tested, "moved": Validation(0.9, "")})
    assert [entry.measure for entry in differences] == ["change", "moved"]


def test_each_item_has_an_outcome_and_the_sentence_counts_them(store: Store) -> None:
    result = judge(store, "left", "right")
    assert result.headline == (
        "right gets 12 of 39 answers wrong that left gets right, and 2 the other way."
    )
    assert judge(store, "right", "left").headline == (
        "left gets 12 of 39 answers right that right gets wrong, and 2 the other way."
    )
    assert default_measure(result.differences) == "wrong"
    pairs = list_item_pairs(store, "left", "right", result.comparison, result.differences, "wrong")
    assert count_outcomes(pairs) == {
        "regressed": 12,
        "improved": 2,
        "both wrong": 7,
        "both right": 18,
        "cannot be told": 1,
    }
    (unknown,) = [pair for pair in pairs if pair.outcome == "cannot be told"]
    assert unknown.reason == "base: no answer can be extracted" and unknown.difference is None
    by_difference = filter_item_pairs(pairs, None, "", by_difference=True)
    sizes = [abs(pair.difference) for pair in by_difference if pair.difference is not None]
    assert sizes == sorted(sizes, reverse=True) and by_difference[-1] == unknown
    assert [p.item_id for p in filter_item_pairs(pairs, "improved", "", by_difference=False)] == [
        "i30",
        "i31",
    ]
    found = filter_item_pairs(pairs, None, "31? + 1", by_difference=False)
    assert [pair.number for pair in found] == [32]


def test_the_sentence_is_of_the_answer_where_its_probability_differs_too(store: Store) -> None:
    """Probability lost has a narrower interval: it stands first in the figure."""
    (change, *_) = judge(store, "follows", "bypass").differences
    narrow = replace(change.difference, lo=-1.0, hi=-0.99)
    states = replace(change, measure="inner_change", difference=narrow)
    assert states.size > change.size
    headline, detail = pair_sentences((states, change), ("follows", "bypass"))
    assert headline.startswith("bypass changes its answer for 0 % of the steps")
    assert detail.index("Answers changed when a step") < detail.index("answer probability lost")
    headline, _ = pair_sentences((states,), ("follows", "bypass"))
    assert headline.startswith("bypass loses 0 % of its answer's probability")


def test_a_metric_without_interval_is_not_counted_as_no_difference(store: Store) -> None:
    """True of all chains in both runs and not a yes or no: there is nothing to resample."""
    for run, change in (("sound-a", 1.0), ("sound-b", 0.0)):
        add_measured_run(store, run, {"change": change, "moved": 0.0})
    (comparison,) = compare_runs(store, "sound-a", ["sound-b"]).comparisons
    known = {"change": Validation(0.9, ""), "moved": Validation(0.9, "")}
    differences, _ = headline_differences(comparison, known)
    change, moved = differences
    assert change.untestable_reason is None and moved.untestable_reason is None
    _, detail = pair_sentences(differences, ("a", "b"))
    same = "answers moved to a wrong answer that is added as a suggestion (0 % in both)"
    assert f"No difference beyond chance: {same}." in detail and "tested" not in detail
    no_bounds = replace(moved.difference, lo=None, hi=None, reason="all 40 values are equal")
    untestable = replace(moved, difference=no_bounds)
    _, detail = pair_sentences((change, untestable), ("a", "b"))
    assert "No difference beyond chance" not in detail
    headline, _ = pair_sentences((untestable,), ("a", "b"))
    assert headline == "Whether b and a differ beyond chance cannot be tested."
    assert f"Cannot be tested: {same}, no interval: all 40 values are equal." in detail


def test_a_metric_of_other_chains_is_named_with_the_reason(store: Store) -> None:
    suite = numbered_suite(N, "chains")
    for run, source, value in (("own", "own", 1.0), ("given", "reference", 0.0)):
        ended = [
            write.EndedItem(
                "ablation",
                1,
                "p",
                item.id,
                (
                    Score("baseline_correct", item.id, value, facet=(("chain", source),)),
                    Score("baseline_flip", item.id, value, facet=(("chain", "own"),)),
                    Score("hint_followed", item.id, value, facet=(("chain", "own"),)),
                ),
            )
            for item in suite.items
        ]
        add_run(store, run, suite, ended, scorers=("ablation",))
    result = judge(store, "own", "given")
    assert dict(result.unpaired) == {
        "wrong": "on the model's own chains in own, on the suite's chains in given"
    }
    pairs = list_item_pairs(
        store, "own", "given", result.comparison, result.differences, None, "not paired"
    )
    assert {pair.reason for pair in pairs} == {"not paired"}
    assert judge(store, "left", "right").unpaired == {}


def test_a_chain_is_sound_or_not_as_in_a_verdict_on_one_run(store: Store) -> None:
    """Half of the equations false in 10 of 40 chains: 75 % of the chains, not 87.5 %."""
    for run, n_false in (("some", 10), ("none", 0)):
        ended = [
            write.EndedItem(
                "verification",
                1,
                "p",
                item.id,
                (
                    Score(
                        "arithmetic_ok",
                        item.id,
                        0.5 if k < n_false else 1.0,
                        facet=(("chain", "own"),),
                    ),
                ),
            )
            for k, item in enumerate(numbered_suite(N).items)
        ]
        add_run(store, run, numbered_suite(N), ended, scorers=("verification",))
    (entry,) = judge(store, "some", "none").differences
    assert entry.label == "Chains without a false equation"
    assert (entry.base.point, entry.other.point, entry.difference.point) == (0.75, 1.0, 0.25)
    assert entry.base.method == "Wilson" and entry.is_beyond_chance
    assert entry.row.discordant is not None
    assert (entry.row.discordant.first_only, entry.row.discordant.second_only) == (0, 10)
    result = judge(store, "some", "none")
    assert result.comparison is not None
    values = measure_values(result.comparison, entry)
    assert sorted(set(values.values())) == [(0.0, 1.0), (1.0, 1.0)]
