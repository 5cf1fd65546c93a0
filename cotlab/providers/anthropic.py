"""Anthropic: messages and message batches, through the anthropic SDK."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import anthropic
import httpx2

from cotlab.core.errors import BadReply, ProviderError, Unauthorised, Unavailable
from cotlab.core.provider import BatchState
from cotlab.core.requests import Complete, Request, Response, Usage
from cotlab.core.types import ModelRef
from cotlab.providers import wire
from cotlab.providers.capabilities import Family, family_of, taken
from cotlab.providers.keys import key_for

ERRORS = (anthropic.AnthropicError, *wire.LOST)
"""All that a call through the SDK may raise, but for our own faults."""
HOME = "https://api.anthropic.com"
EARLY = timedelta(minutes=2)
"""How far the vendor's clock may be behind ours."""
_PATH = "/v1/messages"
_FINISH = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}  # fmt: skip
_STATUS = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "conflict_error": 409, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500,
    "timeout_error": 504, "overloaded_error": 529,
}  # fmt: skip
"""What the vendor calls its errors in a batch, where they have no status."""
_LOCKED_CODES = ("contract_spend_limit_reached", "enforced_spend_limit_reached", "organization_on_hold")
_LOCKED_WORDS = ("credit balance is too low", "api usage limits", "spend limit")
"""Of a 400 or a 429 that no waiting helps against."""
_FILTERED = "content filtering policy"
"""Words of a 400 that turns away what the reply says."""


class Anthropic:
    """One of Anthropic's models. The key comes from ANTHROPIC_API_KEY; ``ref.base_url`` may name a proxy."""

    answers = frozenset({Complete.kind})

    def __init__(self, ref: ModelRef) -> None:
        url = wire.address(ref.base_url or HOME, without=("/v1",))
        self._family = family_of(ref.provider, ref.name)
        self.ref = replace(ref, form=wire.form_of(ref, self._family))
        self._client = anthropic.AsyncAnthropic(
            base_url=url, api_key=key_for(ref.provider, ref.base_url), max_retries=0, timeout=None,
            http_client=anthropic.DefaultAioHttpClient(limits=wire.LIMITS, timeout=None, follow_redirects=False),
        )  # fmt: skip

    async def send(self, request: Request) -> Response:
        assert isinstance(request, Complete)
        asked = parameters(request, self._family)
        try:
            reply = await self._client.post(_PATH, cast_to=httpx2.Response, body=asked.body)
        except ERRORS as error:
            if isinstance(error, anthropic.APIStatusError) and _is_refusal(error.status_code, error.api_message):
                return _refusal(request, asked.sent)
            raise map_error(error) from error
        return read(request, wire.decoded(reply.content), asked.sent)

    async def models(self) -> Sequence[str]:
        """The names of the models that the key reaches."""
        listed = wire.listing((await self._get("/v1/models", limit=1000)).get("data"), "data")
        return sorted(wire.words(wire.mapping(row, "model").get("id"), "model's id") for row in listed)

    async def close(self) -> None:
        await self._client.close()

    async def submit(self, name: str, requests: Sequence[Request]) -> str:
        """Hand in a batch. The vendor has no place for ``name``."""
        asked = {r.key: parameters(r, self._family).body for r in requests if isinstance(r, Complete)}
        body = {"requests": [{"custom_id": key, "params": params} for key, params in asked.items()]}
        try:
            made = await self._client.post(f"{_PATH}/batches", cast_to=httpx2.Response, body=body)
        except ERRORS as error:
            raise map_error(error) from error
        return wire.words(wire.mapping(wire.decoded(made.content), "it").get("id"), "id")

    async def find(self, name: str, keys: Sequence[str], since: str) -> str | None:
        """The batch of as many requests that was made since then: by its results' keys, or as the only one without any yet."""
        begun, pending = datetime.fromisoformat(since) - EARLY, list[str]()
        for batch in wire.listing((await self._get(f"{_PATH}/batches", limit=100)).get("data"), "data"):
            told = wire.mapping(batch, "batch")
            made, counts = wire.moment(told.get("created_at")), wire.maybe(told.get("request_counts"))
            if made is None or made < begun or sum(wire.count(n) or 0 for n in counts.values()) != len(keys):
                continue
            batch_id = wire.words(told.get("id"), "id")
            if told.get("processing_status") != "ended":
                pending.append(batch_id)
            elif await self._holds(batch_id, frozenset(keys)):
                return batch_id
        return pending[0] if len(pending) == 1 else None

    async def _holds(self, batch: str, keys: Container[str]) -> bool:
        """Whether the first result of an ended batch answers one of ``keys``."""
        try:
            async with self._client.messages.batches.with_streaming_response.results(batch) as reply:
                async for line in wire.lines(reply.iter_bytes()):
                    return line.get("custom_id") in keys
        except ERRORS as error:
            raise map_error(error) from error
        return False

    async def poll(self, batch: str) -> BatchState:
        told = await self._get(f"{_PATH}/batches/{batch}")
        counts = wire.maybe(told.get("request_counts"))
        done = sum(wire.count(counts.get(name)) or 0 for name in ("succeeded", "errored", "canceled", "expired"))
        return BatchState(told.get("processing_status") == "ended", done, done + (wire.count(counts.get("processing")) or 0))

    async def results(self, batch: str, requests: Sequence[Request]) -> Mapping[str, Response | ProviderError]:
        """What became of each request, line by line."""
        asked = {request.key: request for request in requests if isinstance(request, Complete)}
        found: dict[str, Response | ProviderError] = {}
        try:
            async with self._client.messages.batches.with_streaming_response.results(batch) as reply:
                async for line in wire.lines(reply.iter_bytes()):
                    if (request := asked.get(wire.maybe_words(line.get("custom_id")))) is not None:
                        found[request.key] = self._result(request, wire.maybe(line.get("result")))
        except ERRORS as error:
            raise map_error(error) from error
        return found

    def _result(self, request: Complete, told: Mapping[str, Any]) -> Response | ProviderError:
        sent = parameters(request, self._family).sent
        if told.get("type") == "succeeded":
            try:
                return read(request, told.get("message"), sent)
            except ProviderError as error:
                return error
        if told.get("type") != "errored":
            return Unavailable(f"the request's turn in the batch did not come: {wire.maybe_words(told.get('type'))}")
        outer = wire.maybe(told.get("error"))
        wrong = wire.maybe(outer.get("error")) or outer
        status, said = _STATUS.get(wire.maybe_words(wrong.get("type")), 500), wire.maybe_words(wrong.get("message"))
        return _refusal(request, sent) if _is_refusal(status, said) else _told_error(status, said)

    async def _get(self, path: str, **query: object) -> Mapping[str, Any]:
        try:
            reply = await self._client.get(path, cast_to=httpx2.Response, options={"params": query})
        except ERRORS as error:
            raise map_error(error) from error
        return wire.mapping(wire.decoded(reply.content), "it")


