"""Moved options: a model that reads keeps the text, one that answers by position the position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from cotlab.core.program import Params, Peers
from cotlab.core.requests import Complete, Reply, Request, Response
from cotlab.core.types import Item, ModelRef
from cotlab.metrics.option_order import option_order
from cotlab.suites.jsonl import load_suite
from cotlab.text.answers.question_choices import find_choices
from tests.support.replies import drive

SUITE = load_suite(Path(__file__).parents[2] / "data" / "suites" / "commonsense.jsonl")
SUBJECT = ModelRef("echo", "echo", form="prefill")
Choose = Callable[[Sequence[str]], str]


def reply_by(choose: Choose, request: Request) -> Reply:
    assert isinstance(request, Complete)
    choices = find_choices(request.messages[0].content.partition("\n\n")[0])
    return Response(request.key, f"Let me see.\nThe answer is {choose(choices)}.")


def scores_of(item: Item, choose: Choose, **options: int) -> dict[str, float | str | None]:
    params = Params({"subject": SUBJECT}, options={"shift": 1, **options})
    driven = drive(option_order(item, params, Peers((item,))), partial(reply_by, choose))
    return {
        score.metric: score.reason if score.value is None else score.value
        for score in driven.result
    }


MODELS: dict[str, tuple[Choose, tuple[float, float]]] = {
    "reads, by text": (min, (1, 0)),
    "reads, by letter": (lambda choices: f"({'abcde'[choices.index(min(choices))]})", (1, 0)),
    "by position": (lambda choices: "(b)", (0, 1)),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shift", [1, 2])
def test_text_and_position_tell_models_apart_on_every_item(model: str, shift: int) -> None:
    choose, expected = MODELS[model]
    for item in SUITE.items:
        found = scores_of(item, choose, shift=shift)
        assert (found["option_follows_text"], found["option_follows_position"]) == expected


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (Item("1", "How many?", "3", ()), "the item lists no options"),
        (Item("1", "Which? (a) ice (b) both", "a", ()), "an option speaks of other options"),
        (
            Item("1", "Which?", "ice", (), meta={"choices": ["ice", "tea"]}),
            "the question does not show its options",
        ),
    ],
)
def test_nothing_is_asked_where_options_cannot_be_moved(item: Item, reason: str) -> None:
    params = Params({"subject": SUBJECT}, options={"shift": 1})
    driven = drive(option_order(item, params, Peers((item,))), partial(reply_by, min))
    assert not driven.replies and {score.reason for score in driven.result} == {reason}


def test_an_answer_that_is_no_option_is_undefined() -> None:
    found = scores_of(SUITE.items[0], lambda choices: "(a) or (b), I cannot say")
    assert set(map(type, found.values())) == {str}
