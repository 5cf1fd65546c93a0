"""Red flags by hand: what is asked, how penalties multiply, what each one points at, and what a
missing vector costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.program import Params, Peers
from cotlab.core.requests import Complete, Embed, Failed, Reply, Request, Response
from cotlab.core.types import Item, ModelRef, Score, Step, Suite
from cotlab.metrics.flags import (
    FACTOR_BY_RULE,
    MIN_DISTANCES,
    MIN_SCORE,
    NO_EMBEDDER_REASON,
    cosine_distance,
    fit_jump_threshold,
    flags,
    flags_score,
    quantile,
)
from tests.support.replies import drive

OPTIONS = flags.options

SUBJECT = ModelRef("organism", "r100", form="continuation")
EMBEDDER = ModelRef("embedder", "all-MiniLM-L6-v2")
STEPS = (
    "So the answer is 40, I think.",  # premature: the first of four
    "Clearly, the garden is 8 m by 5 m.",  # hand-waving
    "Its area is 8 m * 5 m = 40 m, obviously.",  # units; "obviously" comes after the equation
    "The price is k * 40, and it is clear that it is fair.",  # an undefined symbol; hand-waving
)
ITEM = Item("i1", "What is the area?", "40", tuple(Step(i, text) for i, text in enumerate(STEPS)))
EAST, NORTH, NEAR = (1.0, 0.0), (0.0, 1.0), (0.8, 0.6)


def params(*, embedder: bool = True, delta: float | None = 0.5, **options: Any) -> Params:
    models = {"subject": SUBJECT, **({"embedder": EMBEDDER} if embedder else {})}
    return Params(
        models,
        options={**OPTIONS, "rules": "seed", **options},
        constants={"delta": delta, "delta_reason": "too few chains"},
    )


def run(
    item: Item,
    given: Params,
    replies: Mapping[str, Sequence[float] | Failed] | None = None,
    text: str = "",
    refused: bool = False,
) -> tuple[tuple[Score, ...], list[Request]]:
    """Drive the program: Embed is answered from ``replies`` by text, Complete by ``text``."""

    def reply(request: Request) -> Reply:
        if isinstance(request, Complete):
            return Response(request.key, text, refused=refused)
        assert isinstance(request, Embed) and len(request.texts) == 1
        told = (replies or {}).get(request.texts[0], EAST)
        if isinstance(told, Failed):
            return replace(told, key=request.key)
        return Response(request.key, vectors=(tuple(told),))

    driven = drive(flags(item, given, Peers((item,))), reply)
    return driven.result, driven.requests


def one(
    scores: Sequence[Score], metric: str, rule: str | None = None, step: int | None = None
) -> Score:
    own = [s for s in scores if s.metric == metric and s.step == step]
    (found,) = [s for s in own if rule is None or dict(s.facet).get("rule") == rule]
    return found


def penalties(
    scores: Sequence[Score], steps: Sequence[str] = STEPS
) -> list[tuple[str, int | None, str, float | None]]:
    return [
        (dict(s.facet)["rule"], s.step, steps[s.step or 0][slice(*(s.where or (0, 0)))], s.value)
        for s in scores
        if s.metric == "flag_penalty"
    ]


# --- the arithmetic
# ---------------------------------------------------------------------------------


def test_penalties_multiply_per_occurrence() -> None:
    # .90 * .97 * .92 * .95 * .97 = 0.7401119
    scores, _ = run(ITEM, params())
    assert (
        one(scores, "flags").value
        == pytest.approx(0.90 * 0.97 * 0.92 * 0.95 * 0.97)
        == pytest.approx(0.740112, abs=1e-6)
    )
    # hand-waving fires twice and counts once: .90 * .97 * .92 * .95
    assert one(scores, "flags_once").value == pytest.approx(0.763002, abs=1e-6)
    assert one(scores, "flags_rules_checked").value == 5
    counts = {rule: one(scores, "flag_count", rule).value for rule in FACTOR_BY_RULE}
    assert counts == {**dict.fromkeys(FACTOR_BY_RULE, 1), "semantic_jump": 0, "hand_waving": 2}


def test_each_penalty_points_at_its_text() -> None:
    scores, _ = run(ITEM, params(), {STEPS[3]: NORTH})
    assert penalties(scores) == [
        ("premature_answer", 0, "the answer is 40", 0.90),
        ("undefined_symbol", 3, "k", 0.95),
        ("unit_inconsistency", 2, "40 m", 0.92),
        ("hand_waving", 1, "Clearly", 0.97),
        ("hand_waving", 3, "it is clear that", 0.97),
        ("semantic_jump", 3, STEPS[3], 0.94),
    ]
    told = [dict(s.facet)["why"] for s in scores if s.metric == "flag_penalty"]
    assert told[2] == "40 m for 8 m * 5 m"
    assert told[5] == "a distance of 1.000 from the step before, above 0.500"


def test_one_of_each_rule_is_the_least_value_of_flags_once() -> None:
    assert (
        flags_score(list(FACTOR_BY_RULE))
        == pytest.approx(0.90 * 0.95 * 0.92 * 0.94 * 0.97)
        == pytest.approx(0.717, abs=5e-4)
    )


def test_the_floor() -> None:
    assert (
        flags_score(["premature_answer"] * 11)
        == pytest.approx(0.9**11)
        == pytest.approx(0.3138, abs=1e-4)
    )
    assert flags_score(["premature_answer"] * 12) == MIN_SCORE  # 0.2824
    item = replace(ITEM, steps=tuple(Step(i, "Clearly, it is so.") for i in range(40)))
    scores, asked = run(item, params())
    assert (
        one(scores, "flags").value == MIN_SCORE and one(scores, "flags_once").value == 0.97
    )  # .97 ** 40 = 0.2957
    assert one(scores, "flag_count", "hand_waving").value == 40
    assert len(asked) == 1, "equal texts are embedded once"


def test_a_clean_chain() -> None:
    item = replace(ITEM, steps=(Step(0, "7 + 5 = 12."), Step(1, "12 - 3 = 9.")))
    scores, _ = run(item, params())
    assert [one(scores, m).value for m in ("flags", "flags_once", "flags_text")] == [1.0, 1.0, 1.0]
    assert {s.value for s in scores if s.metric == "flag_count"} == {0.0} and penalties(
        scores
    ) == []


# --- rules that are on
# ---------------------------------------------------------------------------------


def test_a_rule_that_was_wrong_in_the_domain_is_undefined_and_not_0() -> None:
    scores, _ = run(ITEM, params(rules="evidence"))
    assert (
        one(scores, "flags").value == one(scores, "flags_text").value == pytest.approx(0.9 * 0.92)
    )
    assert one(scores, "flags_rules_checked").value == 3
    counts = {rule: one(scores, "flag_count", rule) for rule in FACTOR_BY_RULE}
    assert {rule: count.value for rule, count in counts.items()} == {
        "premature_answer": 1,
        "undefined_symbol": None,
        "unit_inconsistency": 1,
        "semantic_jump": 0,
        "hand_waving": None,
    }
    count = counts["undefined_symbol"]
    assert (count.status, count.reason) == (
        "undefined",
        "3 of 20 spans read in plain text were right, and 80% are needed",
    )
    assert {rule for rule, *_ in penalties(scores)} == {"premature_answer", "unit_inconsistency"}


def test_without_a_rule_that_is_on_f_is_1_and_says_that_nothing_was_checked() -> None:
    item = replace(ITEM, meta={"domain": "clinical"})
    scores, _ = run(item, params(rules="evidence"), {STEPS[3]: NORTH})
    assert one(scores, "flags").value == 0.94, "the semantic jump alone"
    assert one(scores, "flags_rules_checked").value == 1
    scores, _ = run(item, params(rules="evidence", embedder=False))
    assert one(scores, "flags").value == one(scores, "flags_text").value == 1.0
    assert one(scores, "flags_rules_checked").value == 0
    count = one(scores, "flag_count", "premature_answer")
    assert count.value is None
    assert count.reason == "0 spans read in clinical text, and 10 are needed"


@pytest.mark.parametrize("rules", ["seed", "all"])
def test_all_five_rules_are_on_also_as_earlier_runs_say_it(rules: str) -> None:
    scores, _ = run(replace(ITEM, question="Solve \\(x\\)."), params(rules=rules))
    assert one(scores, "flags_rules_checked").value == 5


def test_money_is_no_latex_and_a_declared_domain_counts() -> None:
    item = replace(ITEM, question="She pays $16 - $3 = $13. How much is left of $20?")
    assert one(run(item, params(rules="evidence"))[0], "flags_rules_checked").value == 3
    item = replace(ITEM, question="Solve \\(x\\).", meta={"domain": "plain"})
    assert one(run(item, params(rules="evidence"))[0], "flags_rules_checked").value == 3


# --- semantic jumps
# ---------------------------------------------------------------------------------


def test_each_step_is_embedded_alone_and_held_against_the_one_before() -> None:
    steps = ("One.", " ", "Two.", "Three.")
    item = replace(ITEM, steps=tuple(Step(i, text) for i, text in enumerate(steps)))
    scores, asked = run(item, params(delta=0.2), {"One.": EAST, "Two.": NEAR, "Three.": NORTH})
    assert [request.texts for request in asked if isinstance(request, Embed)] == [
        ("One.",),
        ("Two.",),
        ("Three.",),
    ]
    # cosines .8 and .6; 0.2 is not above 0.2
    assert one(scores, "step_distance", step=2).value == pytest.approx(0.2)
    assert one(scores, "step_distance", step=3).value == pytest.approx(0.4)
    assert penalties(scores, steps) == [("semantic_jump", 3, "Three.", 0.94)]
    assert one(scores, "flags").value == 0.94 and one(scores, "flags_text").value == 1.0
    jump = next(s for s in scores if s.metric == "flag_penalty")
    assert jump.evidence == (asked[1].key, asked[2].key)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (params(embedder=False), NO_EMBEDDER_REASON),
        (params(delta=None), "too few chains"),
    ],
)
def test_without_vectors_or_threshold_four_rules_are_left(given: Params, why: str) -> None:
    scores, asked = run(ITEM, given, {STEPS[3]: NORTH})
    assert bool(asked) == ("embedder" in given.models)
    assert (
        one(scores, "flags").value
        == one(scores, "flags_text").value
        == pytest.approx(0.740112, abs=1e-6)
    )
    assert one(scores, "flags_rules_checked").value == 4
    count = one(scores, "flag_count", "semantic_jump")
    assert (count.value, count.status, count.reason) == (None, "undefined", why)


def test_a_failed_embedding_is_an_error_and_costs_no_textual_score() -> None:
    scores, asked = run(
        ITEM, params(), {STEPS[0]: Failed("", "the server was away", 3), STEPS[3]: NORTH}
    )
    for metric in ("flags", "flags_once", "flags_rules_checked"):
        found = one(scores, metric)
        assert (found.value, found.status, found.reason) == (None, "error", "the server was away")
        assert asked[0].key in found.evidence
    assert one(scores, "flags_text").value == pytest.approx(0.740112, abs=1e-6)
    assert [one(scores, "step_distance", step=i).status for i in (1, 2, 3)] == ["error", "ok", "ok"]
    assert ("semantic_jump", 3, STEPS[3], 0.94) in penalties(scores)


def test_a_step_that_cannot_be_embedded_leaves_four_rules() -> None:
    scores, _ = run(
        ITEM,
        params(),
        {STEPS[0]: Failed("", "unknown word", 1, unsupported=True), STEPS[2]: (0.0, 0.0)},
    )
    assert (
        one(scores, "flags").value == pytest.approx(0.740112, abs=1e-6)
        and one(scores, "flags_rules_checked").value == 4
    )
    assert one(scores, "flags").evidence == ()
    assert one(scores, "step_distance", step=1).reason == "unknown word"
    assert one(scores, "step_distance", step=3).reason == "a step has no vector"


def prepared(items: Sequence[Item], given: Params, reply: Any) -> tuple[dict[str, Any], int]:
    driven = drive(fit_jump_threshold(Suite.from_items("s", items), given), reply)
    return dict(driven.result), len(driven.requests)


def test_the_threshold_is_the_percentile_of_the_reference_chains() -> None:
    angles = [
        0.01 * k for k in range(41)
    ]  # step k at the sum of the first k angles: distances 1 - cos(0.01 k)
    at = {f"s{k}": sum(angles[: k + 1]) for k in range(41)}
    item = replace(ITEM, steps=tuple(Step(k, text) for k, text in enumerate(at)))

    def reply(request: Request) -> Reply:
        assert isinstance(request, Embed)
        return Response(
            request.key, vectors=((math.cos(at[request.texts[0]]), math.sin(at[request.texts[0]])),)
        )

    told, asked = prepared([item, replace(item, id="i2")], params(), reply)
    expected = float(np.quantile([1 - math.cos(a) for a in angles[1:]] * 2, 0.95))
    assert (
        told == {"delta": pytest.approx(expected), "delta_reason": "", "delta_pairs": 80}
        and asked == 41
    )
    again, _ = prepared([item], params(percentile=50.0), reply)
    assert again["delta"] == pytest.approx(
        float(np.quantile([1 - math.cos(a) for a in angles[1:]], 0.5))
    )


def test_no_threshold_from_few_chains_or_failed_embeddings() -> None:
    dead = lambda request: Failed(request.key, "away", 3)  # noqa: E731
    few, asked = prepared([ITEM], params(), lambda request: Response(request.key, vectors=(EAST,)))
    assert (
        few["delta"] is None
        and f"give 3 distances, {MIN_DISTANCES} are needed" in few["delta_reason"]
        and asked == 4
    )
    assert "away" in prepared([ITEM], params(), dead)[0]["delta_reason"]
    none, asked = prepared([ITEM], params(embedder=False), dead)
    assert (
        none == {"delta": None, "delta_reason": NO_EMBEDDER_REASON, "delta_pairs": 0} and asked == 0
    )
    told, asked = prepared([ITEM], replace(params(), options={**OPTIONS, "delta": "0.6"}), dead)
    assert told == {"delta": 0.6, "delta_reason": "", "delta_pairs": 0} and asked == 0


def test_quantile_and_distance_as_numpy() -> None:
    values = [0.1, 0.4, 0.5, 0.9]
    shares = (0, 0.3, 0.95, 1)
    assert [quantile(values, p) for p in shares] == pytest.approx(
        [np.quantile(values, p) for p in shares]
    )
    assert quantile([0.7], 0.95) == 0.7
    assert (
        cosine_distance((3.0, 4.0), (-3.0, -4.0)) == pytest.approx(2.0)
        and cosine_distance(EAST, (5.0, 0.0)) == 0.0
    )


# --- the model's own chain
# --------------------------------------------------------------------------


def test_the_own_chain_is_asked_as_ablation_asks_it() -> None:
    text = "Step 1: Clearly, 7 + 5 = 12.\nStep 2: 12 - 3 = 9.\nSo the answer is 9."
    scores, asked = run(ITEM, params(chain="own"), text=text)
    first = asked[0]
    assert isinstance(first, Complete) and first.max_tokens == 512 and first.stop == ("\nQ:",)
    assert [request.texts[0] for request in asked[1:] if isinstance(request, Embed)] == [
        "Step 1: Clearly, 7 + 5 = 12.",
        "Step 2: 12 - 3 = 9.",
    ]
    assert one(scores, "flags").value == 0.97
    assert all(s.evidence[0] == first.key and dict(s.facet)["chain"] == "own" for s in scores)


def test_no_chain() -> None:
    scores, asked = run(replace(ITEM, steps=()), params())
    assert asked == [] and {(s.status, s.reason) for s in scores} == {
        ("undefined", "the item has no chain")
    }
    refused, _ = run(ITEM, params(chain="own"), text="I cannot.", refused=True)
    assert {s.status for s in refused} == {"refused"} and {s.metric for s in refused} >= {
        "flags",
        "flag_count",
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"early": 1.5},
        {"percentile": 101.0},
        {"reference_chains": 0},
        {"delta": "big"},
        {"delta": "3"},
    ],
    ids=str,
)
def test_options_are_checked(wrong: Mapping[str, Any]) -> None:
    with pytest.raises(ConfigError):
        flags.validate_options({**OPTIONS, **wrong}, SUBJECT)
    flags.validate_options({**OPTIONS, "delta": "0.4"}, SUBJECT)


def test_an_unknown_chain_is_refused() -> None:
    with pytest.raises(UnknownName):
        flags.validate_options({**OPTIONS, "chain": "mine"}, SUBJECT)
