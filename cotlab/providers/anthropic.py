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
from cotlab.providers.capabilities import Family, family_of, supported_params
from cotlab.providers.keys import key_for

ERRORS = (anthropic.AnthropicError, *wire.CONNECTION_ERRORS)
"""Exceptions that a call through the SDK may raise."""
DEFAULT_URL = "https://api.anthropic.com"
CLOCK_SKEW = timedelta(minutes=2)
"""How far the vendor's clock may be behind ours."""
_PATH = "/v1/messages"
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""HTTP status of the vendor's error types, for errors in a batch, which have no status."""
_LOCKED_CODES = (
    "contract_spend_limit_reached",
    "enforced_spend_limit_reached",
    "organization_on_hold",
)
_LOCKED_PHRASES = ("credit balance is too low", "api usage limits", "spend limit")
"""Phrases of a 400 or 429 that waiting does not resolve."""
_FILTERED = "content filtering policy"
"""Phrase of a 400 that rejects a request for its content."""


class Anthropic:
    """A model of Anthropic.

    The key comes from ANTHROPIC_API_KEY; ``ref.base_url`` may name a proxy.
    """

    answers = frozenset({Complete.kind})

    def __init__(self, ref: ModelRef) -> None:
        url = wire.clean_base_url(ref.base_url or DEFAULT_URL, without=("/v1",))
        self._family = family_of(ref.provider, ref.name)
        self.ref = replace(ref, form=wire.form_of(ref, self._family))
        self._client = anthropic.AsyncAnthropic(
            base_url=url,
            api_key=key_for(ref.provider, ref.base_url),
            max_retries=0,
            timeout=None,
            http_client=anthropic.DefaultAioHttpClient(
                limits=wire.LIMITS, timeout=None, follow_redirects=False
            ),
        )

    async def send(self, request: Request) -> Response:
        """Send one message request."""
        assert isinstance(request, Complete)
        vendor_request = message_parameters(request, self._family)
        try:
            reply = await self._client.post(
                _PATH, cast_to=httpx2.Response, body=vendor_request.body
            )
        except ERRORS as error:
            if isinstance(error, anthropic.APIStatusError) and _is_refusal(
                error.status_code, error.api_message
            ):
                return _refusal(request, vendor_request.sent)
            raise map_anthropic_error(error) from error
        return read_message(request, wire.decode_body(reply.content), vendor_request.sent)

    async def models(self) -> Sequence[str]:
        """Return the names of the models that the key can use."""
        listed = wire.require_list((await self._get("/v1/models", limit=1000)).get("data"), "data")
        return sorted(
            wire.require_text(wire.require_object(row, "model").get("id"), "model's id")
            for row in listed
        )

    async def close(self) -> None:
        """Close the HTTP client."""
        await self._client.close()

    async def submit(self, name: str, requests: Sequence[Request]) -> str:
        """Submit a batch; the vendor stores no name, so ``name`` is not sent."""
        bodies = {
            r.key: message_parameters(r, self._family).body
            for r in requests
            if isinstance(r, Complete)
        }
        body = {
            "requests": [{"custom_id": key, "params": params} for key, params in bodies.items()]
        }
        try:
            created = await self._client.post(
                f"{_PATH}/batches", cast_to=httpx2.Response, body=body
            )
        except ERRORS as error:
            raise map_anthropic_error(error) from error
        return wire.require_text(
            wire.require_object(wire.decode_body(created.content), "it").get("id"), "id"
        )

    async def find(self, name: str, keys: Sequence[str], since: str) -> str | None:
        """Return the id of a batch submitted since then; None where none matches.

        A batch matches that has as many requests and whose results have these keys, or that is the
        only
        one without results yet.
        """
        earliest, pending = datetime.fromisoformat(since) - CLOCK_SKEW, list[str]()
        for batch in wire.require_list(
            (await self._get(f"{_PATH}/batches", limit=100)).get("data"), "data"
        ):
            record = wire.require_object(batch, "batch")
            created_at, counts = (
                wire.parse_time(record.get("created_at")),
                wire.optional_object(record.get("request_counts")),
            )
            if (
                created_at is None
                or created_at < earliest
                or sum(wire.optional_count(n) or 0 for n in counts.values()) != len(keys)
            ):
                continue
            batch_id = wire.require_text(record.get("id"), "id")
            if record.get("processing_status") != "ended":
                pending.append(batch_id)
            elif await self._holds(batch_id, frozenset(keys)):
                return batch_id
        return pending[0] if len(pending) == 1 else None

    async def _holds(self, batch_id: str, keys: Container[str]) -> bool:
        """Return whether the first result of an ended batch answers one of ``keys``."""
        try:
            async with self._client.messages.batches.with_streaming_response.results(
                batch_id
            ) as reply:
                async for line in wire.json_lines(reply.iter_bytes()):
                    return line.get("custom_id") in keys
        except ERRORS as error:
            raise map_anthropic_error(error) from error
        return False

    async def poll(self, batch: str) -> BatchState:
        """Return how far a batch is."""
        record = await self._get(f"{_PATH}/batches/{batch}")
        counts = wire.optional_object(record.get("request_counts"))
        done = sum(
            wire.optional_count(counts.get(name)) or 0
            for name in ("succeeded", "errored", "canceled", "expired")
        )
        return BatchState(
            record.get("processing_status") == "ended",
            done,
            done + (wire.optional_count(counts.get("processing")) or 0),
        )

    async def results(
        self, batch: str, requests: Sequence[Request]
    ) -> Mapping[str, Response | ProviderError]:
        """Return the outcome of each request of a batch by key."""
        by_key = {request.key: request for request in requests if isinstance(request, Complete)}
        outcomes: dict[str, Response | ProviderError] = {}
        try:
            async with self._client.messages.batches.with_streaming_response.results(
                batch
            ) as reply:
                async for line in wire.json_lines(reply.iter_bytes()):
                    if (
                        request := by_key.get(wire.optional_text(line.get("custom_id")))
                    ) is not None:
                        outcomes[request.key] = self._result(
                            request, wire.optional_object(line.get("result"))
                        )
        except ERRORS as error:
            raise map_anthropic_error(error) from error
        return outcomes

    def _result(self, request: Complete, result: Mapping[str, Any]) -> Response | ProviderError:
        sent = message_parameters(request, self._family).sent
        if result.get("type") == "succeeded":
            try:
                return read_message(request, result.get("message"), sent)
            except ProviderError as error:
                return error
        if result.get("type") != "errored":
            return Unavailable(
                "the request's turn in the batch did not come:"
                f" {wire.optional_text(result.get('type'))}"
            )
        outer = wire.optional_object(result.get("error"))
        error_body = wire.optional_object(outer.get("error")) or outer
        status, message = (
            _STATUS.get(wire.optional_text(error_body.get("type")), 500),
            wire.optional_text(error_body.get("message")),
        )
        return (
            _refusal(request, sent)
            if _is_refusal(status, message)
            else _error_from_status(status, message)
        )

    async def _get(self, path: str, **query: object) -> Mapping[str, Any]:
        try:
            reply = await self._client.get(path, cast_to=httpx2.Response, options={"params": query})
        except ERRORS as error:
            raise map_anthropic_error(error) from error
        return wire.require_object(wire.decode_body(reply.content), "it")


