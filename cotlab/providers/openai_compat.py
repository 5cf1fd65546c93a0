"""Any server that speaks OpenAI's chat interface: vLLM, Ollama, Together and others, through the openai SDK."""

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
from cotlab.providers.capabilities import Family, family_of, taken
from cotlab.providers.continuation import Check, check_continuation, without_echo
from cotlab.providers.keys import key_for

ERRORS = (openai.OpenAIError, *wire.LOST)
"""All that a call through the SDK may raise, but for our own faults."""
_FINISH = {"stop": "stop", "length": "length", "content_filter": "content_filter"}
_REFUSALS = ("content_filter", "content_policy_violation", "invalid_prompt")
"""Codes of a 400 that turns away the prompt for what it says."""
_NO_MONEY = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")


class OpenAICompat:
    """One model behind ``ref.base_url``. The key comes from OPENAI_COMPAT_API_KEY; a server may need none."""

    answers = frozenset({Complete.kind})
    home: ClassVar[str | None] = None
    """Where the vendor lives; None where only the user knows."""
    limit: ClassVar[str] = "max_tokens"
    """What the limit of the output is called."""

    def __init__(self, ref: ModelRef) -> None:
        if not ref.base_url and not self.home:
            raise ConfigError(f"The provider {ref.provider} needs --base-url, e.g. http://127.0.0.1:8000/v1")
        url = wire.address(ref.base_url or self.home or "")
        self._family = family_of(ref.provider, ref.name)
        self.ref = replace(ref, form=wire.form_of(ref, self._family))
        self._echoes = False
        self._client = openai.AsyncOpenAI(
            base_url=url, api_key=key_for(ref.provider, ref.base_url), max_retries=0, timeout=None,
            http_client=openai.DefaultAioHttpClient(limits=wire.LIMITS, timeout=None, follow_redirects=False),
        )  # fmt: skip

    async def send(self, request: Request) -> Response:
        assert isinstance(request, Complete)
        asked = parameters(request, self._family, self.limit)
        try:
            reply = await self._client.post("/chat/completions", cast_to=httpx2.Response, body=asked.body)
        except ERRORS as error:
            if isinstance(error, openai.APIStatusError) and is_refusal(error.status_code, error.code):
                return refusal(request, asked.sent)
            raise map_error(error, self.ref.provider) from error
        response = read(request, wire.decoded(reply.content), asked.sent, self.ref.provider)
        return without_echo(wire.clean(request.prefix), response) if self._echoes else response

    def check_prefix(self, request: Complete, sample: int) -> Check:
        """Find out how the server treats prefixes; from then on those that it echoes are cut from its replies."""
        verdict = yield from check_continuation(request, sample)
        self._echoes = verdict == "echoes"
        return verdict

    async def models(self) -> Sequence[str]:
        """The names of the models that the key reaches."""
        listed = wire.listing((await self._get("/models")).get("data"), "data")
        return sorted(wire.words(wire.mapping(row, "model").get("id"), "model's id") for row in listed)

    async def close(self) -> None:
        await self._client.close()

    async def _get(self, path: str, **query: object) -> Mapping[str, Any]:
        try:
            reply = await self._client.get(path, cast_to=httpx2.Response, options={"params": query})
        except ERRORS as error:
            raise map_error(error, self.ref.provider) from error
        return wire.mapping(wire.decoded(reply.content), "it")


def parameters(request: Complete, family: Family, limit: str) -> wire.Asked:
    """The request as the chat interface takes it; the same for a single call and for a line of a batch."""
    take = taken(request, family)
    messages = [{"role": "system", "content": wire.clean(request.system)}] if request.system else []
    messages += [{"role": m.role, "content": wire.clean(m.content)} for m in request.messages]
    body: dict[str, Any] = {"model": request.model.name, limit: take.max_tokens}
    if family.effort:
        body["reasoning_effort"] = family.effort
    if take.temperature is not None:
        body["temperature"] = take.temperature
    if take.seed is not None:
        body["seed"] = take.seed
    if take.stop:
        body["stop"] = list(take.stop)
    if take.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": take.top_logprobs}
    if request.prefix:
        messages.append({"role": "assistant", "content": wire.clean(request.prefix)})
        # vLLM and llama.cpp begin a new turn without these; other servers do not know them.
        body |= {"continue_final_message": True, "add_generation_prompt": False}
    return wire.asked({"messages": messages}, body, prefix=bool(request.prefix), not_sent=take.not_sent)


