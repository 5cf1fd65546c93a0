"""Answers that rules call different, put to a model."""

from __future__ import annotations

from typing import Any

import pytest

from cotlab.core.program import Params, Peers
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Complete, Reply, Response
from cotlab.core.types import Item, ModelRef, Score, Step
from cotlab.run.config import read_config
from cotlab.run.roles import models_of
from tests.support.replies import Driven, drive

SUBJECT = ModelRef("echo", "echo", form="prefill")
DECIDER = ModelRef("echo", "decider")
ITEM = Item(
    "1", "Where does it flow?", "into the Black Sea", (Step(0, "It is long."), Step(1, "East."))
)


def run(verdict: str, *, answer: str = "the Black Sea", item: Item = ITEM, **roles: Any) -> Driven:
    scorer = SCORERS["ablation"]
    params = Params({"subject": SUBJECT, **roles}, options=dict(scorer.options))

    def reply(request: Complete) -> Reply:
        return Response(request.key, verdict if request.model == DECIDER else f" {answer}.")

    return drive(scorer(item, params, Peers((item,))), reply)


def correct(driven: Driven) -> Score:
    scores: list[Score] = [s for s in driven.result if s.metric == "baseline_correct"]
    assert len(scores) == 1
    return scores[0]


def test_the_model_decides_and_its_request_is_evidence() -> None:
    driven = run("Yes.", equivalence=DECIDER)
    (asked,) = (request for request in driven.requests if request.model == DECIDER)
    assert correct(driven).value == 1
    assert asked.key in correct(driven).evidence
    (count,) = (score for score in driven.result if score.metric == "answers_by_model")
    assert (count.value, count.evidence) == (1, (asked.key,))


@pytest.mark.parametrize("verdict", ["No.", "I cannot tell", "", "The second: yes"])
def test_anything_but_yes_leaves_the_rules_as_they_are(verdict: str) -> None:
    driven = run(verdict, equivalence=DECIDER)
    assert correct(driven).value == 0
    assert [s.value for s in driven.result if s.metric == "answers_by_model"] == [0]


def test_without_the_role_nothing_is_asked_and_nothing_stored() -> None:
    driven = run("Yes.")
    assert correct(driven).value == 0
    assert {request.model for request in driven.requests} == {SUBJECT}
    assert not [score for score in driven.result if score.metric == "answers_by_model"]


@pytest.mark.parametrize(("answer", "truth"), [("18", "19"), ("yes", "no"), ("5 km", "5 miles")])
def test_numbers_and_yes_or_no_are_not_put_to_a_model(answer: str, truth: str) -> None:
    item = Item("1", "How many?", truth, ITEM.steps)
    driven = run("Yes.", answer=answer, item=item, equivalence=DECIDER)
    assert correct(driven).value == 0
    assert {request.model for request in driven.requests} == {SUBJECT}


def test_the_option_names_the_model_of_the_role() -> None:
    options = {"task_suite": "wordproblems", "provider": "echo", "model": "echo"}
    assert "equivalence" not in models_of(read_config(options))
    config = read_config({**options, "equivalence": "openai/gpt-4.1"})
    assert models_of(config)["equivalence"] == ModelRef("openai", "gpt-4.1")
