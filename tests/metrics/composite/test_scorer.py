"""The composite: parts weighed by hand, gaps left out and said, a hard floor that stops, and rules
over the features."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab import api, run_suite
from cotlab.core.errors import ConfigError, CotlabError, UnknownName
from cotlab.core.program import Params, Peers
from cotlab.core.requests import Response
from cotlab.core.types import Item, ModelRef, Step, Suite
from cotlab.metrics.composite import DIAGNOSIS_RULES, composite, diagnose
from cotlab.metrics.kit import Measurement, undefined_measurement
from cotlab.run.config import read_config
from cotlab.run.resolved import NO_SUBJECT, SYMBOLIC_VERIFIER, ResolvedRun
from cotlab.stats.composite import EXAMPLE_WEIGHTS, weighted_mean, weights_for
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites.wordproblems import make_suite
from tests.support.replies import finish

OPTIONS = composite.options

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
        weighted_mean({part: values[k] for part, values in cases.items()}, EXAMPLE_WEIGHTS)[0]
        for k in range(3)
    ]
    assert found == pytest.approx([0.852, 0.4315, 0.6445])


def test_what_is_undefined_is_left_out_and_said() -> None:
    value, share, why = weighted_mean(
        {"C": 0.5, "R": None, "V": 1.0, "D": None, "F": 0.4}, EXAMPLE_WEIGHTS
    )
    assert value == pytest.approx((0.3 * 0.5 + 0.25 * 1.0 + 0.1 * 0.4) / 0.65)
    assert share == pytest.approx(0.65) and why == "without R, D, weights renormalised"
    assert weighted_mean({"C": None, "V": None}, EXAMPLE_WEIGHTS) == (
        None,
        0.0,
        "without C, V, no part with a weight is defined",
    )
    assert weighted_mean({"C": 0.9}, {"C": 0.0}) == (
        None,
        None,
        "no part of the profile has a weight",
    )
    assert weighted_mean({"C": -0.4, "V": 0.6}, EXAMPLE_WEIGHTS)[0] == pytest.approx(
        0.25 * 0.6 / 0.55
    )  # a part below 0 counts as 0


PARTS = st.dictionaries(
    st.sampled_from(sorted(EXAMPLE_WEIGHTS)), st.none() | st.floats(-1, 1), min_size=1
)


@given(PARTS, st.dictionaries(st.sampled_from(sorted(EXAMPLE_WEIGHTS)), st.floats(0, 10)))
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
    assert weights_for("law", {}) == EXAMPLE_WEIGHTS


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
        composite.validate_options({**OPTIONS, **wrong}, SUBJECT)


def features(**values: float | None) -> dict[str, Measurement]:
    return {
        name: undefined_measurement("no chain", [name]) if v is None else Measurement(v, (name,))
        for name, v in values.items()
    }


GOOD = {
    "mu": 0.9,
    "sigma": 0.05,
    "C": 0.85,
    "D": 0.6,
    "clusters": 3.0,
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
    assert [finding.value for _, finding in diagnose(features(**GOOD))] == [0.0] * len(
        DIAGNOSIS_RULES
    )


@pytest.mark.parametrize("rule", BAD)
def test_one_bad_number_makes_one_finding_with_its_evidence(rule: str) -> None:
    found = dict(diagnose(features(**(GOOD | BAD[rule]))))
    assert [name for name, finding in found.items() if finding.value == 1.0] == [rule]
    assert set(BAD[rule]) <= set(found[rule].evidence)


def test_one_cluster_of_paths_is_no_monoculture_as_its_d_is_low_by_construction() -> None:
    found = dict(diagnose(features(**(GOOD | {"D": 0.2, "clusters": 1.0}))))["monoculture"]
    assert (found.value, found.status) == (None, "undefined") and found.evidence
    assert found.reason == (
        "all paths are in one cluster, and D is then at most 1/N however the model reasons"
    )


def test_a_rule_without_its_number_finds_nothing_either_way() -> None:
    found = dict(diagnose(features(**(GOOD | {"correct": None}))))
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
        options={
            **OPTIONS,
            "chain": "reference",
            "profile": "phase2",
            "progressive": True,
            "hard_floor": 0.6,
        },
    )
    program = composite(item, given, Peers((item,)))
    (asked,) = next(program)
    ended = finish(program, [Response(asked.key, "The answer is 12.")])
    told = {dict(s.facet)["rule"]: s.status for s in ended if s.metric == "diagnosis"}
    assert (
        told["instability"] == told["fragility"] == "stopped" and told["unsupported_jumps"] == "ok"
    )


def test_a_profile_brings_its_parts_and_their_options(tmp_path: Path) -> None:
    config = read_config({"task_suite": "x", "profile": "phase1"})
    assert [one.name for one in ResolvedRun(config).scorers] == [
        "verification",
        "consistency",
        "composite",
    ]
    weights = tmp_path / "weights.yaml"
    weights.write_text("law: {V: 2, C: 1}\n")
    config = read_config(
        {
            "profile": "phase2",
            "chain": "own",
            "set": {"composite.hard_floor": "0.5", "composite.weights": str(weights)},
        }
    )
    plan = ResolvedRun(config).plan(make_suite(2))
    composite = next(spec for spec in plan.scorers if spec.name == "composite").params
    assert composite["profile"] == "phase2" and composite["weights"] == {"law": {"V": 2, "C": 1}}
    assert composite["hard_floor"] == 0.5 and composite["parts"]["verification"]["chain"] == "own"
    assert {"subject", "embedder"} <= plan.models.keys()
    for text in ("- a", "law: 3", "{"):
        weights.write_text(text)
        with pytest.raises(ConfigError, match="--set composite.weights"):
            ResolvedRun(config).plan(make_suite(2))
    for name in ("composite.nothing", "nobody.option"):
        config = read_config({"profile": "phase1", "set": {name: "1"}})
        with pytest.raises(UnknownName):
            ResolvedRun(config).plan(make_suite(2))


def chains_of(options: dict[str, Any]) -> dict[str, str]:
    """Return whose chain each scorer of a configuration measures."""
    config = read_config({"task_suite": "x", **options})
    plan = ResolvedRun(config).plan(make_suite(2))
    chains = {spec.name: spec.params.get("chain", "") for spec in plan.scorers}
    for spec in plan.scorers:
        for part_options in spec.params.get("parts", {}).values():
            assert part_options.get("chain", spec.params["chain"]) == spec.params["chain"]
    return chains


def test_the_composite_measures_the_model_s_own_chain_and_the_other_scorers_the_suite_s() -> None:
    assert chains_of({"scorer": ["ablation", "flags", "composite"]}) == {
        "ablation": "reference",
        "flags": "own",
        "composite": "own",
    }
    assert set(chains_of({"profile": "phase2"}).values()) == {"own", ""}
    assert set(chains_of({"profile": "phase2", "chain": "reference"}).values()) == {"reference", ""}
    assert chains_of({"scorer": ["flags", "verification"]}) == {
        "flags": "reference",
        "verification": "reference",
    }
    with pytest.raises(ConfigError, match=r"composite.chain is own and flags.chain is reference"):
        chains_of({"scorer": ["composite"], "set": {"flags.chain": "reference"}})


def test_a_sound_reference_chain_says_nothing_of_a_model_that_reasons_badly(tmp_path: Path) -> None:
    """By default r_raw is of the chain that the model wrote; the suite's chain is sound here."""
    script = tmp_path / "replies.jsonl"
    line = {"contains": "", "text": "7 + 5 = 13.\n13 - 3 = 11.\nThe answer is 11."}
    script.write_text(json.dumps(line) + "\n", "utf-8")
    item = Item(
        "i",
        "Ann has 7 apples. She buys 5 more. She eats 3. How many?",
        "9",
        (Step(0, "7 + 5 = 12."), Step(1, "12 - 3 = 9.")),
        "math",
    )

    def measured(**options: Any) -> tuple[float | None, str, str]:
        run = run_suite(
            Suite.from_items("one", [item]),
            store=tmp_path / "store",
            provider="scripted",
            model=str(script),
            scorer=["composite"],
            set={"composite.profile": "phase2", "composite.least_weight": "0.2"},
            **options,
        )
        view = read.run_scores(Store(tmp_path / "store"), run.run_id, metrics=["feature"])
        row = next(r for r in view.itertuples() if json.loads(r.facet)["feature"] == "V")
        return row.value, json.loads(row.facet)["chain"], row.status

    assert measured()[:2] == (0.0, "own")
    assert measured(chain="reference")[:2] == (1.0, "reference")


