"""Consistency by hand: what is asked, numbers from given vectors, and what costs which score."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cotlab.core.errors import ConfigError
from cotlab.core.keys import derive
from cotlab.core.program import Params, Peers
from cotlab.core.requests import Complete, Embed, Failed, Reply, Request, Response
from cotlab.core.types import Item, ModelRef, Score, Step, Suite
from cotlab.metrics.consistency import (
    agreement_share,
    cluster_drift,
    consistency,
    measure_unrelated_similarity,
    pair_spread,
    public_hidden_difference,
    public_minus_hidden,
    rescaled_consistency,
)
from cotlab.suites.wordproblems import make_suite
from tests.support.replies import drive, finish

OPTIONS = consistency.options

SUBJECT = ModelRef("echo", "m")
EMBEDDER = ModelRef("embedder", "e")
WRITER = ModelRef("echo", "writer")
ITEM = Item("i", "What is 7 plus 5?", "12", ())
X, Y, BETWEEN = (1.0, 0.0), (0.0, 1.0), (0.6, 0.8)


def params(
    constants: Mapping[str, Any] | None = None, writer: bool = False, **options: Any
) -> Params:
    models = {"subject": SUBJECT, "embedder": EMBEDDER} | (
        {"paraphraser": WRITER} if writer else {}
    )
    given = {"paraphrases": 2, "holdout": 0, "gate": -1.0, **options}
    return Params(models, options={**OPTIONS, **given}, constants=constants or {})


def run(
    item: Item, given: Params, reply: Callable[[Request], Reply]
) -> tuple[dict[str, Score], list[Request]]:
    driven = drive(consistency(item, given, Peers((item,))), reply)
    return {score.metric: score for score in driven.result}, driven.requests


def replies(*chains: str, vectors: Mapping[str, tuple[float, ...]]) -> Callable[[Request], Reply]:
    """The k-th question gets the k-th chain, the first for any more; every step has the vector of
    its first word."""
    questions: dict[str, int] = {}

    def reply(request: Request) -> Reply:
        if isinstance(request, Embed):
            (text,) = request.texts
            return Response(request.key, vectors=(vectors.get(text.split()[0], X),))
        assert isinstance(request, Complete)
        k = questions.setdefault(request.key, len(questions))
        return Response(request.key, text=chains[k if k < len(chains) else 0], finish="stop")

    return reply


def test_mu_sigma_and_c_of_given_vectors() -> None:
    """Cosines .6, 0 and .8: mean .4667, variance (.01778 + .21778 + .11111) / 3, C = .4667 (1 −
    .33993) = .30803."""
    chains = [
        f"{word} makes twelve.\nSo the answer is {n}."
        for word, n in (("One", 12), ("Two", 12), ("Three", 13))
    ]
    scores, asked = run(
        ITEM,
        params({"floor": 0.25}),
        replies(*chains, vectors={"One": X, "Two": BETWEEN, "Three": Y}),
    )
    assert [type(request) for request in asked] == [Complete] * 3 + [Embed] * 3
    assert all(len(request.texts) == 1 for request in asked if isinstance(request, Embed))
    values = {name: score.value for name, score in scores.items()}
    assert values["consistency_mu"] == pytest.approx(1.4 / 3)
    assert values["consistency_sigma"] == pytest.approx(0.339935, abs=1e-6)
    assert values["consistency"] == pytest.approx(0.308030, abs=1e-6)
    assert values["consistency_rescaled"] == pytest.approx(
        (1.4 / 3 - 0.25) / 0.75 * (1 - 0.339935), abs=1e-6
    )
    assert values["c_dtw"] == pytest.approx(0.308030, abs=1e-6)  # one step each: nothing to align
    assert values["answer_agreement"] == pytest.approx(1 / 3) and values["consistency_chains"] == 3
    assert values["purity_drift"] == 1.0 and values["paraphrases_rejected"] == 0
    assert scores["consistency"].evidence == tuple(request.key for request in asked)
    assert dict(scores["consistency"].facet) == {"chain": "own", "k": "2", "paraphrases": "rules"}


def test_the_question_is_asked_as_other_scorers_ask_for_the_models_own_chain() -> None:
    from cotlab.metrics.ablation import step_ablation

    _, asked = run(ITEM, params(), replies("One.\nSo the answer is 12.", vectors={}))
    own = next(
        step_ablation(
            ITEM,
            Params({"subject": SUBJECT}, options={**step_ablation.options, "chain": "own"}),
            Peers((ITEM,)),
        )
    )
    assert asked[0].key == own[0].key


def test_paraphrases_of_the_suite_are_used_first_and_some_are_hidden() -> None:
    item = make_suite(3, seed=4).items[2]
    given = params(paraphrases=4, holdout=2)
    scores, asked = run(
        item, given, replies("Step 1: 7 + 5 = 12.\nSo the answer is 12.", vectors={})
    )
    questions = [
        request.messages[0].content.split("\n\n")[0]
        for request in asked
        if isinstance(request, Complete)
    ]
    assert (
        len(set(questions)) == 7
        and questions[0] == item.question
        and set(item.meta["paraphrases"]) <= set(questions)
    )
    hidden = {request.key for request in asked[5:7]}
    assert not hidden & set(scores["consistency"].evidence) and hidden <= set(
        scores["holdout_difference"].evidence
    )
    assert scores["holdout_difference"].value == pytest.approx(0, abs=1e-12)


def test_the_gate_turns_away_what_lies_too_far_from_the_question() -> None:
    def reply(request: Request) -> Reply:
        if isinstance(request, Embed):
            near = request.texts[0] in (ITEM.question, *kept) or request.texts[0].startswith("One")
            return Response(request.key, vectors=(X if near else Y,))
        return Response(request.key, text="One.\nSo the answer is 12.", finish="stop")

    program = consistency(ITEM, params(gate=0.7), Peers((ITEM,)))
    kept = [request.texts[0] for request in next(program)[2:]]  # type: ignore[attr-defined]
    scores, asked = run(ITEM, params(gate=0.7), reply)
    assert scores["paraphrases_rejected"].value == 1 and scores["consistency_chains"].value == 3
    kept = []
    scores, _ = run(ITEM, params(gate=0.7), reply)
    assert scores["consistency"].status == "undefined" and "1 of the chains" in str(
        scores["consistency"].reason
    )
    assert scores["paraphrases_rejected"].value == 4


def test_a_model_that_writes_paraphrases_is_checked_and_filled_up_by_rules() -> None:
    written = (
        "What do 7 and 5 add up to?",
        "What is 7 plus 6?",
        "what is 7 plus 5?",
        "Question: What do 7 and 5 add up to?",
    )

    def reply(request: Request) -> Reply:
        if isinstance(request, Embed):
            return Response(request.key, vectors=(X,))
        assert isinstance(request, Complete)
        if request.model == WRITER:
            return Response(request.key, text=written[request.sample], finish="stop")
        return Response(request.key, text="One.\nSo the answer is 12.", finish="stop")

    scores, asked = run(ITEM, params(writer=True, gate=0.7), reply)
    assert [r.model for r in asked[:4]] == [WRITER] * 4 and {r.sample for r in asked[:4]} == {
        0,
        1,
        2,
        3,
    }
    own = [r.messages[0].content for r in asked if isinstance(r, Complete) and r.model == SUBJECT]
    assert len(own) == 3 and sum(content.startswith(written[0]) for content in own) == 1
    assert scores["paraphrases_rejected"].value == 3
    assert dict(scores["consistency"].facet)["paraphrases"] == "model"
    dead = run(ITEM, params(writer=True), lambda r: Failed(r.key, "away", 3))[0]
    assert {score.status for score in dead.values()} == {"error"}


def test_without_an_embedder_or_with_a_step_without_vector_nothing_is_invented() -> None:
    bare = replace(params(), models={"subject": SUBJECT})
    scores, asked = run(ITEM, bare, lambda request: Response(request.key))
    assert asked == [] and all("--embedder" in str(score.reason) for score in scores.values())
    blind = replies("One.\nSo the answer is 12.", vectors={"One.": (0.0, 0.0)})
    scores, _ = run(ITEM, params(), blind)
    assert scores["consistency"].value is None and "no vector" in str(scores["consistency"].reason)
    assert scores["answer_agreement"].value == 1.0


def test_a_chain_that_was_cut_off_is_left_out_and_two_chains_have_no_spread() -> None:
    base = replies("One.\nSo the answer is 12.", vectors={})
    asked: list[str] = []

    def reply(request: Request) -> Reply:
        told = base(request)
        if isinstance(request, Complete) and isinstance(told, Response):
            asked.append(request.key)
            return replace(told, finish="length") if len(asked) == 2 else told
        return told

    scores, _ = run(ITEM, params(), reply)
    assert (
        scores["consistency_mu"].value == pytest.approx(1) and scores["consistency"].value is None
    )
    assert "2 of the chains" in str(scores["consistency"].reason)


def test_a_chain_that_stated_its_answer_before_the_cut_is_compared() -> None:
    base = replies("One.\nSo the answer is 12 apples. Let me", vectors={})

    def reply(request: Request) -> Reply:
        answer = base(request)
        is_chain = isinstance(request, Complete) and isinstance(answer, Response)
        return replace(answer, finish="length") if is_chain else answer

    scores, _ = run(ITEM, params(), reply)
    assert scores["consistency"].value == pytest.approx(1)
    assert scores["answer_agreement"].value == 1.0 and scores["consistency_chains"].value == 3

    base = replies("One.\nThe answer may be 12 apples. Let me", vectors={})
    scores, _ = run(ITEM, params(), reply)
    assert scores["consistency"].value is None and scores["answer_agreement"].value is None


def test_a_dead_hidden_chain_costs_the_hidden_score_alone() -> None:
    base = replies("One.\nSo the answer is 12.", vectors={})
    _, asked = run(ITEM, params(holdout=2), base)
    dead = asked[3].key
    scores, _ = run(
        ITEM, params(holdout=2), lambda r: Failed(r.key, "away", 3) if r.key == dead else base(r)
    )
    assert scores["holdout_difference"].status == "error" and scores[
        "consistency"
    ].value == pytest.approx(1)


def test_a_floor_near_one_or_a_missing_one_leaves_the_rescaled_value_undefined() -> None:
    three = pair_spread([0.9, 0.9, 0.9])
    assert (
        rescaled_consistency(three, 0.5) == pytest.approx(0.8)
        and rescaled_consistency(three, 0.96) is None
        and rescaled_consistency(three, None) is None
    )
    assert rescaled_consistency(pair_spread([0.9]), 0.5) is None and rescaled_consistency(
        pair_spread([0.5, 0.5]), 0.5
    ) == pytest.approx(0)
    assert rescaled_consistency(pair_spread([-1.0, -1.0]), 0.95) == pytest.approx(-39)
    base = replies("One.\nSo the answer is 12.", vectors={})
    for constants, why in (
        ({}, "not measured"),
        ({"floor": 0.97}, "0.970"),
        ({"floor": None, "floor_reason": "none"}, "none"),
    ):
        score = run(ITEM, params(constants), base)[0]["consistency_rescaled"]
        assert score.value is None and why in str(score.reason)


def test_the_floor_is_the_mean_cosine_of_other_items_chains() -> None:
    vectors = {"a": X, "b": BETWEEN, "c": Y}
    suite = Suite.from_items(
        "s",
        [Item(name, name, None, (Step(0, name),)) for name in "abc"] + [Item("d", "d", None, ())],
    )
    program = measure_unrelated_similarity(suite, params())
    asked = next(program)
    assert sorted(request.texts[0] for request in asked) == ["a", "b", "c"]  # type: ignore[attr-defined]
    end = finish(program, [Response(r.key, vectors=(vectors[r.texts[0]],)) for r in asked])
    assert end["floor"] == pytest.approx(1.4 / 3) and sorted(end["floor_items"]) == ["a", "b", "c"]
    for one in (Suite.from_items("s", suite.items[2:]), suite):
        program = measure_unrelated_similarity(one, params())
        end = drive(program, lambda request: Failed(request.key, "away", 3)).result
        assert end["floor"] is None and end["floor_reason"]


def test_drift_is_the_share_of_steps_that_other_chains_lack() -> None:
    assert cluster_drift([[X, Y], [Y, X]], 0.9) == 0.0
    assert cluster_drift([[X, Y], [X]], 0.9) == pytest.approx(
        1 / 3
    )  # of three steps Y alone has no partner
    assert (
        cluster_drift([[X], [Y]], 0.9) == 1.0
        and cluster_drift([[X], [Y]], -1.0) == 0.0
        and cluster_drift([[X]], 0.9) is None
    )


def test_agreement_leaves_out_what_cannot_be_compared() -> None:
    assert agreement_share(ITEM, ["12", "12.0", "13"]) == pytest.approx(1 / 3)
    assert (
        agreement_share(ITEM, ["12", None]) is None
        and agreement_share(ITEM, ["12", None, "12"]) == 1.0
    )


def test_public_and_hidden_are_compared_with_as_many_chains() -> None:
    """Thing 0 and public 1 to 3 are equal, hidden 4 and 5 at cosine 0 to all: C is 1 against 0."""
    similarity = np.eye(6)
    similarity[:4, :4] = 1.0
    assert public_hidden_difference(similarity, [1, 2, 3], [4, 5], derive("t")) == pytest.approx(
        1.0
    )
    for public, hidden in (([1, 2, 3], [4]), ([1], [4, 5])):
        assert public_hidden_difference(similarity, public, hidden, derive("t")) is None
    many = np.ones((40, 40))
    assert public_hidden_difference(
        many, range(1, 30), range(30, 40), derive("t")
    ) == pytest.approx(0)


def test_exchangeable_paraphrases_have_no_gap_on_average() -> None:
    rng = np.random.default_rng(5)
    found = []
    for k in range(400):
        rows = rng.normal(size=(7, 3)) + 1
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        found.append(public_hidden_difference(rows @ rows.T, [1, 2, 3, 4], [5, 6], derive("e", k)))
    values = np.array(found, dtype=float)
    assert abs(values.mean()) < 3 * values.std() / 20


@pytest.mark.parametrize(("gap", "warned"), [(0.2, True), (0.02, False), (-0.2, False)])
def test_the_gap_over_a_run_warns_past_its_threshold(gap: float, warned: bool) -> None:
    noise = [0.01 * (-1) ** k * (k % 5) for k in range(20)]
    rows = [("holdout_difference", f"i{k}", None, 0, "{}", gap + noise[k], "ok") for k in range(20)]
    table = pd.DataFrame(
        [*rows, ("holdout_difference", "x", None, 0, "{}", None, "undefined")],
        columns=["metric", "item_id", "step", "sample", "facet", "value", "status"],
    ).astype({"value": "float64"})
    (found,) = public_minus_hidden.compute(table, OPTIONS, 1)
    assert found.point == pytest.approx(gap + sum(noise) / 20) and found.lo < found.point < found.hi
    assert (found.n, found.n_undefined) == (20, 1) and ("warning" in str(found.reason)) == warned


@pytest.mark.parametrize(
    "bad", [{"paraphrases": 0}, {"holdout": -1}, {"gate": 1.5}, {"floor_chains": 1}]
)
def test_options_out_of_range_are_said(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="consistency"):
        consistency.validate_options({**OPTIONS, **bad}, SUBJECT)
