"""Google: Gemini models through the google-genai SDK."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NotRequired

from typing_extensions import TypedDict  # typing.TypedDict is none to pydantic before 3.12

from cotlab.core.errors import (
    BadReply,
    ConfigError,
    ProviderError,
    Unauthorised,
    Unavailable,
)
from cotlab.core.requests import Complete, Request, Response, Token, Usage
from cotlab.core.types import ModelRef
from cotlab.providers import wire
from cotlab.providers.capabilities import Family, supported_params
from cotlab.providers.sdk import SdkProvider
from cotlab.providers.server_limits import parse_wait_s, retry_after_s

if TYPE_CHECKING:
    import httpx2
    from google import genai
    from google.genai import errors, types

DEFAULT_URL = "https://generativelanguage.googleapis.com"
_API_VERSION = "v1beta"
_REFUSAL_REASONS = (
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MODEL_ARMOR",
    "IMAGE_SAFETY",
    "IMAGE_RECITATION",
    "IMAGE_PROHIBITED_CONTENT",
    "ESCALATION",
)
_FINISH_BY_REASON = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(_REFUSAL_REASONS, "content_filter"),
}
_BAD_KEY_PHRASES = ("api key not valid", "api key expired", "api_key_invalid")
_N_SEEDS = 2**31
"""Seeds are signed 32-bit numbers."""


class _Part(wire.Body):
    text: str | None = None
    thought: Any = None


class _ChosenToken(TypedDict):
    token: str
    logProbability: wire.Number


class _Alternative(TypedDict):
    token: str
    logProbability: wire.AnyNumber


class _Position(TypedDict):
    candidates: NotRequired[list[_Alternative] | None]


class _Reply(wire.Body):
    candidates: list[Any] | None = None
    """The first is read."""
    parts: list[_Part] | None = wire.field_at("candidates.0.content.parts")
    finish_reason: wire.Lenient[str] = wire.field_at("candidates.0.finishReason")
    chosen_tokens: list[_ChosenToken] | None = wire.field_at(
        "candidates.0.logprobsResult.chosenCandidates"
    )
    positions: list[_Position | None] | None = wire.field_at(
        "candidates.0.logprobsResult.topCandidates"
    )
    block_reason: wire.Lenient[str] = wire.field_at("promptFeedback.blockReason")
    model: wire.Lenient[str] = wire.field_at("modelVersion")
    tokens_in: wire.Count = wire.field_at("usageMetadata.promptTokenCount")
    visible_tokens: wire.Count = wire.field_at("usageMetadata.candidatesTokenCount")
    thinking_tokens: wire.Count = wire.field_at("usageMetadata.thoughtsTokenCount")
    cached_tokens: wire.Count = wire.field_at("usageMetadata.cachedContentTokenCount")


class _Violation(wire.Body):
    quota_id: wire.Lenient[str] = wire.field_at("quotaId")


class _ErrorDetail(wire.Body):
    retry_delay: wire.Lenient[str] = wire.field_at("retryDelay")
    violations: wire.Lenient[list[_Violation]] = None


class _ErrorDetails(wire.Body):
    details: wire.Lenient[list[wire.Lenient[_ErrorDetail]]] = wire.field_at("error.details")


class Google(SdkProvider):
    """A model of Google.

    The key comes from GOOGLE_API_KEY; ``ref.base_url`` may name a proxy.
    """

    package = "google.genai"

    def __init__(self, ref: ModelRef) -> None:
        if not ref.name or any(forbidden_text in ref.name for forbidden_text in ("..", "?", "&")):
            raise ConfigError(f"{ref}: this cannot be the name of a model.")
        url = wire.clean_base_url(ref.base_url or DEFAULT_URL, removed_suffixes=("/v1beta", "/v1"))
        super().__init__(ref, url, map_google_error)

    @staticmethod
    def _client_classes() -> tuple[type[Any], Callable[..., httpx2.AsyncClient]]:
        import openai
        from google import genai

        return genai.Client, openai.DefaultAioHttpClient

    @cached_property
    def _client(self) -> genai.Client:
        from google import genai

        return genai.Client(
            vertexai=False,
            api_key=self._key,
            http_options=genai.types.HttpOptions(
                base_url=self._url,
                api_version=_API_VERSION,
                httpx_async_client=self._http_client,
                # Without it a lost connection is retried silently.
                retry_options=genai.types.HttpRetryOptions(attempts=1),
            ),
        )

    def _parameters(self, request: Complete) -> wire.VendorRequest:
        return gemini_parameters(request, self._family)

    async def send(self, request: Request) -> Response:
        """Send one generate_content request."""
        assert isinstance(request, Complete)
        arguments, sent_params = self._parameters(request)
        with wire.mapped_errors(map_google_error, self._key_variable):
            reply = await self._client.aio.models.generate_content(**arguments)
        http_response = reply.sdk_http_response
        return read_candidate(
            request, wire.decode_body((http_response and http_response.body) or ""), sent_params
        )

    async def models(self) -> Sequence[str]:
        """Return the names of the models that generate text and that the key can use."""
        with wire.mapped_errors(map_google_error, self._key_variable):
            pages = await self._client.aio.models.list(config={"page_size": 1000})
            names = [
                model.name or ""
                async for model in pages
                if "generateContent" in (model.supported_actions or ())
            ]
        return sorted(wire.replace_surrogates(name).removeprefix("models/") for name in names)


def gemini_parameters(request: Complete, family: Family) -> wire.VendorRequest:
    """Return a request as the arguments of ``generate_content``."""
    accepted_params = supported_params(request, family)
    body: dict[str, Any] = {"max_output_tokens": accepted_params.max_tokens}
    if accepted_params.temperature is not None:
        body["temperature"] = accepted_params.temperature
    if accepted_params.seed is not None:
        body["seed"] = accepted_params.seed % _N_SEEDS
    if accepted_params.stop:
        body["stop_sequences"] = list(accepted_params.stop)
    if accepted_params.top_logprobs:
        body |= {"response_logprobs": True, "logprobs": accepted_params.top_logprobs}
    if accepted_params.reply_schema:
        body["response_mime_type"] = "application/json"
        body["response_json_schema"] = dict(accepted_params.reply_schema)
    from google.genai import types

    config = types.GenerateContentConfig(
        **body,
        system_instruction=wire.replace_surrogates(request.system) or None,
        should_return_http_response=True,
        automatic_continuation=False,
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    contents = [
        _build_content("model" if m.role == "assistant" else "user", m.content)
        for m in request.messages
    ]
    recorded_request = wire.build_request(
        {},
        {"model": request.model.name, **body},
        has_prefix=False,
        dropped_params=accepted_params.not_sent,
    )
    return wire.VendorRequest(
        {"model": request.model.name, "contents": contents, "config": config},
        recorded_request.sent_params,
    )


def _build_content(role: str, text: str) -> types.Content:
    from google.genai import types

    return types.Content(role=role, parts=[types.Part(text=wire.replace_surrogates(text))])


def read_candidate(request: Complete, body: Any, sent_params: Mapping[str, Any]) -> Response:
    """Convert a generated candidate to a response.

    A candidate without text is empty where a limit or a stop sequence ended it, else a BadReply.
    """
    reply = wire.read_body(_Reply, body)
    is_blocked = not reply.candidates and reply.block_reason is not None
    finish = (
        "content_filter"
        if is_blocked
        else _FINISH_BY_REASON.get(reply.finish_reason or "", "other")
    )
    is_refused = finish == "content_filter"
    parts = [part for part in reply.parts or () if part.text is not None]
    texts = [part.text or "" for part in parts if not part.thought]
    if (
        not texts
        and not is_refused
        and not (finish == "length" or (finish == "stop" and request.stop))
    ):
        finish_reason = wire.shorten_message(reply.finish_reason or "no reason")
        raise BadReply(f"the server's reply holds no text and ended with {finish_reason}")
    return wire.build_response(
        request,
        sent_params,
        text="".join(texts) if texts or not is_refused else None,
        finish=finish,
        refused=is_refused,
        tokens=_read_tokens(reply),
        reasoning="".join(part.text or "" for part in parts if part.thought) or None,
        usage=Usage(
            reply.tokens_in,
            wire.sum_known_counts(reply.visible_tokens, reply.thinking_tokens),
            reply.cached_tokens,
            reply.thinking_tokens,
        ),
        model=reply.model or "",
    )


def _read_tokens(reply: _Reply) -> tuple[Token, ...]:
    """Return the chosen tokens with the listed alternatives of each position."""
    chosen_tokens = reply.chosen_tokens or ()
    positions = [*(reply.positions or ()), *([None] * len(chosen_tokens))]
    return tuple(
        Token(
            chosen["token"],
            chosen["logProbability"],
            tuple(
                (other["token"], other["logProbability"])
                for other in (position or {}).get("candidates") or ()
                if math.isfinite(other["logProbability"])
            ),
        )
        for chosen, position in zip(chosen_tokens, positions, strict=False)
    )


def map_google_error(error: BaseException, key_variable: str = "") -> ProviderError:
    """Return the ProviderError for an error of the SDK or of the connection."""
    from google.genai import errors

    if isinstance(error, errors.APIError):
        return _error_from_api(error, key_variable)
    if isinstance(error, errors.UnknownApiResponseError):
        return Unavailable(f"the server's reply was cut or is not JSON: {error.__cause__}")
    return wire.error_from_connection(error)


def _error_from_api(error: errors.APIError, key_variable: str) -> ProviderError:
    status, message = error.code, str(error.message or error)
    if status == 400 and (
        error.status == "FAILED_PRECONDITION"
        or any(phrase in message.lower() for phrase in _BAD_KEY_PHRASES)
    ):
        return Unauthorised(f"the server refused the key (400): {wire.shorten_message(message)}")
    try:
        listed = wire.read_body(_ErrorDetails, error.details).details or []
    except BadReply:  # such as a list
        listed = []
    details = [detail for detail in listed if detail is not None]
    quotas = [
        violation.quota_id or "" for detail in details for violation in detail.violations or ()
    ]
    if status == 429 and any("PerDay" in quota for quota in quotas):
        return wire.quota_error(message)
    waits_s = [
        parse_wait_s(detail.retry_delay.removesuffix("s"))
        for detail in details
        if detail.retry_delay
    ]
    waits_s.append(retry_after_s(getattr(error.response, "headers", None) or {}))
    retry_wait_s = max((wait_s for wait_s in waits_s if wait_s is not None), default=None)
    return wire.error_from_status(status, message, key_variable, retry_wait_s)
