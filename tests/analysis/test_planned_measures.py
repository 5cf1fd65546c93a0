"""What a run is going to measure, from its plan alone."""

from __future__ import annotations

import pytest

from cotlab.analysis.verdict.measures import MEASURES
from cotlab.analysis.verdict.planned import planned_measures, sampled_step_fraction
from cotlab.core.registry import SCORERS
from cotlab.core.types import Plan, ScorerSpec
from cotlab.run.config import DEMO_MODELS, demo_options, read_config
from cotlab.run.resolved import ResolvedRun
from cotlab.suites.jsonl import load_suite
from cotlab.suites.shipped import find_suite
from tests.support.stores import MODEL


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
