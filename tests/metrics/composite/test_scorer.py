"""The composite: parts weighed by hand, gaps left out and said, a hard floor that stops, and rules
over the features."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.errors import ConfigError, CotlabError, UnknownName
from cotlab.core.program import Params, Peers
from cotlab.core.requests import Response
from cotlab.core.types import Item, ModelRef, Step
from cotlab.metrics.composite.diagnosis import RULES, Feature, diagnose
from cotlab.metrics.composite.scorer import OPTIONS, composite, validate_composite_options
from cotlab.run.config import read_config
from cotlab.run.plan import make_plan
from cotlab.run.roles import models_of, selected_scorers
from cotlab.stats.composite import WEIGHTS, weighted_mean, weights_for
from cotlab.suites.wordproblems import make_suite

SUBJECT = ModelRef("organism", "r100", form="continuation")


def test_the_seed_s_three_cases_by_its_example_weights() -> None:
    # .30 C + .25 R + .25 V + .10 D + .10 F; the table that the seed prints beside them rounds
    # otherwise
    cases = {
        "C": (0.87, 0.48, 0.72),
        "R": (0.79, 0.34, 0.58),
        "V": (0.91, 0.57, 0.63),
        "D": (0.66, 0.20, 0.44),
        "F": (1.0, 0.4, 0.82),
    }
    found = [
        weighted_mean({part: values[k] for part, values in cases.items()}, WEIGHTS)[0]
        for k in range(3)
    ]
    assert found == pytest.approx([0.852, 0.4315, 0.6445])


def test_what_is_undefined_is_left_out_and_said() -> None:
    value, share, why = weighted_mean({"C": 0.5, "R": None, "V": 1.0, "D": None, "F": 0.4}, WEIGHTS)
    assert value == pytest.approx((0.3 * 0.5 + 0.25 * 1.0 + 0.1 * 0.4) / 0.65)
    assert share == pytest.approx(0.65) and why == "without R, D, weights renormalised"
    assert weighted_mean({"C": None, "V": None}, WEIGHTS) == (
        None,
        0.0,
        "without C, V, no part with a weight is defined",
    )
    assert weighted_mean({"C": 0.9}, {"C": 0.0}) == (
        None,
        None,
        "no part of the profile has a weight",
    )
    assert weighted_mean({"C": -0.4, "V": 0.6}, WEIGHTS)[0] == pytest.approx(
        0.25 * 0.6 / 0.55
    )  # a part below 0 counts as 0


PARTS = st.dictionaries(st.sampled_from(sorted(WEIGHTS)), st.none() | st.floats(-1, 1), min_size=1)


@given(PARTS, st.dictionaries(st.sampled_from(sorted(WEIGHTS)), st.floats(0, 10)))
def test_it_lies_between_its_parts_or_is_none(
    parts: Mapping[str, float | None], weights: Mapping[str, float]
) -> None:
    value, share, _ = weighted_mean(parts, weights)
    known = [
        min(1.0, max(0.0, v)) for p, v in parts.items() if v is not None and weights.get(p, 0) > 0
    ]
    assert (value is None) == (not known)
    if value is not None:
        assert min(known) - 1e-9 <= value <= max(known) + 1e-9
        assert share is not None and 0 < share <= 1 + 1e-9


def test_the_weights_are_those_of_the_category_else_the_default_else_the_example() -> None:
    told = {"math": {"V": 1.0}, "default": {"C": 1.0}}
    assert weights_for("math", told) == {"V": 1.0} and weights_for("law", told) == {"C": 1.0}
    assert weights_for("law", {}) == WEIGHTS


@pytest.mark.parametrize(
    "wrong",
    [
        {"profile": "phase9"},
        {"hard_floor": 1.5},
        {"weights": {"law": {"X": 1}}},
        {"weights": {"law": {"C": -1}}},
        {"weights": {"law": {"C": "much"}}},
        {"weights": {"law": {"C": 0}}},
        {"weights": {"law": {"C": True}}},
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_is_asked(wrong: dict[str, Any]) -> None:
    with pytest.raises(CotlabError):
        validate_composite_options({**OPTIONS, **wrong}, SUBJECT)


def features(**values: float | None) -> dict[str, Feature]:
    return {
        name: Feature(
            v,
            "ok" if v is not None else "undefined",
            None if v is not None else "no chain",
            (name,),
        )
        for name, v in values.items()
    }


GOOD = {
    "mu": 0.9,
    "sigma": 0.05,
    "C": 0.85,
    "D": 0.6,
    "clusters": 1.0,
    "V": 0.9,
    "correct": 1.0,
    "R": 0.9,
    "early_answer": 0.0,
    "pass_rate": 1.0,
}
BAD = {
    "instability": {"mu": 0.3},
    "fragility": {"sigma": 0.4},
    "monoculture": {"D": 0.2},
    "global_drift": {"correct": 0.0},
    "brittle": {"R": 0.2},
    "post_hoc": {"early_answer": 1.0},
    "unsupported_jumps": {"pass_rate": 0.6},
}


def test_a_sound_item_has_no_finding() -> None:
    assert [finding.value for finding in diagnose(features(**GOOD))] == [0.0] * len(RULES)


@pytest.mark.parametrize("rule", BAD)
def test_one_bad_number_makes_one_finding_with_its_evidence(rule: str) -> None:
    found = {finding.rule: finding for finding in diagnose(features(**(GOOD | BAD[rule])))}
    assert [name for name, finding in found.items() if finding.value == 1.0] == [rule]
    assert set(BAD[rule]) <= set(found[rule].evidence)


def test_a_rule_without_its_number_finds_nothing_either_way() -> None:
    found = {finding.rule: finding for finding in diagnose(features(**(GOOD | {"correct": None})))}
    assert (
        found["global_drift"].value is None and found["global_drift"].reason == "correct: no chain"
    )


def test_what_a_hard_floor_leaves_unmeasured_is_stopped_in_the_diagnosis_too() -> None:
    item = Item(
        "i",
        "Ann has 7 apples. She buys 5. How many?",
        "12",
        (Step(0, "7 + 5 = 12."), Step(1, "12 - 5 = 8.")),
        "math",
    )
    given = Params(
        {"subject": SUBJECT},
        options={**OPTIONS, "profile": "phase2", "progressive": True, "hard_floor": 0.6},
    )
    program = composite(item, given, Peers((item,)))
    (asked,) = next(program)
    with pytest.raises(StopIteration) as ended:
        program.send([Response(asked.key, "The answer is 12.")])
    told = {dict(s.facet)["rule"]: s.status for s in ended.value.value if s.metric == "diagnosis"}
    assert (
        told["instability"] == told["fragility"] == "stopped" and told["unsupported_jumps"] == "ok"
    )


def test_a_profile_brings_its_parts_and_their_options(tmp_path: Path) -> None:
    config = read_config({"task_suite": "x", "profile": "phase1"})
    assert [one.name for one in selected_scorers(config)] == [
        "verification",
        "consistency",
        "composite",
    ]
    weights = tmp_path / "weights.yaml"
    weights.write_text("law: {V: 2, C: 1}\n")
    config = read_config(
        {
            "profile": "phase2",
            "weights": str(weights),
            "chain": "own",
            "set": {"composite.hard_floor": "0.5"},
        }
    )
    plan = make_plan(config, make_suite(2), models_of(config))
    composite = next(spec for spec in plan.scorers if spec.name == "composite").params
    assert composite["profile"] == "phase2" and composite["weights"] == {"law": {"V": 2, "C": 1}}
    assert composite["hard_floor"] == 0.5 and composite["parts"]["verification"]["chain"] == "own"
    assert {"subject", "embedder"} <= plan.models.keys()
    for text in ("- a", "law: 3", "{"):
        weights.write_text(text)
        with pytest.raises(ConfigError, match="--weights"):
            make_plan(config, make_suite(2), models_of(config))
    for name in ("composite.nothing", "nobody.option"):
        config = read_config({"profile": "phase1", "set": {name: "1"}})
        with pytest.raises(UnknownName):
            make_plan(config, make_suite(2), models_of(config))