def test_an_offline_profile_reads_a_logged_chain_and_asks_no_model(tmp_path: Path) -> None:
    config = read_config(
        {"task_suite": "x", "provider": "openai", "model": "gpt-4.1", "profile": "offline"}
    )
    assert ResolvedRun(config).models == {"subject": NO_SUBJECT, "symbolic": SYMBOLIC_VERIFIER}
    assert [one.name for one in ResolvedRun(config).scorers] == [
        "flags",
        "verification",
        "composite",
    ]
    assert set(chains_of({"profile": "offline"}).values()) == {"reference"}
    with pytest.raises(ConfigError, match="reads the chains that the suite holds"):
        chains_of({"profile": "offline", "chain": "own"})
    for verifier in ("subject", "openai/gpt-4.1"):
        with pytest.raises(
            ConfigError, match="asks no model: --verifier none, nli:FOLDER or prm:FOLDER"
        ):
            chains_of({"profile": "offline", "verifier": verifier})
    wrong = api.composite(
        "Ann has 7 apples. She buys 5 more. She eats 3. How many?",
        ["7 + 5 = 13.", "13 - 3 = 9."],
        profile="offline",
    )
    right = api.composite(
        "Ann has 7 apples. She buys 5 more. She eats 3. How many?",
        ["7 + 5 = 12.", "12 - 3 = 9."],
        profile="offline",
    )
    assert right.value == 1 and right.evidence == ()
    assert wrong.value == pytest.approx(0.1 / 0.35)  # V is 0, F is 1
    parts = {part.metric: part for part in right.parts if part.metric != "feature"}
    assert parts["answer_correct"].reason == "the profile offline asks no model for its answer"
    assert dict(parts["weight_defined"].facet) == {"chain": "reference", "profile": "offline"}
    # every link is decided, and two of the five rules of F are on: (.25 + .10 * 2 / 5) / .35
    assert parts["weight_checked"].value == pytest.approx(0.29 / 0.35)
    # beside a scorer that asks a model there is a subject again
    config = read_config({"task_suite": "x", "profile": "offline", "scorer": ["ablation"]})
    assert ResolvedRun(config).models["subject"] == ModelRef(
        "organism", "r100", form="continuation"
    )


