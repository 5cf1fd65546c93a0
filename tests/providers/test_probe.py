"""What each question to a server finds of a model whose treatment of requests is known."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.errors import ProviderError, Unsupported
from cotlab.core.provider import Finding
from cotlab.core.requests import Complete, Failed, Message, Reply, Response, Token, Usage
from cotlab.core.types import ModelRef
from cotlab.providers.openai_compat import OpenAICompat
from cotlab.providers.probe import MAX_REQUESTS, ServerNeeds, ask_server, count_prompt_tokens
from tests.support.loopback import Loopback

PREFIX = "Step 1: 9 + 9 = 18.\nSo the answer is"
ASKED = Complete(
    ModelRef("openai_compat", "m", form="prefill"), (Message("user", "How many?"),), prefix=PREFIX
)
NEEDS = ServerNeeds(ASKED, prefix=True, logprobs=2, n_prompt_tokens=600)
PREFIX_NEEDS = ServerNeeds(ASKED, prefix=True)
LONG_NEEDS = ServerNeeds(ASKED, n_prompt_tokens=600)
COUNTED = "one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve"
CHAIN = "Step 1: 3 + 1 = 4.\nStep 2: 4 + 3 = 7.\nSo the answer is 7."
TOP = ((" 7", -0.5), (" 8", -1.5))
Answer = Callable[[Complete], Reply]


def answer(
    request: Complete,
    *,
    text: str = COUNTED,
    short: str = "",
    new_turn: bool = False,
    context: int = 10**6,
    template: int = 12,
) -> Reply:
    """A model whose tokens are words; ``short``: its reply where it is not asked to count;
    ``template``: tokens that it adds to every prompt."""
    text = short if short and "Count" not in request.messages[0].content else text
    start = "" if new_turn else request.prefix
    rest = text[len(start) :] if text.startswith(start) else " 7."
    words = re.findall(r"\s*\S+", rest)[: request.max_tokens]
    n_read = len(" ".join((request.messages[0].content, request.prefix)).split()) + template
    tokens = tuple(Token(word, -0.5, TOP) for word in words) if request.top_logprobs else ()
    usage = Usage(min(n_read, context), len(words))
    return Response(request.key, text="".join(words), tokens=tokens, usage=usage)


def rejecting(field: str) -> Answer:
    """A server that takes no requests with a field."""

    def model(request: Complete) -> Reply:
        is_rejected = bool(getattr(request, field))
        return Failed(request.key, "no field", 1, True) if is_rejected else answer(request)

    return model


def findings(model: Answer, needs: ServerNeeds = NEEDS) -> dict[str, Finding]:
    program, requests = ask_server(needs, 1_700_000_000_000), []
    try:
        requests.append(next(program))
        while True:
            requests.append(program.send(model(requests[-1])))
    except StopIteration as end:
        assert len(requests) <= MAX_REQUESTS == 4
        assert len({request.key for request in requests}) == len(requests)
        assert isinstance(end.value, dict)
        return end.value


def test_a_server_without_faults_is_asked_what_is_needed() -> None:
    found = findings(answer)
    assert {name: (finding.verdict, finding.count) for name, finding in found.items()} == {
        "prefix": ("continued", None),
        "logprobs": ("given", 2),
        "reasoning": ("none", None),
        "long_prompt": ("whole", 600),
    }
    assert findings(answer, PREFIX_NEEDS).keys() == {"prefix", "reasoning"}
    assert findings(answer, ServerNeeds(ASKED)).keys() == {"reasoning"}


@pytest.mark.parametrize(
    ("name", "model", "verdict"),
    [
        ("prefix", lambda r: answer(r, new_turn=True), "new turn"),
        ("prefix", rejecting("prefix"), "refused"),
        ("prefix", lambda r: answer(r, short="7."), "continued"),
        ("prefix", lambda r: answer(r, short="7.", new_turn=True), "new turn"),
        ("prefix", lambda r: answer(r, text="7."), "unknown"),
        ("logprobs", lambda r: answer(replace(r, top_logprobs=0)), "absent"),
        ("logprobs", rejecting("top_logprobs"), "refused"),
        ("logprobs", lambda r: answer(r, text=""), "unknown"),
        ("long_prompt", lambda r: answer(r, context=500), "cut"),
        ("long_prompt", lambda r: answer(r, context=60), "cut"),
        ("long_prompt", lambda r: replace(answer(r), usage=Usage()), "unknown"),
        (
            "long_prompt",
            lambda r: Failed(r.key, "long", 1, True) if r.max_tokens == 1 else answer(r),
            "unknown",
        ),
        ("reasoning", lambda r: replace(answer(r), reasoning="Hm."), "hidden"),
        ("reasoning", lambda r: answer(r, text=f"[THINK]Hm.[/THINK]{COUNTED}"), "in the reply"),
        ("reasoning", lambda r: answer(r, text=f"<|ponder|>Hm.<|reply|>{COUNTED}"), "not read"),
    ],
)
def test_a_fault_is_seen(name: str, model: Answer, verdict: str) -> None:
    assert findings(model)[name].verdict == verdict


@pytest.mark.parametrize("n_answered", [0, 1])
def test_without_a_reply_nothing_is_known(n_answered: int) -> None:
    program = ask_server(PREFIX_NEEDS, 1)
    request = next(program)
    if n_answered:
        request = program.send(Response(request.key, text=CHAIN))
    failed = Failed(request.key, "the server cannot be reached", 3)
    with pytest.raises(StopIteration) as end:
        program.send(failed)
    assert end.value.value is failed


@given(st.integers(0, 400), st.integers(10, 600), st.sampled_from([1.0, 1.4, 4.0]))
def test_a_prompt_that_is_read_whole_is_never_called_cut(
    template: int, n_words: int, tokens_per_word: float
) -> None:
    def model(request: Complete) -> Reply:
        n_tokens = int(len(request.messages[0].content.split()) * tokens_per_word) + template
        return replace(answer(request), usage=Usage(n_tokens, 3))

    needs = replace(LONG_NEEDS, n_prompt_tokens=n_words)
    assert findings(model, needs)["long_prompt"].verdict == "whole"


@given(st.integers(1, 539))
def test_a_prompt_that_is_cut_is_called_so(context: int) -> None:
    found = findings(lambda r: answer(r, context=context), LONG_NEEDS)
    assert found["long_prompt"].verdict == "cut"


@pytest.mark.parametrize(
    ("text", "n_tokens"),
    # a word of up to eight letters, a digit and a sign are one each, as by hand
    [("Nora has 18 plates, sells 4.", 9), ("3 + 4 = 7, 7 * 12 = 84", 13), ("multiplication", 2)],
)
def test_the_tokens_of_a_prompt_are_counted_without_a_vocabulary(text: str, n_tokens: int) -> None:
    request = replace(ASKED, messages=(Message("user", text),), prefix="")
    assert count_prompt_tokens(request) == n_tokens


def babble(seed: int, context: str, vocabulary: int) -> str:
    """The next word of a deterministic model: it follows from what stands before it."""
    draw = Random(f"{seed}/{context}")
    blank, end = draw.choice((" ", " ", " ", "\n")), draw.choice(("", ",", "."))
    return f"{blank}{draw.randrange(vocabulary)}{end}"


@given(
    st.integers(0, 10**9),
    st.sampled_from(["continue", "echo", "drop", "close"]),
    st.sampled_from([(0, 10**6), (1, 4), (3, 9)]),
)
def test_a_model_that_babbles_is_judged_by_its_server(
    seed: int, server: str, model: tuple[int, int]
) -> None:
    """``model``: how many of the last words a word follows from (0: all), and the vocabulary; small
    ones run in circles."""
    memory, vocabulary = model

    def said(request: Complete) -> Reply:
        end = " <end>" if server == "close" and request.prefix else ""
        start = "" if server == "drop" else request.prefix + end
        out = ""
        for _ in range(request.max_tokens):
            words = re.findall(r"\s*\S+", start + out)
            out += babble(seed, "".join(words[-memory:]), vocabulary)
        return Response(request.key, text=request.prefix + out if server == "echo" else out)

    verdict = findings(said, PREFIX_NEEDS)["prefix"].verdict
    if server in ("continue", "echo"):
        assert verdict in {"continue": ("continued", "unknown"), "echo": ("echoed",)}[server]
    elif not memory:  # in circles a model may come to the same place from anywhere
        assert (
            verdict
            in {"drop": ("new turn", "unknown"), "close": ("not established", "unknown")}[server]
        )


def writer(prefix: str, text: str = CHAIN) -> dict[str, str]:
    return {"text": text, "prefix": prefix, "answer": " 7."}


@pytest.fixture
async def served(server: Loopback) -> AsyncIterator[OpenAICompat]:
    model = OpenAICompat(ModelRef("openai_compat", "m", base_url=server.base_url, form="prefill"))
    yield model
    await model.close()


async def prefix_finding(model: OpenAICompat) -> Finding:
    """What is found of a server through the vendor's client, which adapts to it."""
    program = ask_server(PREFIX_NEEDS, 1)
    try:
        request = next(program)
        while True:
            try:
                reply: Reply = await model.send(request)
            except ProviderError as error:
                reply = Failed(request.key, str(error), 1, isinstance(error, Unsupported))
            request = program.send(reply)
    except StopIteration as end:
        assert isinstance(end.value, dict)
        model.use_findings(end.value)
        return end.value["prefix"]


