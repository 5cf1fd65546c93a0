"""Google: Gemini models through the google-genai SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import aiohttp
from google import genai
from google.genai import errors, types
from pydantic import ValidationError

from cotlab.core.errors import BadReply, ConfigError, ProviderError, Unauthorised, Unavailable
from cotlab.core.requests import Complete, Request, Response, Token, Usage
from cotlab.core.types import ModelRef
from cotlab.providers import wire
from cotlab.providers.capabilities import Family, family_of, supported_params
from cotlab.providers.keys import key_for

ERRORS = (
    errors.APIError,
    errors.UnknownApiResponseError,
    ValidationError,
    json.JSONDecodeError,
    *wire.CONNECTION_ERRORS,
)
"""Exceptions that a call through the SDK may raise."""
DEFAULT_URL = "https://generativelanguage.googleapis.com"
_VERSION = "v1beta"
_REFUSED = (
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
_FINISH = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(_REFUSED, "content_filter"),
}
_BAD_KEY = ("api key not valid", "api key expired", "api_key_invalid")
_NO_CALLS = types.AutomaticFunctionCallingConfig(disable=True)
_SEED_RANGE = 2**31
"""Seeds are signed 32-bit numbers."""


class Google:
    """A model of Google.

    The key comes from GOOGLE_API_KEY; ``ref.base_url`` may name a proxy.
    """

    answers = frozenset({Complete.kind})

    def __init__(self, ref: ModelRef) -> None:
        if not ref.name or any(part in ref.name for part in ("..", "?", "&")):
            raise ConfigError(f"{ref}: this cannot be the name of a model.")
        self._url = wire.clean_base_url(ref.base_url or DEFAULT_URL, without=("/v1beta", "/v1"))
        self._key = key_for(ref.provider, ref.base_url)
        self._family = family_of(ref.provider, ref.name)
        self.ref = replace(ref, form=wire.form_of(ref, self._family))
        self._session: aiohttp.ClientSession | None = None
        self._client: genai.Client | None = None

    async def send(self, request: Request) -> Response:
        """Send one generate_content request."""
        assert isinstance(request, Complete)
        vendor_request = gemini_parameters(request, self._family)
        try:
            reply = await self._open().aio.models.generate_content(**vendor_request.body)
        except ERRORS as error:
            raise map_google_error(error) from error
        http = reply.sdk_http_response
        return read_candidate(
            request, wire.decode_body(http.body if http and http.body else ""), vendor_request.sent
        )

    async def models(self) -> Sequence[str]:
        """Return the names of the models that generate text and that the key can use."""
        try:
            pages = await self._open().aio.models.list(config={"page_size": 1000})
            listed = [model async for model in pages]
        except ERRORS as error:
            raise map_google_error(error) from error
        writers = [
            model for model in listed if "generateContent" in (model.supported_actions or ())
        ]
        return sorted(
            wire.without_surrogates(model.name or "").removeprefix("models/") for model in writers
        )

    async def close(self) -> None:
        """Close the HTTP session, where one was opened."""
        if self._session is not None:
            await self._session.close()

    async def _stay(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Reject redirects to another host, which would receive the key."""
        if request.url.host != urlsplit(self._url).hostname:
            raise aiohttp.ClientConnectionError(
                f"the server redirects to another host: {request.url.host}"
            )
        return await handler(request)

    def _open(self) -> genai.Client:
        """Return the client, made at the first call, as a session belongs to its event loop."""
        if self._client is None:
            # trust_env looks up proxies at each request, which doubles its cost.
            proxied = bool(getproxies().keys() & {"http", "https", "all"})
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=proxied,
                middlewares=(self._stay,),
            )
            options = types.HttpOptions(
                base_url=self._url,
                api_version=_VERSION,
                aiohttp_client=self._session,
                # Without it a lost connection is retried silently.
                retry_options=types.HttpRetryOptions(attempts=1),
            )
            self._client = genai.Client(vertexai=False, api_key=self._key, http_options=options)
        return self._client


def gemini_parameters(request: Complete, family: Family) -> wire.VendorRequest:
    """Return a request as the arguments of ``generate_content``."""
    supported = supported_params(request, family)
    body: dict[str, Any] = {"max_output_tokens": supported.max_tokens}
    if supported.temperature is not None:
        body["temperature"] = supported.temperature
    if supported.seed is not None:
        body["seed"] = supported.seed % _SEED_RANGE
    if supported.stop:
        body["stop_sequences"] = list(supported.stop)
    if supported.top_logprobs:
        body |= {"response_logprobs": True, "logprobs": supported.top_logprobs}
    config = types.GenerateContentConfig(
        **body,
        system_instruction=wire.without_surrogates(request.system) or None,
        should_return_http_response=True,
        automatic_continuation=False,
        automatic_function_calling=_NO_CALLS,
    )
    contents = [
        _content("model" if m.role == "assistant" else "user", m.content) for m in request.messages
    ]
    record = wire.build_request(
        {}, {"model": request.model.name, **body}, prefix=False, not_sent=supported.not_sent
    )
    return wire.VendorRequest(
        {"model": request.model.name, "contents": contents, "config": config}, record.sent
    )


def _content(role: str, text: str) -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=wire.without_surrogates(text))])


