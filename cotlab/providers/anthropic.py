"""Anthropic: messages and message batches, through the anthropic SDK."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pydantic import AwareDatetime

from cotlab.core.errors import BadReply, ProviderError, Unauthorised, Unavailable
from cotlab.core.provider import BatchState
from cotlab.core.requests import Complete, Request, Response, Usage
from cotlab.core.types import ModelRef
from cotlab.providers import wire
from cotlab.providers.capabilities import Family, supported_params
from cotlab.providers.sdk import SdkProvider
from cotlab.providers.server_limits import retry_after_s

if TYPE_CHECKING:
    import httpx2

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


class _Block(wire.Body):
    type: wire.Lenient[str] = None
    text: str | None = None
    thinking: wire.Lenient[str] = None


class _Message(wire.Body):
    content: list[_Block]
    stop_reason: wire.Lenient[str] = None
    model: wire.Lenient[str] = None
    uncached_tokens: wire.Count = wire.field_at("usage.input_tokens")
    cached_tokens: wire.Count = wire.field_at("usage.cache_read_input_tokens")
    cache_write_tokens: wire.Count = wire.field_at("usage.cache_creation_input_tokens")
    tokens_out: wire.Count = wire.field_at("usage.output_tokens")
    thinking_tokens: wire.Count = wire.field_at("usage.output_tokens_details.thinking_tokens")


class _Batch(wire.Body):
    id: str
    created_at: wire.Lenient[AwareDatetime] = None
    processing_status: wire.Lenient[str] = None
    request_counts: wire.Lenient[dict[str, wire.Count]] = None

    @property
    def n_requests(self) -> int:
        return sum(count or 0 for count in (self.request_counts or {}).values())


class _BatchPage(wire.Body):
    data: list[_Batch]


class _BatchLine(wire.Body):
    type: wire.Lenient[str] = wire.field_at("result.type")
    message: Any = wire.field_at("result.message")
    error_type: wire.Lenient[str] = wire.field_at("result.error.error.type")
    error_message: wire.Lenient[str] = wire.field_at("result.error.error.message")


class Anthropic(SdkProvider):
    """A model of Anthropic.

    The key comes from ANTHROPIC_API_KEY; ``ref.base_url`` may name a proxy.
    """

    package = "anthropic"

    def __init__(self, ref: ModelRef) -> None:
        url = wire.clean_base_url(ref.base_url or DEFAULT_URL, removed_suffixes=("/v1",))
        super().__init__(ref, url, map_anthropic_error)

    @staticmethod
    def _client_classes() -> tuple[type[Any], Callable[..., httpx2.AsyncClient]]:
        import anthropic

        return anthropic.AsyncAnthropic, anthropic.DefaultAioHttpClient

    def _parameters(self, request: Complete) -> wire.VendorRequest:
        return message_parameters(request, self._family)

    async def send(self, request: Request) -> Response:
        """Send one message request."""
        assert isinstance(request, Complete)
        return await self._ask(request, _MESSAGES_PATH, self._parameters(request), read_message)

    async def models(self) -> Sequence[str]:
        """Return the names of the models that the key can use."""
        return await self._model_names("/v1/models", limit=1000)

    async def submit(self, name: str, requests: Sequence[Request]) -> str:
        """Submit a batch; the vendor stores no name, so ``name`` is not sent."""
        batch_requests = [
            {"custom_id": request.key, "params": self._parameters(request).body}
            for request in requests
            if isinstance(request, Complete)
        ]
        body = {"requests": batch_requests}
        return wire.read_body(wire.Named, await self._post(f"{_MESSAGES_PATH}/batches", body)).id

    async def find(self, name: str, keys: Sequence[str], submitted_after: str) -> str | None:
        """Return the id of a batch submitted since then; None where none matches.

        A batch matches that has as many requests and whose results have these keys, or that is the
        only one without results yet.
        """
        earliest_time = datetime.fromisoformat(submitted_after) - MAX_CLOCK_SKEW
        pending_ids = list[str]()
        page = await self._get(f"{_MESSAGES_PATH}/batches", limit=100)
        for batch in wire.read_body(_BatchPage, page).data:
            if (
                batch.created_at is None
                or batch.created_at < earliest_time
                or batch.n_requests != len(keys)
            ):
                continue
            if batch.processing_status != "ended":
                pending_ids.append(batch.id)
            elif await self._first_result_key(batch.id) in keys:
                return batch.id
        return pending_ids[0] if len(pending_ids) == 1 else None

    async def _first_result_key(self, batch_id: str) -> object:
        """Return the key of the first result of an ended batch; None where it has no result."""
        stream = self._client.messages.batches.with_streaming_response.results(batch_id)
        async with aclosing(self._json_lines(stream)) as lines:
            first_line = await anext(lines, None)
            return first_line and first_line.get("custom_id")

    async def poll(self, batch_id: str) -> BatchState:
        """Return how far a batch is."""
        batch = wire.read_body(_Batch, await self._get(f"{_MESSAGES_PATH}/batches/{batch_id}"))
        n_left = (batch.request_counts or {}).get("processing") or 0
        return BatchState(
            batch.processing_status == "ended", batch.n_requests - n_left, batch.n_requests
        )

    async def results(
        self, batch_id: str, requests: Sequence[Request]
    ) -> Mapping[str, Response | ProviderError]:
        """Return the outcome of each request of a batch by key."""
        stream = self._client.messages.batches.with_streaming_response.results(batch_id)
        return await self._read_outcomes(stream, requests, self._read_result)

    def _read_result(
        self, request: Complete, line: Any, sent_params: Mapping[str, Any]
    ) -> Response:
        result = wire.read_body(_BatchLine, line)
        if result.type == "succeeded":
            return read_message(request, result.message, sent_params)
        if result.type != "errored":
            raise Unavailable(
                "the request's turn in the batch did not come:"
                f" {wire.shorten_message(result.type or '')}"
            )
        status = _STATUS_BY_ERROR_TYPE.get(result.error_type or "", 500)
        raise _error_from_status(status, result.error_message or "", self._key_variable)


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
    message = wire.read_body(_Message, body)
    texts = [block.text for block in message.content if block.type == "text"]
    known_texts = [text for text in texts if text is not None]
    if len(known_texts) < len(texts):
        raise wire.form_error("content", "a block of text has none")
    thoughts = [block.thinking for block in message.content if block.type == "thinking"]
    is_refused = message.stop_reason == "refusal"
    tokens_in = (
        None
        if message.uncached_tokens is None
        else wire.sum_known_counts(
            message.uncached_tokens, message.cached_tokens, message.cache_write_tokens
        )
    )
    return wire.build_response(
        request,
        sent_params,
        text=None if is_refused and not texts else "".join(known_texts),
        finish=_FINISH_BY_STOP_REASON.get(message.stop_reason or "", "other"),
        refused=is_refused,
        usage=Usage(tokens_in, message.tokens_out, message.cached_tokens, message.thinking_tokens),
        reasoning="\n".join(filter(None, thoughts)) or None,
        model=message.model or "",
    )


def map_anthropic_error(error: BaseException, key_variable: str = "") -> ProviderError:
    """Return the ProviderError for an error of the SDK or of the connection."""
    import anthropic

    if isinstance(error, anthropic.APIStatusError):
        return _error_from_status(
            error.status_code,
            error.api_message or error.message,
            key_variable,
            error.error_code,
            retry_after_s(error.response.headers),
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
    status: int,
    message: str,
    key_variable: str,
    code: str | None = None,
    retry_wait_s: float | None = None,
) -> ProviderError:
    lower_message = message.lower()
    if status == 400 and _CONTENT_FILTER_PHRASE in lower_message:
        return wire.ContentRejected(wire.shorten_message(message))
    if status in (400, 429) and (
        code in _QUOTA_CODES or any(phrase in lower_message for phrase in _QUOTA_PHRASES)
    ):
        return wire.quota_error(message)
    return wire.error_from_status(status, message, key_variable, retry_wait_s)
