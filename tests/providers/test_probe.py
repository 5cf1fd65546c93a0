"""What each check of a server says of a model whose treatment of requests is known."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.provider import Finding
from cotlab.core.requests import Complete, Failed, Message, Reply, Response, Usage
from cotlab.core.types import ModelRef
from cotlab.providers.continuation import cut_at_stop
from cotlab.providers.finding_texts import CHECK_LABELS, unchecked_text
from cotlab.providers.probe import (
    CHAIN_NUMBERS,
    CHECKS,
    MAX_REQUESTS,
    CheckNeeds,
    run_checks,
)

REF = ModelRef("openai_compat", "m", form="prefill")
ASKED = Complete(REF, (Message("user", "How many are 3 and 4?"),), prefix="The answer is")
LONG = replace(ASKED, messages=(Message("user", "Some word. " * 300),))
NEEDS = CheckNeeds(
    ASKED, prefix=True, greedy=True, seeded_temperature=0.7, system=True, stop=True, longest=LONG
)
COUNTED = "one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve"
Answer = Callable[[Complete], Reply]


def words_of(request: Complete) -> list[str]:
    texts = [request.system, *(message.content for message in request.messages), request.prefix]
    return " ".join(texts).split()


def answer(
    request: Complete,
    *,
    text: str = COUNTED,
    new_turn: bool = False,
    seeds: bool = True,
    stops: bool = True,
    system: bool = True,
    context: int = 10**6,
    template: int = 12,
    max_choices: int = 4,
) -> Reply:
    """A model whose tokens are words; ``template``: those that it adds to every prompt."""
    given = "" if new_turn else request.prefix
    rest = text[len(given) :] if text.startswith(given) else " 7."
    if request.temperature:
        effective = (request.seed or 0) + request.sample if seeds else request.sample
        rest = " ".join(Random(effective).choices("abcdefgh", k=20))
    said = "".join(re.findall(r"\s*\S+", rest)[: request.max_tokens])
    if stops and request.stop:
        said = said.partition(request.stop[0])[0]
    n_read = len(words_of(request if system else replace(request, system=""))) + template
    usage = Usage(min(n_read, context), len(said.split()))
    n_choices = min(request.n_choices, max_choices) if request.n_choices > 1 else None
    response = Response(request.key, text=said, usage=usage, n_choices=n_choices)
    return cut_at_stop(request.stop, response)  # as the provider does


def findings(model: Answer, needs: CheckNeeds = NEEDS, *names: str) -> dict[str, Finding]:
    program = run_checks(needs, names or tuple(CHECKS), 1_700_000_000_000)
    requests = []
    try:
        requests.append(next(program))
        while True:
            requests.append(program.send(model(requests[-1])))
    except StopIteration as end:
        assert len(requests) <= MAX_REQUESTS
        assert len({request.key for request in requests}) == len(requests)
        assert isinstance(end.value, dict)
        return end.value


def test_a_server_without_faults() -> None:
    assert findings(answer)["stop"] == Finding(
        "unknown", "not checked: at most 10 requests are made"
    )
    names = set(CHECKS) - {"system", "choices", "user_chain"}
    found = findings(answer, replace(NEEDS, system=False), *names)
    assert {name: finding.verdict for name, finding in found.items()} == {
        "prefix": "continued",
        "logprobs": "absent",
        "reasoning": "none",
        "long_prompt": "whole",
        "greedy": "same reply",
        "seed": "honoured",
        "stop": "honoured",
    }


@pytest.mark.parametrize(
    ("name", "model", "verdict"),
    [
        ("prefix", lambda r: answer(r, new_turn=True), "new turn"),
        ("seed", lambda r: answer(r, seeds=False), "ignored"),
        ("stop", lambda r: answer(r, stops=False), "ignored"),
        ("stop", lambda r: Failed(r.key, "500", 1) if r.stop else answer(r), "refused"),
        ("system", lambda r: answer(r, system=False), "dropped"),
        ("system", answer, "read"),
        ("long_prompt", lambda r: answer(r, context=400), "cut"),
        ("long_prompt", lambda r: answer(r, context=60), "cut"),
        (
            "long_prompt",
            lambda r: answer(r) if len(words_of(r)) < 500 else Failed(r.key, "too long", 1, True),
            "refused",
        ),
        ("greedy", lambda r: answer(r, text=f"{r.sample} {COUNTED}"), "other reply"),
        ("reasoning", lambda r: answer(r, text=f"[THINK]Hm.[/THINK]{COUNTED}"), "in the reply"),
        ("reasoning", lambda r: answer(r, text=f"<|ponder|>Hm.<|reply|>{COUNTED}"), "not read"),
    ],
)
def test_a_fault_is_seen(name: str, model: Answer, verdict: str) -> None:
    assert findings(model, NEEDS, name)[name].verdict == verdict


@pytest.mark.parametrize("names", [("choices",), ("seed", "choices")])
def test_two_draws_in_one_call(names: tuple[str, ...]) -> None:
    def rejecting(request: Complete) -> Reply:
        return Failed(request.key, "n is 1", 1, True) if request.n_choices > 1 else answer(request)

    needs = replace(NEEDS, n_draws=5)
    assert findings(answer, needs, *names)["choices"] == Finding("given", count=2)
    ignored = findings(lambda r: answer(r, max_choices=1), needs, *names)
    assert ignored["choices"] == Finding("one reply", count=1)
    rejected = findings(rejecting, needs, *names)
    assert rejected["choices"] == Finding("refused", "n is 1")
    assert rejected.get("seed", Finding("honoured")).verdict == "honoured"


def test_a_check_of_everything_but_stop_texts_has_ten_requests() -> None:
    found = findings(answer, replace(NEEDS, n_draws=2), *(set(CHECKS) - {"stop"}))
    assert not any("not checked" in finding.detail for finding in found.values())


@pytest.mark.parametrize("max_requests", range(2, 16))
def test_the_check_of_chains_comes_before_those_that_only_tell_noise(max_requests: int) -> None:
    chains = tuple(
        replace(NEEDS.request, prefix="", messages=(Message("user", f"It is {number}."),))
        for number in CHAIN_NUMBERS
    )
    needs = replace(NEEDS, user_chain=chains, n_draws=2)
    program = run_checks(needs, tuple(CHECKS), 1_700_000_000_000, max_requests)
    n_requests, reply = 0, None
    try:
        while True:
            request = program.send(reply) if reply is not None else next(program)
            n_requests, reply = n_requests + 1, answer(request)
    except StopIteration as end:
        found = end.value
    assert n_requests <= max_requests and found.keys() == CHECKS.keys()
    left_out = {name for name in found if found[name].detail.startswith("not checked: ")}
    for earlier, later in pairwise(("user_chain", "long_prompt", "greedy", "system")):
        assert later in left_out or earlier not in left_out or earlier == "long_prompt"
    n_left = max_requests - n_requests  # none is left where a check of one request was left out
    assert not left_out & {"user_chain", "greedy", "system", "choices", "stop"} or n_left == 0
    text = unchecked_text(found)
    assert all(CHECK_LABELS[name] in text for name in left_out) and bool(text) == bool(left_out)
    assert unchecked_text({}).startswith("Not checked (not a part of this check): Assistant prefix")


@given(st.integers(0, 400), st.integers(10, 600), st.sampled_from([0.7, 1.0, 1.4, 4.0]))
def test_a_prompt_that_is_read_whole_is_never_called_cut(
    template: int, n_words: int, tokens_per_word: float
) -> None:
    def model(request: Complete) -> Reply:
        reply = answer(request)
        assert isinstance(reply, Response)
        n_tokens = int(len(words_of(request)) * tokens_per_word) + template
        return replace(reply, usage=Usage(n_tokens, 3))

    longest = replace(ASKED, messages=(Message("user", "word " * n_words),))
    needs = replace(NEEDS, longest=longest)
    assert findings(model, needs, "long_prompt")["long_prompt"].verdict == "whole"


@given(st.integers(14, 590))
def test_a_prompt_that_is_cut_is_called_so(context: int) -> None:
    needs = replace(NEEDS, longest=replace(ASKED, messages=(Message("user", "word " * 600),)))
    found = findings(lambda r: answer(r, context=context), needs, "long_prompt")
    assert found["long_prompt"].verdict == "cut" or context > 560


def test_a_new_turn_is_seen_where_the_model_answers_in_a_word() -> None:
    """A model that is asked to count writes enough to be cut in two."""
    for new_turn, verdict in ((True, "new turn"), (False, "continued")):

        def model(request: Complete, new_turn: bool = new_turn) -> Reply:
            is_counting = "Count" in request.messages[0].content
            return answer(request, text=COUNTED if is_counting else "7.", new_turn=new_turn)

        assert findings(model, NEEDS, "prefix")["prefix"].verdict == verdict


def test_a_server_that_rejects_log_probabilities_is_asked_without() -> None:
    needs = replace(NEEDS, logprobs=5)

    def model(request: Complete) -> Reply:
        return Failed(request.key, "no field", 1, True) if request.top_logprobs else answer(request)

    found = findings(model, needs)
    assert (found["logprobs"].verdict, found["logprobs"].detail) == ("refused", "no field")
    assert found["prefix"].verdict == "continued"
