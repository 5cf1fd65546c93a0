"""The three vendors' own clients, asked and read alike, for tests of the server itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import aiohttp
import anthropic
import httpx2
import openai
from google import genai
from google.genai import errors as google_errors
from google.genai import types

from tests.support.loopback import Loopback


class Said(NamedTuple):
    """A reply, read from each vendor's own form."""

    text: str | None
    finish: str | None
    used: tuple[int, int, int, int]
    """In, out, of it cached, of it reasoning."""
    reasoning: str | None = None
    refused: bool = False


class OpenAI:
    model = "gpt-4o-mini"

    def __init__(self, server: Loopback) -> None:
        self.client = openai.AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=0)

    async def ask(self, *said: str, model: str = model, **more: Any) -> Said:
        messages = [
            {"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)
        ]
        return self.read(
            await self.client.chat.completions.create(model=model, messages=messages, **more)
        )

    @staticmethod
    def read(reply: Any) -> Said:
        choice, used = reply.choices[0], reply.usage
        into, out = used.prompt_tokens_details, used.completion_tokens_details
        return Said(
            choice.message.content,
            choice.finish_reason,
            (
                used.prompt_tokens,
                used.completion_tokens,
                into.cached_tokens if into else 0,
                out.reasoning_tokens if out else 0,
            ),
            getattr(choice.message, "reasoning_content", None),
            bool(choice.message.refusal) or choice.finish_reason == "content_filter",
        )

    async def names(self) -> list[str]:
        return [model.id async for model in self.client.models.list()]

    async def close(self) -> None:
        await self.client.close()


class Anthropic:
    model = "claude-haiku-4-5"

    def __init__(self, server: Loopback) -> None:
        self.client = anthropic.AsyncAnthropic(base_url=server.root, api_key="k", max_retries=0)

    async def ask(self, *said: str, model: str = model, max_tokens: int = 50, **more: Any) -> Said:
        messages = [
            {"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)
        ]
        return self.read(
            await self.client.messages.create(
                model=model, messages=messages, max_tokens=max_tokens, **more
            )
        )

    @staticmethod
    def read(reply: Any) -> Said:
        texts = [block.text for block in reply.content if block.type == "text"]
        thoughts = [block.thinking for block in reply.content if block.type == "thinking"]
        used, cached = reply.usage, reply.usage.cache_read_input_tokens
        thinking = used.output_tokens_details.thinking_tokens if used.output_tokens_details else 0
        return Said(
            "".join(texts) if texts else None,
            reply.stop_reason,
            (used.input_tokens + cached, used.output_tokens, cached, thinking),
            "".join(thoughts) or None,
            reply.stop_reason == "refusal",
        )

    async def names(self) -> list[str]:
        return [model.id async for model in self.client.models.list()]

    async def close(self) -> None:
        await self.client.close()


class Google:
    """On httpx2 if a client is given, or else on aiohttp."""

    model = "gemini-2.5-flash"

    def __init__(self, server: Loopback, http: httpx2.AsyncClient | None = None) -> None:
        self.http = http
        once = types.HttpRetryOptions(attempts=1)
        options = types.HttpOptions(
            base_url=server.root, retry_options=once, httpx_async_client=http
        )
        self.client = genai.Client(api_key="k", http_options=options)

    async def ask(self, *said: str, model: str = model, **more: Any) -> Said:
        contents = [
            types.Content(role=("user", "model")[at % 2], parts=[types.Part(text=text)])
            for at, text in enumerate(said)
        ]
        config = types.GenerateContentConfig(max_output_tokens=50, **more)
        return self.read(
            await self.client.aio.models.generate_content(
                model=model, contents=contents, config=config
            )
        )

    @staticmethod
    def read(reply: Any) -> Said:
        used = reply.usage_metadata
        thoughts = used.thoughts_token_count or 0
        counts = (
            used.prompt_token_count,
            used.candidates_token_count + thoughts,
            used.cached_content_token_count or 0,
            thoughts,
        )
        if not reply.candidates:
            return Said(None, None, counts, refused=reply.prompt_feedback.block_reason is not None)
        candidate = reply.candidates[0]
        parts = candidate.content.parts if candidate.content else []
        texts = [part.text for part in parts if not part.thought]
        finish = candidate.finish_reason.value
        thought = "".join(part.text for part in parts if part.thought)
        return Said(
            "".join(texts) if texts else None, finish, counts, thought or None, finish == "SAFETY"
        )

    async def names(self) -> list[str]:
        return [model.name async for model in await self.client.aio.models.list()]

    async def close(self) -> None:
        await self.client.aio.aclose()
        self.client.close()
        if self.http:
            await self.http.aclose()


STATUS_ERRORS = (openai.APIStatusError, anthropic.APIStatusError, google_errors.APIError)
LOST = (
    openai.APIConnectionError,
    anthropic.APIConnectionError,
    httpx2.TransportError,
    aiohttp.ClientError,
)
Speaker = OpenAI | Anthropic | Google


def lines_of(texts: Sequence[str], **more: Any) -> bytes:
    lines = [
        {
            "custom_id": f"n{at}",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": "m", "messages": [{"role": "user", "content": text}], **more},
        }
        for at, text in enumerate(texts)
    ]
    return "\n".join(map(json.dumps, lines)).encode()


async def openai_batch(
    client: openai.AsyncOpenAI, lines: bytes, wait: bool = True, **more: Any
) -> Any:
    file = await client.files.create(file=("in.jsonl", lines), purpose="batch")
    batch = await client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", **more
    )
    assert (file.bytes, batch.status) == (len(lines), "validating")
    return await ended(client, batch.id) if wait else batch


async def ended(client: openai.AsyncOpenAI, batch_id: str) -> Any:
    for _ in range(200):
        batch = await client.batches.retrieve(batch_id)
        if batch.status not in ("validating", "in_progress", "cancelling"):
            return batch
        await asyncio.sleep(0.02)
    raise AssertionError(f"still {batch.status}")


async def rows(client: openai.AsyncOpenAI, file_id: str | None) -> dict[str, Any]:
    told = (await client.files.content(file_id)).text.splitlines() if file_id else []
    return {row["custom_id"]: row for row in map(json.loads, told)}


def params(text: str, **more: Any) -> dict[str, Any]:
    return {
        "model": Anthropic.model,
        "max_tokens": 9,
        "messages": [{"role": "user", "content": text}],
        **more,
    }


async def results_of(client: anthropic.AsyncAnthropic, batch_id: str) -> dict[str, Any]:
    for _ in range(200):
        if (await client.messages.batches.retrieve(batch_id)).processing_status == "ended":
            break
        await asyncio.sleep(0.02)
    return {
        row.custom_id: row.result async for row in await client.messages.batches.results(batch_id)
    }


PRICES = {"in": "0.15", "out": "0.60"}


def cost(used: Sequence[tuple[int, int, int, int]]) -> Fraction:
    return sum(
        (u[0] * Fraction(PRICES["in"]) + u[1] * Fraction(PRICES["out"]) for u in used), Fraction(0)
    )
