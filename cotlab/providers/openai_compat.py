"""Servers with OpenAI's chat interface, like vLLM, Ollama and Together, through the openai SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import httpx2
import openai

from cotlab.core.errors import BadReply, ConfigError, ProviderError
from cotlab.core.requests import Complete, Request, Response, Token, Usage
from cotlab.core.types import ModelRef
from cotlab.providers import wire
from cotlab.providers.capabilities import Family, family_of, supported_params
from cotlab.providers.continuation import ContinuationCheck, check_continuation, without_echo
from cotlab.providers.keys import key_for

ERRORS = (openai.OpenAIError, *wire.CONNECTION_ERRORS)
"""Exceptions that a call through the SDK may raise."""
_FINISH = {"stop": "stop", "length": "length", "content_filter": "content_filter"}
_REFUSALS = ("content_filter", "content_policy_violation", "invalid_prompt")
"""Error codes of a 400 that rejects a prompt for its content."""
_NO_MONEY = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")


class OpenAICompat:
    """A model behind ``ref.base_url``.

    The key comes from OPENAI_COMPAT_API_KEY; a server may need none.
    """

    answers = frozenset({Complete.kind})
    home: ClassVar[str | None] = None
    """Address of the vendor; None where the user has to name the server."""
    limit: ClassVar[str] = "max_tokens"
    """Name of the parameter that limits the output."""

    def __init__(self, ref: ModelRef) -> None:
        if not ref.base_url and not self.home:
            raise ConfigError(
                f"The provider {ref.provider} needs --base-url, e.g. http://127.0.0.1:8000/v1"
            )
        url = wire.clean_base_url(ref.base_url or self.home or "")
        self._family = family_of(ref.provider, ref.name)
        self.ref = replace(ref, form=wire.form_of(ref, self._family))
        self._echoes = False
        self._client = openai.AsyncOpenAI(
            base_url=url,
            api_key=key_for(ref.provider, ref.base_url),
            max_retries=0,
            timeout=None,
            http_client=openai.DefaultAioHttpClient(
                limits=wire.LIMITS, timeout=None, follow_redirects=False
            ),
        )

    async def send(self, request: Request) -> Response:
        """Send one chat completion request."""
        assert isinstance(request, Complete)
        vendor_request = completion_parameters(request, self._family, self.limit)
        try:
            reply = await self._client.post(
                "/chat/completions", cast_to=httpx2.Response, body=vendor_request.body
            )
        except ERRORS as error:
            if isinstance(error, openai.APIStatusError) and is_refusal(
                error.status_code, error.code
            ):
                return refusal_response(request, vendor_request.sent)
            raise map_openai_error(error, self.ref.provider) from error
        response = read_completion(
            request, wire.decode_body(reply.content), vendor_request.sent, self.ref.provider
        )
        return (
            without_echo(wire.without_surrogates(request.prefix), response)
            if self._echoes
            else response
        )

    def check_prefix(self, request: Complete, sample: int) -> ContinuationCheck:
        """Find out how the server treats prefixes, and strip echoed ones from then on."""
        verdict = yield from check_continuation(request, sample)
        self._echoes = verdict == "echoes"
        return verdict

    async def models(self) -> Sequence[str]:
        """Return the names of the models that the server lists."""
        listed = wire.require_list((await self._get("/models")).get("data"), "data")
        return sorted(
            wire.require_text(wire.require_object(row, "model").get("id"), "model's id")
            for row in listed
        )

    async def close(self) -> None:
        """Close the HTTP client."""
        await self._client.close()

    async def _get(self, path: str, **query: object) -> Mapping[str, Any]:
        try:
            reply = await self._client.get(path, cast_to=httpx2.Response, options={"params": query})
        except ERRORS as error:
            raise map_openai_error(error, self.ref.provider) from error
        return wire.require_object(wire.decode_body(reply.content), "it")


def completion_parameters(request: Complete, family: Family, limit: str) -> wire.VendorRequest:
    """Return a request as the chat interface takes it, alone or as a line of a batch."""
    supported = supported_params(request, family)
    messages = (
        [{"role": "system", "content": wire.without_surrogates(request.system)}]
        if request.system
        else []
    )
    messages += [
        {"role": m.role, "content": wire.without_surrogates(m.content)} for m in request.messages
    ]
    body: dict[str, Any] = {"model": request.model.name, limit: supported.max_tokens}
    if family.effort:
        body["reasoning_effort"] = family.effort
    if supported.temperature is not None:
        body["temperature"] = supported.temperature
    if supported.seed is not None:
        body["seed"] = supported.seed
    if supported.stop:
        body["stop"] = list(supported.stop)
    if supported.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": supported.top_logprobs}
    if request.prefix:
        messages.append({"role": "assistant", "content": wire.without_surrogates(request.prefix)})
        # vLLM and llama.cpp begin a new turn without these; other servers do not know them.
        body |= {"continue_final_message": True, "add_generation_prompt": False}
    return wire.build_request(
        {"messages": messages}, body, prefix=bool(request.prefix), not_sent=supported.not_sent
    )


def read_completion(
    request: Complete, body: Any, sent: Mapping[str, Any], provider: str
) -> Response:
    """Convert a chat completion to a response; some routers answer 200 with an error."""
    body = wire.require_object(body, "it")
    if not body.get("choices") and isinstance(error := body.get("error"), dict):
        raise error_from_body(wire.optional_count(error.get("code")) or 500, error, provider)
    choice = wire.require_object(
        next(iter(wire.require_list(body.get("choices"), "choices")), None), "choice"
    )
    message = wire.require_object(choice.get("message"), "message")
    finish = _FINISH.get(wire.optional_text(choice.get("finish_reason")), "other")
    refused = finish == "content_filter" or bool(message.get("refusal"))
    content = message.get("content")
    if content is None and finish == "length":
        content = ""  # all tokens went into reasoning
    used = wire.optional_object(body.get("usage"))
    return wire.build_response(
        request,
        sent,
        text=None if content is None and refused else wire.require_text(content, "content"),
        finish=finish,
        refused=refused,
        tokens=_tokens(choice.get("logprobs")),
        usage=Usage(
            wire.optional_count(used.get("prompt_tokens")),
            wire.optional_count(used.get("completion_tokens")),
            wire.optional_count(
                wire.optional_object(used.get("prompt_tokens_details")).get("cached_tokens")
            ),
            wire.optional_count(
                wire.optional_object(used.get("completion_tokens_details")).get("reasoning_tokens")
            ),
        ),
        reasoning=wire.optional_text(message.get("reasoning_content"))
        or wire.optional_text(message.get("reasoning"))
        or None,
        model=wire.optional_text(body.get("model")),
    )


def refusal_response(request: Complete, sent: Mapping[str, Any]) -> Response:
    """Return the response for a prompt that was rejected for its content."""
    return wire.build_response(request, sent, finish="content_filter", refused=True)


def is_refusal(status: int, code: object) -> bool:
    """Return whether an error rejects the prompt for its content."""
    return status == 400 and code in _REFUSALS


def map_openai_error(error: BaseException, provider: str = "openai_compat") -> ProviderError:
    """Return the ProviderError for an error of the SDK or of the connection."""
    if isinstance(error, openai.APIStatusError):
        error_body = {"code": error.code, "message": _message_of(error)}
        return error_from_body(
            error.status_code, error_body, provider, wire.retry_after_s(error.response.headers)
        )
    if isinstance(error, openai.APIConnectionError) or not isinstance(error, openai.OpenAIError):
        return wire.error_from_connection(error)
    return BadReply(wire.short_message(f"{type(error).__name__}: {error}"))


def _message_of(error: openai.APIStatusError) -> str:
    """Return the server's error message.

    FastAPI puts it in ``detail``, as text or as a list, and Ollama sends it as ``error`` itself.
    """
    body = error.body
    if isinstance(body, str):
        return error.message if body.startswith("<") else f"{error.message} - {body}"
    detail = wire.optional_object(body).get("detail")
    faults = (
        [wire.optional_object(fault).get("msg") for fault in detail]
        if isinstance(detail, list)
        else [detail]
    )
    reason = "; ".join(fault for fault in faults if isinstance(fault, str) and fault)
    return f"{error.message} - {reason}" if reason else error.message


def error_from_body(
    status: int, body: Mapping[str, Any], provider: str, after_s: float | None = None
) -> ProviderError:
    """Return the error for a status and the vendor's error object."""
    message = wire.optional_text(body.get("message")) or "no message"
    if body.get("code") in _NO_MONEY:
        return wire.quota_error(message)
    return wire.error_from_status(status, message, provider, after_s)


def _tokens(logprobs: Any) -> tuple[Token, ...]:
    listed = wire.optional_object(logprobs).get("content")
    return (
        tuple(
            _token(wire.require_object(entry, "token"))
            for entry in wire.require_list(listed, "logprobs")
        )
        if listed
        else ()
    )


def _token(entry: Mapping[str, Any]) -> Token:
    others = (
        wire.require_object(other, "alternative")
        for other in wire.require_list(entry.get("top_logprobs") or [], "top_logprobs")
    )
    top = tuple(
        (wire.require_text(o.get("token"), "token"), wire.require_logprob(o.get("logprob")))
        for o in others
        if wire.has_logprob(o.get("logprob"))
    )
    return Token(
        wire.require_text(entry.get("token"), "token"),
        wire.require_logprob(entry.get("logprob")),
        top,
    )
