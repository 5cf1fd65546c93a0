"""A reply without a readable answer is followed by one request for the answer alone."""

from __future__ import annotations

from typing import get_args

import pytest

from cotlab.core.program import Params, Peers
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Complete, Failed, Reply, Response
from cotlab.core.types import Form, Item, ModelRef
from cotlab.metrics.asked_answers import ask_unparsed_answers
from cotlab.text.prompts.chain import (
    answer_after_reply,
    answer_prompt,
    approach_prompt,
    continuation_prompt,
    critique_prompt,
)
from tests.support.replies import Driven, drive

CHAIN = "It is seven and five.\nTogether that makes a dozen apples or so."
ITEM = Item("1", "Ann has 7 apples and buys 5. How many?", "12", ())


def run(form: Form, second: str | None, *, text: str = CHAIN, finish: str = "stop") -> Driven:
    """Drive a scorer; ``text`` replies to each request, ``second`` to what follows that reply."""
    scorer = SCORERS["causal"]
    subject = ModelRef("echo", "echo", form=form)
    params = Params({"subject": subject}, options=dict(scorer.options))

    def reply(request: Complete) -> Reply:
        if not is_follow_up(request):
            return Response(request.key, text, finish=finish)
        if second is None:
            return Failed(request.key, "no route", 1)
        return Response(request.key, second)

    return drive(ask_unparsed_answers(scorer(ITEM, params, Peers((ITEM,))), ITEM, params), reply)


def is_follow_up(request: Complete) -> bool:
    said = [*(message.content for message in request.messages), request.prefix]
    return CHAIN in "\n".join(said)


@pytest.mark.parametrize("form", get_args(Form))
def test_the_answer_is_asked_for_once_and_is_evidence(form: Form) -> None:
    driven = run(form, " 12.")
    follow_ups = {request.key for request in driven.requests if is_follow_up(request)}
    assert len(follow_ups) == sum(map(is_follow_up, driven.requests)) > 0
    decided = [score for score in driven.result if score.value is not None]
    assert decided and all(follow_ups & set(score.evidence) for score in decided)


@pytest.mark.parametrize("second", [None, "I cannot say", "", "<|channel|>final 12"])
def test_a_second_reply_without_an_answer_changes_no_score(second: str | None) -> None:
    driven, plain = run("chat", second), run("chat", None)
    assert [(score.metric, score.value, score.reason) for score in driven.result] == [
        (score.metric, score.value, score.reason) for score in plain.result
    ]
    assert {score.status for score in driven.result} == {"undefined"}


@pytest.mark.parametrize(
    ("text", "finish"),
    [("So the answer is 12.", "stop"), (CHAIN, "length"), ("", "stop"), ("<|x|> 12", "stop")],
)
def test_nothing_is_asked_after_an_answer_a_cut_or_an_unread_reply(text: str, finish: str) -> None:
    assert not any(map(is_follow_up, run("chat", " 12.", text=text, finish=finish).requests))


@pytest.mark.parametrize("form", get_args(Form))
def test_each_form_of_prompt_is_followed_by_the_answer_prompt(form: Form) -> None:
    for prompt in (continuation_prompt("Q?", (), form), approach_prompt("Q?", 2, form)):
        after = answer_after_reply(prompt, CHAIN, form)
        assert after is not None and CHAIN in "".join(
            [after.prefix, *(message.content for message in after.messages)]
        )
    assert answer_after_reply(critique_prompt("Q?", ("a",)), CHAIN, form) is None
    again = answer_after_reply(answer_prompt("Q?", ("a",), form), CHAIN, form)
    assert (again is None) is (form != "chat")
