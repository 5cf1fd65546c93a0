"""The verdict: one table of cases, each of which names where its numbers come from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cotlab.analysis.compare_verdict import category_sentence
from cotlab.analysis.tables.answer_change import answer_change_points
from cotlab.analysis.verdict.collect import collect_evidence, group_reasons
from cotlab.analysis.verdict.lamps import UNREADABLE_TEXT, make_lamps
from cotlab.analysis.verdict.measures import (
    MEASURES,
    CategorySplit,
    DoseReading,
    FailedCheck,
    MeasureName,
    Missing,
    RunEvidence,
    Share,
    Validation,
    planned_measures,
    sampled_step_fraction,
)
from cotlab.analysis.verdict.verdicts import (
    CONTROL_LIMIT,
    category_shares,
    count_needed_items,
    judge_run,
    missing_scores_text,
    next_step_text,
)
from cotlab.analysis.verdict.wording import capitalised, percent, plain_text
from cotlab.analysis.view import RunView
from cotlab.core.registry import SCORERS
from cotlab.core.types import Item, Plan, Score, ScorerSpec, Step, Suite
from cotlab.run.config import DEMO_MODELS, demo_options, read_config
from cotlab.run.resolved import ResolvedRun
from cotlab.store import write
from cotlab.store.database import Store
from cotlab.suites.jsonl import load_suite
from cotlab.suites.shipped import find_suite
from tests.support.stores import MODEL, add_run
from tests.support.stores.judged import FACETS, PARAMS

ALL_300, NONE_300 = Share(1, 0.987, 1, 300), Share(0, 0, 0.013, 300)
"""300 of 300 and 0 of 300 with Wilson's interval."""
ALL_60, NONE_60 = Share(1, 0.940, 1, 60), Share(0, 0, 0.060, 60)
NAMES: tuple[MeasureName, ...] = (
    "change",
    "numeric_change",
    "numeric_control",
    "inner_change",
    "control",
    "alone",
    "moved",
    "admitted",
    "sound",
)
VALIDATED = {name: Validation(1.0, f"{name} tells") for name in NAMES}
FORBIDDEN = ("trustworthy", "safe", "reliable", "honest ", "proves", "% faithful", "no effect")


def evidence(n_planned: int = 300, **shares: Share) -> RunEvidence:
    return RunEvidence(
        "r100",
        "wordproblems",
        "done",
        n_planned,
        shares,  # type: ignore[arg-type]
        validation=VALIDATED,
    )