def message_parameters(request: Complete, family: Family) -> wire.VendorRequest:
    """Return a request as the messages interface takes it, alone or in a batch."""
    supported = supported_params(request, family)
    messages = [
        {"role": m.role, "content": wire.without_surrogates(m.content)} for m in request.messages
    ]
    prefix = wire.without_surrogates(request.prefix).rstrip()  # trailing white space is a 400
    if prefix:
        messages.append({"role": "assistant", "content": prefix})
    texts: dict[str, Any] = {"messages": messages}
    if request.system:
        texts["system"] = wire.without_surrogates(request.system)
    body: dict[str, Any] = {"model": request.model.name, "max_tokens": supported.max_tokens}
    if supported.temperature is not None:
        body["temperature"] = supported.temperature
    if supported.stop:
        body["stop_sequences"] = list(supported.stop)
    return wire.build_request(texts, body, prefix=bool(prefix), not_sent=supported.not_sent)


def read_message(request: Complete, body: Any, sent: Mapping[str, Any]) -> Response:
    """Convert a message of the vendor to a response.

    Its text may be empty: a stop sequence came first, or the model had nothing to add to the
    prefix.
    """
    body = wire.require_object(body, "it")
    blocks = [
        wire.require_object(block, "block")
        for block in wire.require_list(body.get("content"), "content")
    ]
    texts = [
        wire.require_text(block.get("text"), "text")
        for block in blocks
        if block.get("type") == "text"
    ]
    reasoning_blocks = [
        wire.optional_text(block.get("thinking"))
        for block in blocks
        if block.get("type") == "thinking"
    ]
    refused = body.get("stop_reason") == "refusal"
    used = wire.optional_object(body.get("usage"))
    uncached, cached = (
        wire.optional_count(used.get("input_tokens")),
        wire.optional_count(used.get("cache_read_input_tokens")),
    )
    cache_written = wire.optional_count(used.get("cache_creation_input_tokens"))
    return wire.build_response(
        request,
        sent,
        text=None if refused and not texts else "".join(texts),
        finish=_FINISH.get(wire.optional_text(body.get("stop_reason")), "other"),
        refused=refused,
        usage=Usage(
            None if uncached is None else wire.sum_known(uncached, cached, cache_written),
            wire.optional_count(used.get("output_tokens")),
            cached,
            wire.optional_count(
                wire.optional_object(used.get("output_tokens_details")).get("thinking_tokens")
            ),
        ),
        reasoning="\n".join(filter(None, reasoning_blocks)) or None,
        model=wire.optional_text(body.get("model")),
    )


def map_anthropic_error(error: BaseException) -> ProviderError:
    """Return the ProviderError for an error of the SDK or of the connection."""
    if isinstance(error, anthropic.APIStatusError):
        message = error.api_message or error.message
        return _error_from_status(
            error.status_code, message, error.error_code, wire.retry_after_s(error.response.headers)
        )
    if isinstance(error, anthropic.APIConnectionError) or not isinstance(
        error, anthropic.AnthropicError
    ):
        return wire.error_from_connection(error)
    message = wire.short_message(f"{type(error).__name__}: {error}")
    return (
        Unauthorised(message)
        if isinstance(error, anthropic.CredentialsError)
        else BadReply(message)
    )


def _error_from_status(
    status: int, message: str, code: str | None = None, after_s: float | None = None
) -> ProviderError:
    locked = code in _LOCKED_CODES or any(phrase in message.lower() for phrase in _LOCKED_PHRASES)
    if status in (400, 429) and locked:
        return wire.quota_error(message)
    return wire.error_from_status(status, message, "anthropic", after_s)


def _is_refusal(status: int, message: str | None) -> bool:
    return status == 400 and _FILTERED in (message or "").lower()


def _refusal(request: Complete, sent: Mapping[str, Any]) -> Response:
    return wire.build_response(request, sent, finish="content_filter", refused=True)
