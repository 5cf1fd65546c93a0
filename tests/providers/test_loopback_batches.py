"""Batches of the server that stands in for OpenAI and Anthropic, through each vendor's own SDK."""

from __future__ import annotations

import asyncio

import anthropic
import openai
import pytest

from tests.support.loopback import Loopback
from tests.support.loopback.clients import (
    PRICES,
    Anthropic,
    OpenAI,
    cost,
    ended,
    lines_of,
    openai_batch,
    params,
    results_of,
    rows,
)  # isort: skip

pytestmark = pytest.mark.filterwarnings(
    "ignore:Inheritance class AiohttpClientSession"
)  # google-genai 3.4 on aiohttp 3.14


async def test_a_batch_of_openai(server: Loopback, chat: OpenAI) -> None:
    server.script(batch_s=0.1, prices=PRICES, usage="random")
    batch = await openai_batch(
        chat.client, lines_of([f"question {at}" for at in range(9)]), metadata={"run": "r"}
    )
    assert (batch.status, batch.metadata, batch.error_file_id) == ("completed", {"run": "r"}, None)
    assert (
        batch.request_counts.total,
        batch.request_counts.completed,
        batch.request_counts.failed,
    ) == (9, 9, 0)
    told = await rows(chat.client, batch.output_file_id)
    bodies = [row["response"]["body"] for row in told.values()]
    assert told["n4"]["response"]["status_code"] == 200 and told["n4"]["error"] is None
    assert told["n4"]["response"]["body"]["choices"][0]["message"]["content"] == "question 4"
    assert list(told) != sorted(told)  # in no order
    used = [
        (body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"], 0, 0)
        for body in bodies
    ]
    assert server.spend() == cost(used) / 2 and server.count() == 9
    assert server.seen()[0]["body"]["filename"] == "in.jsonl"
    second = await openai_batch(chat.client, lines_of(["x"]), wait=False)
    assert [b.id async for b in chat.client.batches.list(limit=1)] == [second.id, batch.id]


async def test_a_batch_of_openai_that_goes_wrong(server: Loopback, chat: OpenAI) -> None:
    server.script({"status": 429}, batch_s=0.05, batch_errors=0.4, batch_expire=0.2, prices=PRICES)
    batch = await openai_batch(chat.client, lines_of(["x"] * 40))
    good = await rows(chat.client, batch.output_file_id)
    bad = await rows(chat.client, batch.error_file_id)
    assert batch.status == "expired" and len(good) + len(bad) == 40 and not {*good} & {*bad}
    assert {(row["response"] or {}).get("status_code") for row in bad.values()} == {429, 500, None}
    assert {(row["error"] or {}).get("code") for row in bad.values()} == {"batch_expired", None}
    assert server.spend() == cost([(1, 1, 0, 0)] * len(good)) / 2
    for lines, code in (
        (b"", "empty_file"),
        (b"{", "invalid_json_line"),
        (lines_of("x") + b"\n" + lines_of("y"), "duplicate_custom_id"),
    ):
        batch = await openai_batch(chat.client, lines)
        assert (batch.status, batch.errors.data[0].code, batch.output_file_id) == (
            "failed",
            code,
            None,
        )
    strict = await openai_batch(chat.client, lines_of("x", model="o3", max_tokens=5))
    (row,) = (await rows(chat.client, strict.error_file_id)).values()
    assert (strict.status, row["response"]["status_code"]) == ("completed", 400)


async def test_a_cancelled_batch_of_openai(server: Loopback, chat: OpenAI) -> None:
    server.script(batch_s=0.6, prices=PRICES)
    batch = await openai_batch(chat.client, lines_of(["x"] * 20), wait=False)
    await asyncio.sleep(0.25)
    assert (await chat.client.batches.retrieve(batch.id)).status == "in_progress"
    assert (await chat.client.batches.cancel(batch.id)).status == "cancelling"
    batch = await ended(chat.client, batch.id)
    good = await rows(chat.client, batch.output_file_id)
    bad = await rows(chat.client, batch.error_file_id)
    assert batch.status == "cancelled" and 0 < len(good) < 20 == len(good) + len(bad)
    assert {row["error"]["code"] for row in bad.values()} == {"batch_cancelled"}
    assert server.spend() == cost([(1, 1, 0, 0)] * len(good)) / 2
    with pytest.raises(openai.ConflictError):
        await chat.client.batches.cancel(batch.id)
    with pytest.raises(openai.NotFoundError):
        await chat.client.batches.retrieve("batch_none")


async def test_a_batch_of_anthropic(server: Loopback, claude: Anthropic) -> None:
    batches = claude.client.messages.batches
    server.script(batch_s=0.1, prices=PRICES, usage="random")
    batch = await batches.create(
        requests=[{"custom_id": f"n{at}", "params": params(f"q {at}")} for at in range(9)]
    )
    assert (batch.processing_status, batch.request_counts.processing, batch.results_url) == (
        "in_progress",
        9,
        None,
    )
    with pytest.raises(anthropic.AnthropicError, match="results_url"):
        await batches.results(batch.id)
    told = await results_of(claude.client, batch.id)
    assert claude.read(told["n4"].message).text == "q 4" and {
        result.type for result in told.values()
    } == {"succeeded"}
    assert list(told) != sorted(told)
    assert (
        server.spend() == cost([claude.read(result.message).used for result in told.values()]) / 2
    )
    second = await batches.create(requests=[{"custom_id": "a", "params": params("x")}])
    assert [b.id async for b in batches.list(limit=1)] == [second.id, batch.id]
    with pytest.raises(anthropic.BadRequestError, match="custom_id"):
        await batches.create(requests=[{"custom_id": "not this", "params": params("x")}])


async def test_a_batch_of_anthropic_that_goes_wrong(server: Loopback, claude: Anthropic) -> None:
    batches = claude.client.messages.batches
    server.script(batch_s=0.05, batch_errors=0.4, batch_expire=0.2, prices=PRICES)
    batch = await batches.create(
        requests=[{"custom_id": f"n{at}", "params": params("x")} for at in range(40)]
    )
    told = await results_of(claude.client, batch.id)
    kinds = [result.type for result in told.values()]
    assert {*kinds} == {"succeeded", "errored", "expired"} and len(kinds) == 40
    assert {result.error.error.type for result in told.values() if result.type == "errored"} == {
        "api_error"
    }
    counts = (await batches.retrieve(batch.id)).request_counts
    assert (counts.succeeded, counts.errored, counts.expired) == tuple(
        map(kinds.count, ("succeeded", "errored", "expired"))
    )
    assert server.spend() == cost([(1, 1, 0, 0)] * kinds.count("succeeded")) / 2
    server.script(batch_s=0.4)
    batch = await batches.create(
        requests=[{"custom_id": f"n{at}", "params": params("x")} for at in range(20)]
    )
    await asyncio.sleep(0.2)
    assert (await batches.cancel(batch.id)).processing_status == "canceling"
    assert {result.type for result in (await results_of(claude.client, batch.id)).values()} == {
        "succeeded",
        "canceled",
    }
