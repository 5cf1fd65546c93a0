"""Replies that were cut off: a chain's last fragment is no step, and no words are compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from cotlab.core.program import Params, Peers
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Embed, Reply, Request, Response, Token
from cotlab.core.types import Item, ModelRef, Score, Step
from tests.support.replies import drive, finish

SUBJECT = ModelRef("openai_compat", "m")
TEXT = "Step 1: 4 + 5 = 9.\nStep 2: 9 - 3 = 6.\n"
# the fragment of "Step 3: 6 + 34 = 40 = 8 * 5"
CUT_TEXT = f"{TEXT}Step 3: 6 + 34 = 4"
ITEM = Item("i", "A has 4, 5, 3 and 34 pens. How many are left?", "40", (), "", {"tools": []})


def measure(name: str, text: str, finish: str) -> tuple[Score, ...]:
    """Return the scores of the model's own chain ``text``."""
    scorer = SCORERS[name]
    own = {"chain": "own"} if "chain" in scorer.options else {}
    models = {"subject": SUBJECT, "embedder": ModelRef("local", "e")}
    params = replace(Params(models), options={**scorer.options, **own})
    scores: Sequence[Score] = drive(
        scorer(ITEM, params, Peers((ITEM,))), lambda request: reply(request, text, finish)
    ).result
    return tuple(scores)


def reply(request: Request, text: str, finish: str) -> Reply:
    """Answer a request for a chain with ``text``, any other with a number or a vector."""
    if isinstance(request, Embed):
        return Response(request.key, vectors=((1.0, 0.0),))
    if "Reason step by step" not in request.messages[-1].content:
        return Response(request.key, "So the answer is 40.")
    top = (("a", math.log(0.5)), ("b", math.log(0.5)))
    tokens = tuple(Token(char, math.log(0.5), top) for char in text)
    return Response(request.key, text, tokens=tokens, finish=finish)


@pytest.mark.parametrize("name", ["verification", "flags", "entropy", "tool_trace"])
def test_scorers_of_steps_read_the_complete_ones(name: str) -> None:
    scores = measure(name, CUT_TEXT, "length")
    complete = measure(name, TEXT, "stop")
    assert [(s.metric, s.step, s.value) for s in scores] == [
        (s.metric, s.step, s.value) for s in complete
    ]
    assert any(s.value is not None for s in scores)


def test_a_number_that_was_cut_is_no_mistake() -> None:
    values = {s.metric: s.value for s in measure("verification", CUT_TEXT, "length")}
    assert (values["first_mistake_step"], values["arithmetic_ok"]) == (None, 1.0)


@pytest.mark.parametrize("name", ["ablation", "robustness", "repair", "unfaithfulness"])
def test_scorers_of_what_a_chain_leads_to_need_the_whole_chain(name: str) -> None:
    scores = measure(name, CUT_TEXT, "length")
    own = [s for s in scores if "hint" not in (s.metric[:4], dict(s.facet).get("classifier"))]
    assert own and all(s.value is None for s in own)
    assert {s.reason for s in own} == {"the model's own chain was cut off: --chain-tokens"}


@pytest.mark.parametrize("name", ["ablation", "robustness"])
def test_a_chain_that_states_its_answer_before_the_cut_is_whole(name: str) -> None:
    scores = measure(name, f"{TEXT}So the answer is 6.\nQuestion: what", "length")
    assert any(s.value is not None for s in scores)


def test_the_words_of_a_cut_reply_are_not_compared() -> None:
    """What a cut reply would have said further is unknown, whatever answer it states before."""
    ablation, item = SCORERS["ablation"], replace(ITEM, steps=(Step(0, "4 + 5"), Step(1, "36")))
    program = ablation(
        item, replace(Params({"subject": SUBJECT}), options=ablation.options), Peers((item,))
    )
    whole, cut = "So the answer is 40.", "So the answer is 40. Now a"
    replies = [
        Response(request.key, text, finish=end)
        for request, text, end in zip(
            next(program), (whole, cut, whole), ("stop", "length", "stop"), strict=True
        )
    ]
    scores = finish(program, replies)
    by_metric = {
        metric: [(s.value, s.reason) for s in scores if s.metric == metric]
        for metric in ("token_delta", "answer_change")
    }
    cut_reason = "a reply was cut off: --answer-tokens"
    assert by_metric["token_delta"] == [(None, cut_reason), (0.0, None)]
    assert by_metric["answer_change"] == [(0.0, None), (0.0, None)]