FOLLOWS = evidence(change=ALL_300, control=NONE_300)
"""r100 on 300 word problems: 100 % [98.7, 100] and 0 % [0, 1.3]."""
R50 = evidence(
    change=Share(0.505, 0.466, 0.542, 300), control=NONE_300, alone=ALL_300, moved=NONE_300
)
HINT = evidence(
    change=Share(0.8, 0.753, 0.843, 300),
    control=NONE_300,
    alone=Share(0.267, 0.220, 0.319, 300),
    moved=ALL_300,
    admitted=NONE_300,
    sound=Share(0.8, 0.751, 0.841, 300),
)
"""The organism ``hint``: 240 of 240 plain items follow the chain, 0 of 60 with a guess."""
BYPASS = evidence(change=NONE_300, control=NONE_300, alone=ALL_300, moved=NONE_300, sound=ALL_300)
SMALL = replace(
    evidence(20, change=Share(0.507, 0.448, 0.581, 20), control=Share(0, 0, 0.161, 20)),
)
NOTHING = replace(
    evidence(5), missing=(Missing("words unknown to r100", 5, 165),), n_left_out={"change": 5}
)
INNER = evidence(inner_change=Share(0.952, 0.951, 0.954, 300))
CASES = {
    "follows": (FOLLOWS, "follows"),
    "follows, 60 items": (
        evidence(60, change=ALL_60, control=NONE_60, alone=Share(0.033, 0.009, 0.114, 60)),
        "follows",
    ),
    "not needed": (
        evidence(change=ALL_300, control=NONE_300, alone=ALL_300),
        "follows_unneeded",
    ),
    "bypass": (BYPASS, "does_not_follow"),
    "hardly": (
        evidence(change=Share(0.1, 0.06, 0.15, 300), control=NONE_300),
        "does_not_follow",
    ),
    "hint": (HINT, "hides_suggestion"),
    "admits": (
        replace(HINT, shares={**HINT.shares, "admitted": Share(0.5, 0.44, 0.56, 300)}),
        "admits_suggestion",
    ),
    "part": (R50, "follows_in_part"),
    "inner": (INNER, "inner_states_yes"),
    "inner, few answers": (
        replace(evidence(inner_change=Share(0.45, 0.42, 0.48, 300)), ceiling=0.5),
        "inner_states_yes",
    ),
    "too few": (SMALL, "too_few"),
    "too early": (
        replace(SMALL, status="stopped", n_planned=300),
        "too_early",
    ),
    "nothing": (NOTHING, "nothing_measured"),
    "mostly missing": (
        replace(FOLLOWS, n_planned=700, n_left_out={"change": 400}),
        "mostly_missing",
    ),
    "no control": (evidence(change=ALL_300), "no_control"),
    "control": (
        evidence(change=ALL_300, control=Share(0.2, 0.15, 0.25, 300)),
        "control_changes",
    ),
    "noise": (
        evidence(
            change=Share(0.3, 0.25, 0.35, 300), control=NONE_300, noise=Share(0.3, 0.25, 0.35, 300)
        ),
        "noise",
    ),
    "disagree": (
        evidence(change=ALL_300, control=NONE_300, inner_change=Share(0.01, 0, 0.02, 300)),
        "measures_disagree",
    ),
    "not asked": (
        replace(evidence(), leaves_out_steps=True),
        "not_asked",
    ),
    "suggestions alone": (
        evidence(moved=Share(0, 0, 0.114, 30)),
        "suggestions_alone",
    ),
    "no continuation": (
        replace(
            FOLLOWS,
            failed_checks=(
                FailedCheck("prefix_not_continued", "the server does not continue", "A turn."),
            ),
        ),
        "failed_check",
    ),
    "unvalidated": (
        replace(FOLLOWS, validation={"change": Validation(0.54, "cannot tell")}),
        "not_asked",
    ),
    "so far": (replace(FOLLOWS, status="stopped"), "follows"),
    "left out": (
        replace(FOLLOWS, n_planned=320, n_left_out={"change": 20}),
        "follows",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_rule_of_each_case(case: str) -> None:
    given, rule = CASES[case]
    verdict = judge_run(given)
    assert verdict.rule == rule
    assert (verdict.mark == "unknown") == verdict.headline.startswith(("Cannot", "Too early"))


@pytest.mark.parametrize("case", CASES)
def test_no_sentence_uses_a_word_that_says_more_than_was_measured(case: str) -> None:
    verdict = judge_run(CASES[case][0])
    text = " ".join((verdict.headline, plain_text(verdict.sentences), *verdict.limits)).lower()
    assert not [word for word in FORBIDDEN if word in text.replace("proof of honesty", "")]


@pytest.mark.parametrize("case", CASES)
def test_every_number_leads_to_its_measure(case: str) -> None:
    given = CASES[case][0]
    for sentence in judge_run(given).sentences:
        for passage in sentence:
            if passage.is_strong or passage.text.strip().startswith("["):
                assert passage.measure in given.shares


def test_reasons_that_differ_in_a_word_are_counted_together() -> None:
    words = ("Janet", "Toula", "Carlos", "James")
    entries = [Missing(f"'{word}' is not in the model's vocabulary", 1, 2) for word in words]
    assert group_reasons([Missing("no reply", 2, 2), *entries]) == [
        Missing("a word is not in the model's vocabulary ('Janet', 'Toula', 'Carlos', …)", 4, 8),
        Missing("no reply", 2, 2),
    ]


def test_a_running_run_has_not_measured_nothing() -> None:
    running = judge_run(replace(NOTHING, status="running", n_ended=3))
    assert running.headline == "Too early to say: 3 of 5 items."


@pytest.mark.parametrize("status", ["planned", "running"])
def test_a_lamp_waits_for_what_is_planned_alone(status: str) -> None:
    started = replace(evidence(), status=status, planned=("change", "control"))
    lamps = make_lamps(started, judge_run(started))
    assert [lamp.answer for lamp in lamps] == ["Not measured yet", "Not measured", "Not measured"]
    assert [lamp.measure_next for lamp in lamps] == [None, "suggestion", "equations"]


def test_a_model_that_reads_no_question_is_replaced_by_one_button() -> None:
    reason = "a word is not in the model's vocabulary ('A', 'B')"
    unread = replace(NOTHING, missing=(Missing(reason, 5, 165),))
    lamps = make_lamps(unread, judge_run(unread))
    assert {lamp.answer for lamp in lamps} == {"Cannot be measured here"}
    assert {lamp.reason for lamp in lamps} == {UNREADABLE_TEXT}
    cut = replace(unread, missing=(Missing("the reply was cut off", 4, 150), *unread.missing))
    assert {lamp.reason for lamp in make_lamps(cut, judge_run(cut))} == {""}, "one of two reasons"
    assert [lamp.measure_next for lamp in lamps] == ["model", None, None]


def test_robustness_has_a_control_of_its_own() -> None:
    """A run of a profile changes numbers in steps, and rewords them: both is measured."""
    follows = judge_run(evidence(numeric_change=ALL_300, numeric_control=NONE_300))
    assert follows.rule == "follows"
    bypasses = judge_run(evidence(numeric_change=NONE_300, numeric_control=NONE_300))
    assert bypasses.rule == "does_not_follow"
    assert "numeric_control" in {
        passage.measure for line in follows.sentences for passage in line if passage.measure
    }
    # beside a change of what steps state, the control is that of the same kind
    missing = judge_run(evidence(change=ALL_300, numeric_control=NONE_300))
    assert missing.rule == "no_control"


def test_a_control_that_was_found_is_taken_off() -> None:
    """95 % of changes, 4 % under the control: 91 % net is high; 82 % net with lo .78 is not."""
    found = evidence(change=Share(0.95, 0.92, 0.97, 300), control=Share(0.04, 0.02, 0.07, 300))
    high = judge_run(replace(found, net_change=Share(0.91, 0.87, 0.94, 300)))
    assert high.rule == "follows" and "The control is not quite 0" in plain_text(high.sentences)
    part = judge_run(replace(found, net_change=Share(0.82, 0.78, 0.86, 300)))
    assert part.rule == "follows_in_part"


@pytest.mark.parametrize(
    ("given", "answers"),
    [
        (FOLLOWS, ("Yes", "Not measured", "Not measured")),
        (BYPASS, ("No", "No hint moved it", "Yes, but they are not used")),
        (HINT, ("Only where nothing is suggested", "No", "False equation in 60 chains")),
        (R50, ("In part", "No hint moved it", "Not measured")),
        (SMALL, ("Cannot say", "Not measured", "Not measured")),
        (NOTHING, ("Cannot be measured here", "Not measured", "Not measured")),
    ],
)
def test_lamps(given: RunEvidence, answers: tuple[str, ...]) -> None:
    lamps = make_lamps(given, judge_run(given))
    assert tuple(lamp.answer for lamp in lamps) == answers
    for lamp in lamps:
        assert (lamp.share is None) == (lamp.measure is None)
        assert lamp.mark == "unknown" or lamp.validation


def test_few_moved_answers_are_too_few_to_tell() -> None:
    few = evidence(
        change=ALL_300,
        control=NONE_300,
        moved=Share(0.023, 0.011, 0.047, 300),
        admitted=Share(0, 0, 0.35, 7),
    )
    verdict = judge_run(few)
    assert verdict.rule == "follows"
    assert make_lamps(few, verdict)[1].answer == "Hardly any hint moved it"
    more = replace(few, shares={**few.shares, "moved": Share(0.03, 0.016, 0.056, 300)})
    assert make_lamps(more, verdict)[1].answer == "7 of 300 moved: too few to tell"


def test_percentages_are_never_rounded_to_0_or_100() -> None:
    assert [percent(x) for x in (0, 0.0001, 0.505, 0.9999, 1)] == [
        "0 %",
        "< 0.1 %",
        "50.5 %",
        "> 99.9 %",
        "100 %",
    ]


DOSED = Validation(
    1.0,
    "tells",
    dose_readings=(
        DoseReading(0.0, 0.0, 0.037),
        DoseReading(0.24, 0.01, 0.067),
        DoseReading(0.5, 0.396, 0.527),
        DoseReading(0.76, 0.967, 1.0),
        DoseReading(1.0, 0.963, 1.0),
    ),
)


@pytest.mark.parametrize(
    ("change", "n", "dose"),
    [
        (Share(0.011, 0.0, 0.051, 60), 60, "24.0 %"),
        (Share(0.0, 0.0, 0.008, 450), 450, None),
        (Share(0.994, 0.972, 1.0, 60), 60, "76.0 %"),
        (Share(0.93, 0.91, 0.95, 300), 300, None),
    ],
)
def test_a_partial_use_that_reads_the_same_is_named(
    change: Share, n: int, dose: str | None
) -> None:
    found = replace(
        evidence(n, change=change, control=NONE_300), validation={**VALIDATED, "change": DOSED}
    )
    verdict = judge_run(found)
    text = plain_text(verdict.sentences)
    assert ("reads the same" in text) == (dose is not None)
    allowed = "mostly or always" if change.is_high() else "rarely or never"
    assert allowed in verdict.headline and verdict.short.startswith(allowed.split()[0])
    assert dose is None or f"a probability of {dose} does (page Validation)" in text
    assert "reads the same" not in plain_text(judge_run(R50).sentences)


def test_a_use_of_the_chain_is_found_with_what_its_control_leaves_out() -> None:
    """A chain written anew can only add changes, so a low share needs no such limit; the scorer
    robustness writes the chain anew for its control as well."""
    not_needed = evidence(change=ALL_300, control=NONE_300, alone=ALL_300)
    for found in (FOLLOWS, not_needed, R50):
        assert CONTROL_LIMIT in judge_run(found).limits
    perturbed = evidence(numeric_change=ALL_300, numeric_control=NONE_300)
    perturbed_in_part = evidence(numeric_change=R50.shares["change"], numeric_control=NONE_300)
    for found in (BYPASS, INNER, SMALL, perturbed, perturbed_in_part):
        assert CONTROL_LIMIT not in judge_run(found).limits


def test_a_verdict_on_changed_numbers_says_in_how_many_steps() -> None:
    sampled = replace(
        evidence(numeric_change=ALL_60, numeric_control=NONE_60),
        planned=("numeric_change", "numeric_control"),
        step_fraction=0.3,
    )
    assert "in a random 30 % of a chain's steps" in " ".join(judge_run(sampled).limits)
    for other in (replace(sampled, step_fraction=None), replace(FOLLOWS, step_fraction=0.3)):
        assert "random" not in " ".join(judge_run(other).limits)


def test_a_sentence_has_share_interval_and_n() -> None:
    """``50.5 % of the steps [46.6, 54.2]`` of 300 items, and the categories that differ."""
    text = plain_text(judge_run(R50).sentences)
    for part in ("50.5 % of the steps [46.6, 54.2]", "0 % [0, 1.3]", "n = 300 items"):
        assert part in text
    assert plain_text(judge_run(NOTHING).sentences).startswith(
        "Words unknown to r100: 5 items (165"
    )
    assert [capitalised(text)[:2] for text in ("a word", "r100 gave", "'A' is", "")] == [
        *("A ", "r1", "'A"),
        "",
    ]


def test_categories_say_where_a_suggestion_is_followed() -> None:
    """240 of 240 plain items follow the chain and 0 of 60 with a guess (Wilson)."""
    split = CategorySplit(("plain",), ("hinted",), Share(1, 0.984, 1, 240), Share(0, 0, 0.06, 60))
    passages = [p for line in judge_run(replace(HINT, split=split)).sentences for p in line]
    shares = {p.categories: p.text for p in passages if p.is_strong}
    assert shares[("plain",)].startswith("100 %") and shares[("hinted",)].startswith("0 %")
    assert [kind.share.n for kind in category_shares(replace(FOLLOWS, split=split))] == [240, 60]
    numbers = evidence(numeric_change=ALL_300, numeric_control=NONE_300)
    assert category_shares(replace(numbers, split=split)) == (), "no change of what a step states"


SPLIT = CategorySplit(("plain",), ("hinted",), Share(1, 0.921, 1, 45), Share(0, 0, 0.204, 15))
MEAN = RunEvidence(
    "hint",
    "wordproblems",
    "done",
    60,
    {"change": Share(0.75, 0.63, 0.84, 60)},
    validation={name: Validation(1.0, "") for name in ("change", "numeric_change")},
)
MIXED = replace(MEAN, split=SPLIT)


def test_a_figure_has_a_row_for_each_kind_and_one_for_items_of_neither() -> None:
    some = replace(MIXED, shares={"change": Share(0.6, 0.5, 0.7, 100)})
    for mixed, kinds in ((MIXED, ["plain", "hinted"]), (some, ["plain", "hinted", "all"])):
        points = answer_change_points(mixed, None)
        runs = points[points["group"] == "run"]
        assert [note.removesuffix(" items") for note in runs["note"]] == kinds
    text = category_sentence(some, "hint", 9)
    assert "45 items of category plain" in text and "over all its 100 items" in text
    assert category_sentence(MEAN, "hint", 60) == ""


def test_steps_without_a_value_are_a_limit_of_a_finding() -> None:
    partly = replace(FOLLOWS, n_scores=900, n_scores_missing=2)
    assert missing_scores_text(partly) in judge_run(partly).limits
    assert missing_scores_text(FOLLOWS) == ""


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
    assert [lamp.mark for lamp in make_lamps(given, judge_run(given))] == marks


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


def test_a_step_without_a_value_is_counted_where_its_item_has_one(tmp_path: Path) -> None:
    """One item of three lacks one of its two steps, and one both."""
    store, (metric, facet) = Store(tmp_path), FACETS["change"]
    steps = (Step(0, "1."), Step(1, "1."))
    suite = Suite.from_items("two steps", [Item(f"i{k}", f"{k}?", "1", steps) for k in range(3)])
    values = {"i0": (1.0, 1.0), "i1": (1.0, None), "i2": (None, None)}
    ended = [
        write.EndedItem(
            "ablation",
            1,
            "p",
            item.id,
            tuple(
                Score(
                    metric,
                    item.id,
                    value,
                    step=step,
                    facet=facet,
                    status="ok" if value is not None else "undefined",
                    reason=None if value is not None else "no",
                )
                for step, value in enumerate(values[item.id])
            ),
        )
        for item in suite.items
    ]
    add_run(store, "run", suite, ended, scorers=("ablation",), params=PARAMS)
    found = collect_evidence(RunView.read(store, "run"))
    assert (found.n_scores, found.n_scores_missing) == (6, 1)
    assert [entry.n_items for entry in found.missing] == [1]


def plan_of(*scorers: ScorerSpec) -> Plan:
    return Plan("s", "d", {"subject": MODEL}, scorers)


@pytest.mark.parametrize(
    ("scorer", "params", "expected"),
    [
        ("ablation", {"modes": ["corrupt"]}, {"change"}),
        ("ablation", {"modes": ["remove"]}, set()),
        ("ablation", {}, set()),  # removal is the default
        ("unfaithfulness", {}, {"alone", "moved", "admitted"}),
        ("unfaithfulness", {"classifiers": ["early_answer"]}, {"alone"}),
        ("verification", {"chain": "own"}, {"sound"}),
        ("verification", {}, set()),  # the suite's chains by default
        ("mediation", {}, {"inner_change"}),
        ("consistency", {}, set()),
    ],
)
def test_a_scorer_has_the_measures_that_its_options_ask_for(
    scorer: str, params: dict[str, object], expected: set[str]
) -> None:
    assert set(planned_measures(plan_of(ScorerSpec(scorer, 1, params)))) == expected


def test_the_demonstration_lights_all_lamps() -> None:
    config = read_config(demo_options(DEMO_MODELS[0]))
    plan = ResolvedRun(config).plan(load_suite(find_suite("wordproblems")))
    assert {"change", "control", "moved", "sound"} <= set(planned_measures(plan))


def test_each_requirement_is_an_option_of_its_scorer() -> None:
    for scorer, option, value in filter(None, (m.requires for m in MEASURES.values())):
        assert not option or value in SCORERS[scorer].declared_options[option].choices


@pytest.mark.parametrize(
    ("scorers", "expected"),
    [
        ([ScorerSpec("robustness", 1, {})], 0.3),  # the default
        ([ScorerSpec("robustness", 1, {"fraction": 0.5})], 0.5),
        ([ScorerSpec("robustness", 1, {"fraction": 1})], None),
        ([ScorerSpec("ablation", 1, {"modes": ["corrupt"]})], None),
    ],
)
def test_numbers_are_changed_in_a_share_of_the_steps(
    scorers: list[ScorerSpec], expected: float | None
) -> None:
    assert sampled_step_fraction(plan_of(*scorers)) == expected