def parameters(request: Complete, family: Family) -> wire.Asked:
    """The request as the messages interface takes it; the same for a single call and for one of a batch."""
    take = taken(request, family)
    messages = [{"role": m.role, "content": wire.clean(m.content)} for m in request.messages]
    prefix = wire.clean(request.prefix).rstrip()  # white space at its end is a 400
    if prefix:
        messages.append({"role": "assistant", "content": prefix})
    texts: dict[str, Any] = {"messages": messages}
    if request.system:
        texts["system"] = wire.clean(request.system)
    body: dict[str, Any] = {"model": request.model.name, "max_tokens": take.max_tokens}
    if take.temperature is not None:
        body["temperature"] = take.temperature
    if take.stop:
        body["stop_sequences"] = list(take.stop)
    return wire.asked(texts, body, prefix=bool(prefix), not_sent=take.not_sent)


def read(request: Complete, body: Any, sent: Mapping[str, Any]) -> Response:
    """A message. Its text may be empty: a stop sequence, or nothing left to say after the start of its own turn."""
    body = wire.mapping(body, "it")
    blocks = [wire.mapping(block, "block") for block in wire.listing(body.get("content"), "content")]
    texts = [wire.words(block.get("text"), "text") for block in blocks if block.get("type") == "text"]
    thoughts = [wire.maybe_words(block.get("thinking")) for block in blocks if block.get("type") == "thinking"]
    refused = body.get("stop_reason") == "refusal"
    used = wire.maybe(body.get("usage"))
    fresh, cached = wire.count(used.get("input_tokens")), wire.count(used.get("cache_read_input_tokens"))
    made = wire.count(used.get("cache_creation_input_tokens"))
    return wire.answered(
        request, sent, text=None if refused and not texts else "".join(texts),
        finish=_FINISH.get(wire.maybe_words(body.get("stop_reason")), "other"), refused=refused,
        usage=Usage(
            None if fresh is None else wire.total(fresh, cached, made), wire.count(used.get("output_tokens")), cached,
            wire.count(wire.maybe(used.get("output_tokens_details")).get("thinking_tokens")),
        ),
        reasoning="\n".join(filter(None, thoughts)) or None, model=wire.maybe_words(body.get("model")),
    )  # fmt: skip


def map_error(error: BaseException) -> ProviderError:
    """The house's error for one of the SDK's, or for one of the connection that the SDK lets through."""
    if isinstance(error, anthropic.APIStatusError):
        said = error.api_message or error.message
        return _told_error(error.status_code, said, error.error_code, wire.after_s(error.response.headers))
    if isinstance(error, anthropic.APIConnectionError) or not isinstance(error, anthropic.AnthropicError):
        return wire.lost(error)
    said = wire.shortened(f"{type(error).__name__}: {error}")
    return Unauthorised(said) if isinstance(error, anthropic.CredentialsError) else BadReply(said)


def _told_error(status: int, said: str, code: str | None = None, after_s: float | None = None) -> ProviderError:
    locked = code in _LOCKED_CODES or any(words in said.lower() for words in _LOCKED_WORDS)
    if status in (400, 429) and locked:
        return wire.out_of_money(said)
    return wire.by_status(status, said, "anthropic", after_s)


def _is_refusal(status: int, said: str | None) -> bool:
    return status == 400 and _FILTERED in (said or "").lower()


def _refusal(request: Complete, sent: Mapping[str, Any]) -> Response:
    return wire.answered(request, sent, finish="content_filter", refused=True)
