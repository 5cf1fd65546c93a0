"""Google: Gemini models through the google-genai SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import openai
from google import genai
from google.genai import errors, types

from cotlab.core.errors import BadReply, ConfigError, ProviderError, Unauthorised, Unavailable
from cotlab.core.requests import Complete, Request, Response, Token, Usage
from cotlab.core.types import ModelRef
from cotlab.providers import waits, wire
from cotlab.providers.capabilities import Family, family_of, supported_params
from cotlab.providers.http_client import open_http_client
from cotlab.providers.keys import key_for, key_read_from, named_key_variable

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
_NO_FUNCTION_CALLS = types.AutomaticFunctionCallingConfig(disable=True)
_N_SEEDS = 2**31
"""Seeds are signed 32-bit numbers."""


class Google:
    """A model of Google.

    The key comes from GOOGLE_API_KEY; ``ref.base_url`` may name a proxy.
    """

    answers = frozenset({Complete.kind})

    def __init__(self, ref: ModelRef) -> None:
        if not ref.name or any(forbidden_text in ref.name for forbidden_text in ("..", "?", "&")):
            raise ConfigError(f"{ref}: this cannot be the name of a model.")
        url = wire.clean_base_url(ref.base_url or DEFAULT_URL, removed_suffixes=("/v1beta", "/v1"))
        self._key_variable = named_key_variable()
        self._family = family_of(ref.provider, ref.name)
        self.ref = replace(ref, form=wire.resolve_form(ref, self._family))
        self._http_client = open_http_client(openai.DefaultAioHttpClient)
        self._client = genai.Client(
            vertexai=False,
            api_key=key_for(ref.provider, ref.base_url),
            http_options=types.HttpOptions(
                base_url=url,
                api_version=_API_VERSION,
                httpx_async_client=self._http_client,
                # Without it a lost connection is retried silently.
                retry_options=types.HttpRetryOptions(attempts=1),
            ),
        )

    async def send(self, request: Request) -> Response:
        """Send one generate_content request."""
        assert isinstance(request, Complete)
        arguments, sent_params = gemini_parameters(request, self._family)
        with key_read_from(self._key_variable), wire.mapped_errors(map_google_error):
            reply = await self._client.aio.models.generate_content(**arguments)
        http_response = reply.sdk_http_response
        return read_candidate(
            request, wire.decode_body((http_response and http_response.body) or ""), sent_params
        )

    async def models(self) -> Sequence[str]:
        """Return the names of the models that generate text and that the key can use."""
        with key_read_from(self._key_variable), wire.mapped_errors(map_google_error):
            pages = await self._client.aio.models.list(config={"page_size": 1000})
            names = [
                model.name or ""
                async for model in pages
                if "generateContent" in (model.supported_actions or ())
            ]
        return sorted(wire.replace_surrogates(name).removeprefix("models/") for name in names)

    async def close(self) -> None:
        """Close the HTTP client."""
        await self._http_client.aclose()


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
    config = types.GenerateContentConfig(
        **body,
        system_instruction=wire.replace_surrogates(request.system) or None,
        should_return_http_response=True,
        automatic_continuation=False,
        automatic_function_calling=_NO_FUNCTION_CALLS,
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
    return types.Content(role=role, parts=[types.Part(text=wire.replace_surrogates(text))])


def read_candidate(request: Complete, body: Any, sent_params: Mapping[str, Any]) -> Response:
    """Convert a generated candidate to a response.

    A candidate without text is empty where a limit or a stop sequence ended it, else a BadReply.
    """
    body = wire.require_object(body, "it")
    candidates = body.get("candidates") or []
    if not candidates and wire.optional_object(body.get("promptFeedback")).get("blockReason"):
        return _build_response(request, body, sent_params, finish="content_filter", refused=True)
    candidate = wire.require_object(
        next(iter(wire.require_list(candidates, "candidates")), None), "candidate"
    )
    finish = _FINISH_BY_REASON.get(wire.optional_text(candidate.get("finishReason")), "other")
    is_refused = finish == "content_filter"
    content_pieces = wire.require_objects(
        wire.optional_object(candidate.get("content")).get("parts") or [], "parts", "part"
    )
    texts = [
        wire.require_text(part["text"], "text")
        for part in content_pieces
        if "text" in part and not part.get("thought")
    ]
    reasoning_texts = [
        wire.optional_text(part.get("text")) for part in content_pieces if part.get("thought")
    ]
    if (
        not texts
        and not is_refused
        and not (finish == "length" or (finish == "stop" and request.stop))
    ):
        finish_reason = wire.optional_text(candidate.get("finishReason")) or "no reason"
        raise BadReply(f"the server's reply holds no text and ended with {finish_reason}")
    return _build_response(
        request,
        body,
        sent_params,
        text="".join(texts) if texts or not is_refused else None,
        finish=finish,
        refused=is_refused,
        tokens=_read_tokens(wire.optional_object(candidate.get("logprobsResult"))),
        reasoning="".join(reasoning_texts) or None,
    )


def _build_response(
    request: Complete,
    body: Mapping[str, Any],
    sent_params: Mapping[str, Any],
    **response_fields: Any,
) -> Response:
    usage_record = wire.optional_object(body.get("usageMetadata"))
    thinking_tokens = wire.optional_count(usage_record.get("thoughtsTokenCount"))
    usage = Usage(
        wire.optional_count(usage_record.get("promptTokenCount")),
        wire.sum_known_counts(
            wire.optional_count(usage_record.get("candidatesTokenCount")), thinking_tokens
        ),
        wire.optional_count(usage_record.get("cachedContentTokenCount")),
        thinking_tokens,
    )
    return wire.build_response(
        request,
        sent_params,
        usage=usage,
        model=wire.optional_text(body.get("modelVersion")),
        **response_fields,
    )


def _read_tokens(logprobs: Mapping[str, Any]) -> tuple[Token, ...]:
    """Return the chosen tokens with the listed alternatives of each position."""
    chosen_tokens = wire.require_list(logprobs.get("chosenCandidates") or [], "chosenCandidates")
    alternative_lists = wire.require_list(logprobs.get("topCandidates") or [], "topCandidates")
    alternatives = [
        wire.require_list(wire.optional_object(position).get("candidates") or [], "candidates")
        for position in alternative_lists
    ]
    alternatives += [[]] * (len(chosen_tokens) - len(alternatives))
    return tuple(
        Token(
            *_read_token_pair(token),
            tuple(
                _read_token_pair(alternative)
                for alternative in position_alternatives
                if wire.has_logprob(wire.optional_object(alternative).get("logProbability"))
            ),
        )
        for token, position_alternatives in zip(chosen_tokens, alternatives, strict=False)
    )


def _read_token_pair(token: Any) -> tuple[str, float]:
    token = wire.require_object(token, "token")
    text = wire.require_text(token.get("token"), "token")
    return text, wire.require_logprob(token.get("logProbability"))


def map_google_error(error: BaseException) -> ProviderError:
    """Return the ProviderError for an error of the SDK or of the connection."""
    if isinstance(error, errors.APIError):
        return _error_from_api(error)
    if isinstance(error, errors.UnknownApiResponseError):
        return Unavailable(f"the server's reply was cut or is not JSON: {error.__cause__}")
    return wire.error_from_connection(error)


def _error_from_api(error: errors.APIError) -> ProviderError:
    status, message = error.code, wire.optional_text(error.message) or str(error)
    if status == 400 and (
        error.status == "FAILED_PRECONDITION"
        or any(phrase in message.lower() for phrase in _BAD_KEY_PHRASES)
    ):
        return Unauthorised(f"the server refused the key (400): {wire.shorten_message(message)}")
    details = _optional_objects(
        wire.optional_object(wire.optional_object(error.details).get("error")).get("details")
    )
    violations = [
        violation for detail in details for violation in _optional_objects(detail.get("violations"))
    ]
    if status == 429 and any("PerDay" in str(violation.get("quotaId")) for violation in violations):
        return wire.quota_error(message)
    waits_s = [
        waits.parse_wait_s(str(entry["retryDelay"]).removesuffix("s"))
        for entry in details
        if "retryDelay" in entry
    ]
    waits_s.append(waits.retry_after_s(getattr(error.response, "headers", None) or {}))
    retry_wait_s = max((wait_s for wait_s in waits_s if wait_s is not None), default=None)
    return wire.error_from_status(status, message, "google", retry_wait_s)


def _optional_objects(value: Any) -> list[Mapping[str, Any]]:
    """Return the JSON objects of a list, empty ones in place of other entries."""
    return [wire.optional_object(entry) for entry in value] if isinstance(value, list) else []
