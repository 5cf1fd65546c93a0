"""Answers that conventions leave open: formulas are computed, words are put to a model."""

from __future__ import annotations

from typing import Any

import pytest

from cotlab.core.program import Params, Peers
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Complete, Entail, Reply, Request, Response
from cotlab.core.types import Item, ModelRef, Score, Step
from cotlab.metrics.kit import UNDECIDED_ANSWERS
from cotlab.run.config import read_config
from cotlab.run.resolved import ResolvedRun
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


@pytest.mark.parametrize(
    ("verdict", "value"),
    [("No.", 0), ("I cannot tell", None), ("", None), ("The second: yes", None)],
)
def test_a_model_that_says_neither_yes_nor_no_leaves_it_undecided(
    verdict: str, value: float | None
) -> None:
    driven = run(verdict, equivalence=DECIDER)
    assert correct(driven).value == value
    assert [s.value for s in driven.result if s.metric == "answers_by_model"] == [0]


def test_without_the_role_nothing_is_asked_and_nothing_stored() -> None:
    driven = run("Yes.")
    assert correct(driven).value is None and correct(driven).reason == UNDECIDED_ANSWERS
    assert {request.model for request in driven.requests} == {SUBJECT}
    assert not [score for score in driven.result if score.metric == "answers_by_model"]


@pytest.mark.parametrize(
    ("answer", "truth"), [("18", "19"), ("yes", "no"), ("5 km", "5 miles"), ("12:00", "2:00")]
)
def test_numbers_and_yes_or_no_are_not_put_to_a_model(answer: str, truth: str) -> None:
    item = Item("1", "How many?", truth, ITEM.steps)
    driven = run("Yes.", answer=answer, item=item, equivalence=DECIDER)
    assert correct(driven).value == 0
    assert {request.model for request in driven.requests} == {SUBJECT}


def test_formulas_are_computed_before_a_model_is_asked() -> None:
    """A verdict is a request like any other: what the log holds is not computed again."""
    item = Item("1", "Factor.", "2x + 2", ITEM.steps)
    computer = ModelRef("symbolic", "arithmetic-and-units")

    def reply(request: Request) -> Reply:
        if isinstance(request, Entail):
            return Response(request.key, numbers=(1.0,))
        return Response(request.key, " 2(x + 1).")

    params = Params(
        {"subject": SUBJECT, "symbolic": computer, "equivalence": DECIDER},
        options=dict(SCORERS["ablation"].options),
    )
    driven = drive(SCORERS["ablation"](item, params, Peers((item,))), reply)
    (asked,) = (request for request in driven.requests if isinstance(request, Entail))
    assert correct(driven).value == 1 and asked.key in correct(driven).evidence
    assert not [request for request in driven.requests if request.model == DECIDER]


def test_the_option_names_the_model_of_the_role() -> None:
    options = {"task_suite": "wordproblems", "provider": "echo", "model": "echo"}
    assert "equivalence" not in ResolvedRun(read_config(options)).models
    config = read_config({**options, "role": {"equivalence.model": "openai/gpt-4.1"}})
    assert ResolvedRun(config).models["equivalence"] == ModelRef("openai", "gpt-4.1")