def read(request: Complete, body: Any, sent: Mapping[str, Any], provider: str) -> Response:
    """A chat completion. Some routers answer 200 and tell the error in the body."""
    body = wire.mapping(body, "it")
    if not body.get("choices") and isinstance(error := body.get("error"), dict):
        raise told_error(wire.count(error.get("code")) or 500, error, provider)
    choice = wire.mapping(next(iter(wire.listing(body.get("choices"), "choices")), None), "choice")
    message = wire.mapping(choice.get("message"), "message")
    finish = _FINISH.get(wire.maybe_words(choice.get("finish_reason")), "other")
    refused = finish == "content_filter" or bool(message.get("refusal"))
    content = message.get("content")
    if content is None and finish == "length":
        content = ""  # all of the allowance went into reasoning
    used = wire.maybe(body.get("usage"))
    return wire.answered(
        request, sent, text=None if content is None and refused else wire.words(content, "content"), finish=finish,
        refused=refused, tokens=_tokens(choice.get("logprobs")),
        usage=Usage(
            wire.count(used.get("prompt_tokens")), wire.count(used.get("completion_tokens")),
            wire.count(wire.maybe(used.get("prompt_tokens_details")).get("cached_tokens")),
            wire.count(wire.maybe(used.get("completion_tokens_details")).get("reasoning_tokens")),
        ),
        reasoning=wire.maybe_words(message.get("reasoning_content")) or wire.maybe_words(message.get("reasoning")) or None,
        model=wire.maybe_words(body.get("model")),
    )  # fmt: skip


def refusal(request: Complete, sent: Mapping[str, Any]) -> Response:
    """A prompt that was turned away for what it says."""
    return wire.answered(request, sent, finish="content_filter", refused=True)


def is_refusal(status: int, code: object) -> bool:
    return status == 400 and code in _REFUSALS


def map_error(error: BaseException, provider: str = "openai_compat") -> ProviderError:
    """The house's error for one of the SDK's, or for one of the connection that the SDK lets through."""
    if isinstance(error, openai.APIStatusError):
        told = {"code": error.code, "message": _message_of(error)}
        return told_error(error.status_code, told, provider, wire.after_s(error.response.headers))
    if isinstance(error, openai.APIConnectionError) or not isinstance(error, openai.OpenAIError):
        return wire.lost(error)
    return BadReply(wire.shortened(f"{type(error).__name__}: {error}"))


def _message_of(error: openai.APIStatusError) -> str:
    """Return the server's message; FastAPI has it in ``detail``, as text or as a list of faults, Ollama as ``error`` itself."""
    body = error.body
    if isinstance(body, str):
        return error.message if body.startswith("<") else f"{error.message} - {body}"
    detail = wire.maybe(body).get("detail")
    faults = [wire.maybe(fault).get("msg") for fault in detail] if isinstance(detail, list) else [detail]
    reason = "; ".join(fault for fault in faults if isinstance(fault, str) and fault)
    return f"{error.message} - {reason}" if reason else error.message


def told_error(status: int, told: Mapping[str, Any], provider: str, after_s: float | None = None) -> ProviderError:
    """The error for a status and the vendor's error object."""
    said = wire.maybe_words(told.get("message")) or "no words"
    if told.get("code") in _NO_MONEY:
        return wire.out_of_money(said)
    return wire.by_status(status, said, provider, after_s)


def _tokens(logprobs: Any) -> tuple[Token, ...]:
    listed = wire.maybe(logprobs).get("content")
    return tuple(_token(wire.mapping(one, "token")) for one in wire.listing(listed, "logprobs")) if listed else ()


def _token(told: Mapping[str, Any]) -> Token:
    others = (wire.mapping(other, "alternative") for other in wire.listing(told.get("top_logprobs") or [], "top_logprobs"))
    top = tuple(
        (wire.words(o.get("token"), "token"), wire.nats(o.get("logprob"))) for o in others if wire.finite(o.get("logprob"))
    )
    return Token(wire.words(told.get("token"), "token"), wire.nats(told.get("logprob")), top)
