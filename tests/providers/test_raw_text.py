"""Requests as raw text: what /v1/completions is sent, and what its reply says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from cotlab.core.errors import BadReply, NotFound, Unsupported
from cotlab.core.requests import Complete, Message, Response, Token
from cotlab.core.types import ModelRef
from cotlab.providers.local.provider import open_organism
from cotlab.providers.openai_compat import OpenAICompat
from tests.support.loopback import Loopback
from tests.support.served_organism import serving_llama_cpp

QUESTION = "Ann has 3 pens. She buys 4 more. How many pens does she have now?"


def opened(address: str, **fields: Any) -> OpenAICompat:
    return OpenAICompat(
        ModelRef("openai_compat", "m", base_url=address, endpoint="completions", **fields)
    )


@pytest.fixture
async def chat_model(server: Loopback) -> AsyncIterator[OpenAICompat]:
    model = opened(server.base_url, form="prefill")
    yield model
    await model.close()


@pytest.fixture
async def base_model(server: Loopback) -> AsyncIterator[OpenAICompat]:
    model = opened(server.base_url, form="continuation")
    yield model
    await model.close()


def asked(model: OpenAICompat, **fields: Any) -> Complete:
    return Complete(model.ref, (Message("user", "How many?"),), **fields)


def sent(server: Loopback) -> list[tuple[str, Any]]:
    return [(call["path"], call["body"].get("prompt")) for call in server.seen()]


async def test_a_base_model_reads_the_question_and_its_chain(
    server: Loopback, base_model: OpenAICompat
) -> None:
    server.script({"text": " 7.", "finish": "max_tokens"})
    request = asked(base_model, prefix="1. 3 + 4 = 7.\nSo the answer is", stop=("\n",), seed=7)
    reply = await base_model.send(replace(request, sample=2, temperature=0.5, max_tokens=9))
    (call,) = server.seen()
    assert (call["path"], call["body"]) == (
        "/v1/completions",
        {
            "model": "m",
            "prompt": "Q: How many?\n1. 3 + 4 = 7.\nSo the answer is",
            "max_tokens": 9,
            "temperature": 0.5,
            "seed": 9,
            "stop": ["\n"],
        },
    )
    assert (reply.text, reply.finish, reply.sent["given"]) == (" 7.", "length", "prefix")


async def test_the_server_s_chat_template_makes_the_text(
    server: Loopback, chat_model: OpenAICompat
) -> None:
    server.script(then={"text": "ok"}, chat_template="llama.cpp")
    text = "<|system|>be brief\n<|user|>How many?\n<|assistant|>"
    for prefix in ("", "1. So \n"):
        await chat_model.send(asked(chat_model, system="be brief", prefix=prefix))
    calls = [call["body"] for call in server.seen() if call["path"] == "/v1/completions"]
    assert [body["prompt"] for body in calls] == [text, f"{text}1. So \n"]
    assert len(server.seen()) == 3  # the second prompt is rendered once


async def test_without_a_chat_template_nothing_is_asked(
    server: Loopback, chat_model: OpenAICompat
) -> None:
    server.script()
    with pytest.raises(NotFound, match="not apply a chat template.*subject.chat_template=none"):
        await chat_model.send(asked(chat_model))
    assert [path for path, _ in sent(server)] == ["/apply-template"]


async def test_log_probabilities_of_the_older_form_are_read(
    server: Loopback, base_model: OpenAICompat
) -> None:
    listed = [[" 7", -0.1, [[" 7", -0.1], [" 8", -3.0]]], [" or", -4.0, [[".", -0.2], ["!", -2]]]]
    server.script({"text": " 7 or", "logprobs": listed})
    reply = await base_model.send(asked(base_model, prefix="So", top_logprobs=2))
    assert server.seen()[0]["body"]["logprobs"] == 2
    # The server lists a token beside the likeliest two where it is none of them.
    assert reply.tokens == (
        Token(" 7", -0.1, ((" 7", -0.1), (" 8", -3.0))),
        Token(" or", -4.0, ((".", -0.2), ("!", -2.0))),
    )


async def test_columns_of_unequal_length_are_no_log_probabilities(
    server: Loopback, base_model: OpenAICompat
) -> None:
    columns = {"tokens": ["a", "b"], "token_logprobs": [-1.0], "top_logprobs": None}
    server.script({"body": json.dumps({"choices": [{"text": "ab", "logprobs": columns}]})})
    with pytest.raises(BadReply, match="another number of tokens"):
        await base_model.send(asked(base_model))


async def test_reasoning_before_the_answer_is_no_part_of_it(
    server: Loopback, base_model: OpenAICompat
) -> None:
    listed = [["<think>", -1, []], ["hm", -1, []], ["</think>\n", -1, []], ["7", -0.5, []]]
    channels = (
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>7"
    )
    server.script(
        {"text": "<think>hm</think>\n7", "logprobs": listed},
        {"text": "<think>hm, and"},
        {"text": channels},
        {"text": "<think>hm<think>no</think>7"},
    )
    reply = await base_model.send(asked(base_model, top_logprobs=1))
    assert (reply.reasoning, reply.text, reply.tokens) == (
        "hm",
        "7",
        (Token("7", -0.5, (("7", -0.5),)),),
    )
    cut = await base_model.send(asked(base_model))
    assert (cut.reasoning, cut.text) == ("hm, and", "")
    other_form = await base_model.send(asked(base_model))
    assert (other_form.reasoning, other_form.text) == ("hm", "7")
    unread = await base_model.send(asked(base_model))
    assert (unread.reasoning, unread.text) == (None, "<think>hm<think>no</think>7")


async def test_a_chain_is_not_given_inside_hidden_reasoning(
    server: Loopback, chat_model: OpenAICompat
) -> None:
    server.script(then={"text": "hm</think>7"}, chat_template="llama.cpp")
    opening = replace(asked(chat_model), messages=(Message("assistant", "<think>"),))
    # The loopback's template ends with its marker, so the opening is put there by hand.
    template = chat_model._template
    turns = ("m", "", opening.messages)
    template._prompt_by_turns[turns] = "Q<think>\n"
    reply = await chat_model.send(opening)
    assert (reply.reasoning, reply.text) == ("hm", "7")
    with pytest.raises(Unsupported, match="begins its turn with hidden reasoning"):
        await chat_model.send(replace(opening, prefix="1. So"))


@pytest.fixture(scope="module")
def llama_cpp() -> Iterator[str]:
    with serving_llama_cpp("faithful-a") as address:
        yield f"{address}/v1"


@pytest.mark.parametrize("form", ["prefill", "continuation"])
async def test_llama_cpp_continues_a_chain_as_the_model_does_in_this_process(
    llama_cpp: str, form: Any
) -> None:
    local = open_organism(ModelRef("organism", "faithful-a"))
    served = opened(llama_cpp, form=form)
    for prefix in ("", "Step 1: 3 + 4 = 7.\n", "Step 1: 3 + 4 = 7.\nSo the answer is"):
        request = Complete(
            local.ref, (Message("user", QUESTION),), prefix=prefix, max_tokens=40, top_logprobs=20
        )
        (here,) = local.send_batch([request])
        there = await served.send(replace(request, model=served.ref))
        assert isinstance(here, Response) and here.text == there.text
        # llama.cpp lists the end of the text as a last token, without a text.
        assert here.tokens and not "".join(t.text for t in there.tokens[len(here.tokens) :])
        for one, other in zip(here.tokens, there.tokens, strict=False):
            assert one.text == other.text and abs(one.logprob - other.logprob) < 1e-3
            assert one.top[0][0] == other.top[0][0] and len(other.top) == 20
    await served.close()


@pytest.mark.soak
async def test_a_template_that_llama_cpp_assumes_is_not_the_model_s() -> None:
    with serving_llama_cpp("faithful-a", "--no-template") as address:
        served = opened(f"{address}/v1", form="prefill")
        with pytest.raises(NotFound, match="has no chat template: the server assumes one"):
            await served.send(asked(served))
        await served.close()