def read_candidate(request: Complete, body: Any, sent: Mapping[str, Any]) -> Response:
    """Convert a generated candidate to a response.

    A candidate without text is empty where a limit or a stop sequence ended it, else a BadReply.
    """
    body = wire.require_object(body, "it")
    candidates = body.get("candidates") or []
    if not candidates and wire.optional_object(body.get("promptFeedback")).get("blockReason"):
        return _build_response(request, body, sent, finish="content_filter", refused=True)
    candidate = wire.require_object(
        next(iter(wire.require_list(candidates, "candidates")), None), "candidate"
    )
    finish = _FINISH.get(wire.optional_text(candidate.get("finishReason")), "other")
    refused = finish == "content_filter"
    listed = wire.optional_object(candidate.get("content")).get("parts")
    pieces = (
        [wire.require_object(part, "part") for part in wire.require_list(listed, "parts")]
        if listed
        else []
    )
    texts = [
        wire.require_text(part["text"], "text")
        for part in pieces
        if "text" in part and not part.get("thought")
    ]
    reasoning_texts = [
        wire.optional_text(part.get("text")) for part in pieces if part.get("thought")
    ]
    if (
        not texts
        and not refused
        and not (finish == "length" or (finish == "stop" and request.stop))
    ):
        ended = wire.optional_text(candidate.get("finishReason")) or "no reason"
        raise BadReply(f"the server's reply holds no text and ended with {ended}")
    return _build_response(
        request,
        body,
        sent,
        text="".join(texts) if texts or not refused else None,
        finish=finish,
        refused=refused,
        tokens=_tokens(wire.optional_object(candidate.get("logprobsResult"))),
        reasoning="".join(reasoning_texts) or None,
    )


def _build_response(
    request: Complete, body: Mapping[str, Any], sent: Mapping[str, Any], **fields: Any
) -> Response:
    used = wire.optional_object(body.get("usageMetadata"))
    thoughts = wire.optional_count(used.get("thoughtsTokenCount"))
    usage = Usage(
        wire.optional_count(used.get("promptTokenCount")),
        wire.sum_known(wire.optional_count(used.get("candidatesTokenCount")), thoughts),
        wire.optional_count(used.get("cachedContentTokenCount")),
        thoughts,
    )
    return wire.build_response(
        request, sent, usage=usage, model=wire.optional_text(body.get("modelVersion")), **fields
    )


def _tokens(logprobs: Mapping[str, Any]) -> tuple[Token, ...]:
    """Return the chosen tokens with the listed alternatives of each position."""
    chosen = wire.require_list(logprobs.get("chosenCandidates") or [], "chosenCandidates")
    others = wire.require_list(logprobs.get("topCandidates") or [], "topCandidates")
    tops = [
        wire.require_list(wire.optional_object(position).get("candidates") or [], "candidates")
        for position in others
    ]
    tops += [[]] * (len(chosen) - len(tops))
    return tuple(
        Token(
            *_token_pair(choice),
            tuple(
                _token_pair(other)
                for other in top
                if wire.has_logprob(wire.optional_object(other).get("logProbability"))
            ),
        )
        for choice, top in zip(chosen, tops, strict=False)
    )


def _token_pair(token: Any) -> tuple[str, float]:
    token = wire.require_object(token, "token")
    return wire.require_text(token.get("token"), "token"), wire.require_logprob(
        token.get("logProbability")
    )


def map_google_error(error: BaseException) -> ProviderError:
    """Return the ProviderError for an error of the SDK or of the connection."""
    if isinstance(error, errors.APIError):
        return _error_from_api(error)
    if isinstance(error, ValidationError):
        return BadReply(
            wire.short_message(f"the server's reply does not have the promised form: {error}")
        )
    if isinstance(error, ValueError) and not isinstance(error, wire.CONNECTION_ERRORS):
        return Unavailable(
            wire.short_message(f"the server's reply was cut or is not JSON: {error}")
        )
    return wire.error_from_connection(error)


def _error_from_api(error: errors.APIError) -> ProviderError:
    status, message = error.code, wire.optional_text(error.message) or str(error)
    if status == 400 and (
        error.status == "FAILED_PRECONDITION"
        or any(phrase in message.lower() for phrase in _BAD_KEY)
    ):
        return Unauthorised(f"the server refused the key (400): {wire.short_message(message)}")
    details = _details(error.details)
    if status == 429 and any(
        "PerDay" in str(v.get("quotaId")) for d in details for v in _violations(d)
    ):
        return wire.quota_error(message)
    waits = [
        wire.parse_wait_s(str(d["retryDelay"]).removesuffix("s"))
        for d in details
        if "retryDelay" in d
    ]
    after_s = wire.retry_after_s(getattr(error.response, "headers", None) or {})
    return wire.error_from_status(
        status,
        message,
        "google",
        max((w for w in (*waits, after_s) if w is not None), default=None),
    )


def _details(body: Any) -> list[Mapping[str, Any]]:
    listed = wire.optional_object(wire.optional_object(body).get("error")).get("details")
    return [wire.optional_object(detail) for detail in listed] if isinstance(listed, list) else []


def _violations(detail: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = detail.get("violations")
    return (
        [wire.optional_object(violation) for violation in listed]
        if isinstance(listed, list)
        else []
    )
