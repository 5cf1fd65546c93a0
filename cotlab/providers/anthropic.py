"""Anthropic: messages and message batches, through the anthropic SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, aclosing
from datetime import datetime, timedelta
from typing import Any

import anthropic

from cotlab.core.errors import BadReply, ProviderError, Unauthorised, Unavailable
from cotlab.core.provider import BatchState
from cotlab.core.requests import Complete, Request, Response, Usage
from cotlab.core.types import ModelRef
from cotlab.providers import waits, wire
from cotlab.providers.capabilities import Family, supported_params
from cotlab.providers.sdk import SdkProvider

DEFAULT_URL = "https://api.anthropic.com"
MAX_CLOCK_SKEW = timedelta(minutes=2)
"""How far the vendor's clock may be behind ours."""
_MESSAGES_PATH = "/v1/messages"
_FINISH_BY_STOP_REASON = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_STATUS_BY_ERROR_TYPE = {
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
_QUOTA_CODES = (
    "contract_spend_limit_reached",
    "enforced_spend_limit_reached",
    "organization_on_hold",
)
_QUOTA_PHRASES = ("credit balance is too low", "api usage limits", "spend limit")
"""Phrases of a 400 or 429 that waiting does not resolve."""
_CONTENT_FILTER_PHRASE = "content filtering policy"
"""Phrase of a 400 that rejects a request for its content."""


class Anthropic(SdkProvider):
    """A model of Anthropic.

    The key comes from ANTHROPIC_API_KEY; ``ref.base_url`` may name a proxy.
    """

    _client: anthropic.AsyncAnthropic

    def __init__(self, ref: ModelRef) -> None:
        url = wire.clean_base_url(ref.base_url or DEFAULT_URL, removed_suffixes=("/v1",))
        super().__init__(ref, url, anthropic.AsyncAnthropic, anthropic.DefaultAioHttpClient)

    def _mapped_errors(self) -> AbstractContextManager[None]:
        return wire.mapped_errors(map_anthropic_error)

    async def send(self, request: Request) -> Response:
        """Send one message request."""
        assert isinstance(request, Complete)
        body, sent_params = message_parameters(request, self._family)
        try:
            return read_message(request, await self._post(_MESSAGES_PATH, body), sent_params)
        except ProviderError as error:
            cause = error.__cause__
            if isinstance(cause, anthropic.APIStatusError) and _is_refusal(
                cause.status_code, cause.api_message
            ):
                return wire.refusal_response(request, sent_params)
            raise

    async def models(self) -> Sequence[str]:
        """Return the names of the models that the key can use."""
        return wire.model_ids(await self._get("/v1/models", limit=1000))

    async def submit(self, name: str, requests: Sequence[Request]) -> str:
        """Submit a batch; the vendor stores no name, so ``name`` is not sent."""
        body_by_key = {
            r.key: message_parameters(r, self._family).body
            for r in requests
            if isinstance(r, Complete)
        }
        body = {
            "requests": [
                {"custom_id": key, "params": params} for key, params in body_by_key.items()
            ]
        }
        return wire.require_id(await self._post(f"{_MESSAGES_PATH}/batches", body))

    async def find(self, name: str, keys: Sequence[str], submitted_after: str) -> str | None:
        """Return the id of a batch submitted since then; None where none matches.

        A batch matches that has as many requests and whose results have these keys, or that is the
        only one without results yet.
        """
        earliest_time = datetime.fromisoformat(submitted_after) - MAX_CLOCK_SKEW
        pending_ids = list[str]()
        page = await self._get(f"{_MESSAGES_PATH}/batches", limit=100)
        for record in wire.require_objects(page.get("data"), "data", "batch"):
            created_at = wire.parse_time(record.get("created_at"))
            request_counts = wire.optional_object(record.get("request_counts")).values()
            n_requests = sum(wire.optional_count(count) or 0 for count in request_counts)
            if created_at is None or created_at < earliest_time or n_requests != len(keys):
                continue
            batch_id = wire.require_text(record.get("id"), "id")
            if record.get("processing_status") != "ended":
                pending_ids.append(batch_id)
            elif await self._first_result_key(batch_id) in keys:
                return batch_id
        return pending_ids[0] if len(pending_ids) == 1 else None

    async def _first_result_key(self, batch_id: str) -> object:
        """Return the key of the first result of an ended batch; None where it has no result."""
        stream = self._client.messages.batches.with_streaming_response.results(batch_id)
        async with aclosing(self._json_lines(stream)) as lines:
            first_line = await anext(lines, None)
            return first_line and first_line.get("custom_id")

    async def poll(self, batch_id: str) -> BatchState:
        """Return how far a batch is."""
        record = await self._get(f"{_MESSAGES_PATH}/batches/{batch_id}")
        request_counts = wire.optional_object(record.get("request_counts"))
        n_done = sum(
            wire.optional_count(request_counts.get(name)) or 0
            for name in ("succeeded", "errored", "canceled", "expired")
        )
        return BatchState(
            record.get("processing_status") == "ended",
            n_done,
            n_done + (wire.optional_count(request_counts.get("processing")) or 0),
        )

    async def results(
        self, batch_id: str, requests: Sequence[Request]
    ) -> Mapping[str, Response | ProviderError]:
        """Return the outcome of each request of a batch by key."""
        stream = self._client.messages.batches.with_streaming_response.results(batch_id)
        return await self._read_outcomes(stream, requests, self._read_result)

    def _read_result(self, request: Complete, line: Mapping[str, Any]) -> Response | ProviderError:
        result = wire.optional_object(line.get("result"))
        sent_params = message_parameters(request, self._family).sent_params
        if result.get("type") == "succeeded":
            try:
                return read_message(request, result.get("message"), sent_params)
            except ProviderError as error:
                return error
        if result.get("type") != "errored":
            return Unavailable(
                "the request's turn in the batch did not come:"
                f" {wire.optional_text(result.get('type'))}"
            )
        outer_error = wire.optional_object(result.get("error"))
        error_body = wire.optional_object(outer_error.get("error")) or outer_error
        status = _STATUS_BY_ERROR_TYPE.get(wire.optional_text(error_body.get("type")), 500)
        message = wire.optional_text(error_body.get("message"))
        if _is_refusal(status, message):
            return wire.refusal_response(request, sent_params)
        return _error_from_status(status, message)


def message_parameters(request: Complete, family: Family) -> wire.VendorRequest:
    """Return a request as the messages interface takes it, alone or in a batch."""
    accepted_params = supported_params(request, family)
    messages = [
        {"role": m.role, "content": wire.replace_surrogates(m.content)} for m in request.messages
    ]
    prefix = wire.replace_surrogates(request.prefix).rstrip()  # trailing white space is a 400
    if prefix:
        messages.append({"role": "assistant", "content": prefix})
    text_fields: dict[str, Any] = {"messages": messages}
    if request.system:
        text_fields["system"] = wire.replace_surrogates(request.system)
    body: dict[str, Any] = {"model": request.model.name, "max_tokens": accepted_params.max_tokens}
    if accepted_params.temperature is not None:
        body["temperature"] = accepted_params.temperature
    if accepted_params.stop:
        body["stop_sequences"] = list(accepted_params.stop)
    if accepted_params.reply_schema:
        schema = dict(accepted_params.reply_schema)
        body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    return wire.build_request(
        text_fields, body, has_prefix=bool(prefix), dropped_params=accepted_params.not_sent
    )


def read_message(request: Complete, body: Any, sent_params: Mapping[str, Any]) -> Response:
    """Convert a message of the vendor to a response.

    Its text may be empty: a stop sequence came first, or the model had nothing to add to the
    prefix.
    """
    body = wire.require_object(body, "it")
    blocks = wire.require_objects(body.get("content"), "content", "block")
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
    is_refused = body.get("stop_reason") == "refusal"
    usage_record = wire.optional_object(body.get("usage"))
    uncached_tokens = wire.optional_count(usage_record.get("input_tokens"))
    cached_tokens = wire.optional_count(usage_record.get("cache_read_input_tokens"))
    cache_write_tokens = wire.optional_count(usage_record.get("cache_creation_input_tokens"))
    return wire.build_response(
        request,
        sent_params,
        text=None if is_refused and not texts else "".join(texts),
        finish=_FINISH_BY_STOP_REASON.get(wire.optional_text(body.get("stop_reason")), "other"),
        refused=is_refused,
        usage=Usage(
            None
            if uncached_tokens is None
            else wire.sum_known_counts(uncached_tokens, cached_tokens, cache_write_tokens),
            wire.optional_count(usage_record.get("output_tokens")),
            cached_tokens,
            wire.optional_count(
                wire.optional_object(usage_record.get("output_tokens_details")).get(
                    "thinking_tokens"
                )
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
            error.status_code,
            message,
            error.error_code,
            waits.retry_after_s(error.response.headers),
        )
    if isinstance(error, anthropic.APIConnectionError) or not isinstance(
        error, anthropic.AnthropicError
    ):
        return wire.error_from_connection(error)
    message = wire.shorten_message(f"{type(error).__name__}: {error}")
    return (
        Unauthorised(message)
        if isinstance(error, anthropic.CredentialsError)
        else BadReply(message)
    )


def _error_from_status(
    status: int, message: str, code: str | None = None, retry_wait_s: float | None = None
) -> ProviderError:
    is_out_of_quota = code in _QUOTA_CODES or any(
        phrase in message.lower() for phrase in _QUOTA_PHRASES
    )
    if status in (400, 429) and is_out_of_quota:
        return wire.quota_error(message)
    return wire.error_from_status(status, message, "anthropic", retry_wait_s)


def _is_refusal(status: int, message: str | None) -> bool:
    return status == 400 and _CONTENT_FILTER_PHRASE in (message or "").lower()