@pytest.mark.parametrize(
    ("prefix", "text", "verdict"),
    [
        ("continue", CHAIN, "continued"),
        ("echo", CHAIN, "echoed"),
        ("echo", "7.", "echoed"),
        ("continue", "7.", "unknown"),
        ("continue", "7, " * 20, "unknown"),
    ],
)
async def test_a_reply_is_the_continuation_alone(
    server: Loopback, served: OpenAICompat, prefix: str, text: str, verdict: str
) -> None:
    server.script(writer=writer(prefix, text))
    assert (await prefix_finding(served)).verdict == verdict
    assert (await served.send(ASKED)).text == " 7."


@pytest.mark.parametrize(
    ("prefix", "text", "verdict"),
    [
        ("new", CHAIN, "new turn"),
        ("trim", CHAIN, "not established"),
        ("new", "7.", "unknown"),
        ("new", f"<think>{CHAIN}", "unknown"),
    ],
)
async def test_a_server_that_does_not_continue_is_found_out(
    server: Loopback, served: OpenAICompat, prefix: str, text: str, verdict: str
) -> None:
    server.script(writer=writer(prefix, text))
    assert (await prefix_finding(served)).verdict == verdict


@pytest.mark.parametrize(
    "detail", ["no continue_final_message", [{"loc": ["body"], "msg": "no continue_final_message"}]]
)
async def test_a_server_that_rejects_prefixes_says_why(
    server: Loopback, served: OpenAICompat, detail: Any
) -> None:
    server.script({"text": CHAIN}, then={"status": 422, "body": json.dumps({"detail": detail})})
    found = await prefix_finding(served)
    assert found.verdict == "refused" and "no continue_final_message" in found.detail