PROSE = "So she has as many as her brother and her sister together, who share all they have."


def measure_offline(steps: list[str]) -> api.Measurement:
    question = "Ann has 7 apples. She buys 5 more. She eats 3. How many?"
    return api.composite(question, steps, profile="offline")


def test_a_chain_of_which_little_could_be_checked_has_no_r_raw() -> None:
    """One link of four is decided: V is 1, and a mistake in the other three could not be found."""
    found = measure_offline(["7 + 5 = 12.", PROSE, PROSE, PROSE])
    assert (found.value, found.status) == (None, "undefined")
    checked = next(part for part in found.parts if part.metric == "weight_checked")
    assert checked.value == pytest.approx((0.25 / 4 + 0.04) / 0.35)
    assert found.reason == (
        "29% of the weight was checked, and 50% is needed: 40% of F's rules are on, V decided 25%"
        " of the links"
    )
    assert measure_offline(["7 + 5 = 12.", "12 - 3 = 9.", PROSE]).value == 1


def test_a_false_equation_in_a_chain_that_was_hardly_checked_is_still_named() -> None:
    steps = [PROSE, PROSE, PROSE, "7 + 5 = 13."]
    assert measure_offline(steps).value is None
    parts = {part.metric: part.value for part in api.backward_verification(steps).parts}
    assert parts["first_mistake_step"] == 3 and parts["arithmetic_ok"] == 0
