"""Any server that speaks OpenAI's chat interface: vLLM, Ollama, Together and others, through the openai SDK."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import openai

from cotlab.core.errors import (
    BadReply,
    ConfigError,
    ProviderError,
    RateLimited,
    TimedOut,
    Unauthorised,
    Unavailable,
    Unsupported,
)
from cotlab.core.requests import Complete, Request, Response, Token, Usage
from cotlab.core.types import ModelRef

KEY = "OPENAI_COMPAT_API_KEY"
TIMEOUT_S = 120.0
MOST_LOGPROBS = 20


class OpenAICompat:
    """One model behind ``ref.base_url``. The key comes from OPENAI_COMPAT_API_KEY; a local server needs none."""

    answers = frozenset({Complete.kind})

    def __init__(self, ref: ModelRef) -> None:
        if not ref.base_url:
            raise ConfigError("The provider openai_compat needs --base-url, e.g. http://127.0.0.1:8000/v1")
        self.ref = replace(ref, form="chat")
        self._client = openai.AsyncOpenAI(
            base_url=ref.base_url, api_key=os.environ.get(KEY) or "none", max_retries=0, timeout=TIMEOUT_S
        )

    async def send(self, request: Request) -> Response:
        assert isinstance(request, Complete)
        sent = _parameters(request)
        try:
            reply = await self._client.chat.completions.create(**sent)
        except openai.OpenAIError as error:
            raise map_error(error) from error
        except ValueError as error:
            raise BadReply(f"the server's reply is not JSON: {error}") from error
        return _read(request, reply, sent)

    async def close(self) -> None:
        await self._client.close()


def map_error(error: openai.OpenAIError) -> ProviderError:
    """The house's error for one of the SDK's, with the server's words shortened and without the key."""
    said = str(error)[:300]
    if isinstance(error, openai.APITimeoutError):
        return TimedOut(f"no reply within {TIMEOUT_S:.0f} s")
    if isinstance(error, openai.APIResponseValidationError):
        return BadReply(f"the server's reply does not have the promised form: {said}")
    if isinstance(error, openai.APIConnectionError):
        return Unavailable(f"the server cannot be reached: {error.__cause__ or said}")
    if isinstance(error, openai.RateLimitError):
        after = error.response.headers.get("retry-after", "")
        return RateLimited("too many requests (429)", float(after) if after.replace(".", "", 1).isdigit() else None)
    if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
        return Unauthorised(f"the server refused the key ({error.status_code}): set {KEY}")
    if isinstance(error, openai.APIStatusError):
        if error.status_code >= 500 or error.status_code in (408, 409):
            return Unavailable(f"the server answered {error.status_code}")
        return Unsupported(f"the server answered {error.status_code}: {said}")
    return BadReply(said)


def _parameters(request: Complete) -> dict[str, Any]:
    messages = [{"role": "system", "content": request.system}] if request.system else []
    messages += [{"role": m.role, "content": m.content} for m in request.messages]
    if request.prefix:
        messages.append({"role": "assistant", "content": request.prefix})
    sent: dict[str, Any] = {
        "model": request.model.name, "messages": messages, "max_tokens": request.max_tokens,
        "temperature": request.temperature,
    }  # fmt: skip
    if request.seed is not None:
        sent["seed"] = request.seed + request.sample
    if request.stop:
        sent["stop"] = list(request.stop)
    if request.top_logprobs:
        sent |= {"logprobs": True, "top_logprobs": min(request.top_logprobs, MOST_LOGPROBS)}
    return sent


def _read(request: Complete, reply: Any, sent: dict[str, Any]) -> Response:
    try:
        choice = reply.choices[0]
        message = choice.message
        content = message.content
    except (AttributeError, IndexError, TypeError) as error:
        raise BadReply("the server's reply holds no choice") from error
    if content is not None and not isinstance(content, str):
        raise BadReply("the server's reply holds no text")
    refused = choice.finish_reason == "content_filter" or bool(getattr(message, "refusal", None))
    if content is None and not refused:
        raise BadReply("the server's reply holds no text")
    listed = getattr(choice.logprobs, "content", None) or () if choice.logprobs else ()
    tokens = tuple(
        Token(t.token, t.logprob, tuple((o.token, o.logprob) for o in t.top_logprobs or () if math.isfinite(o.logprob)))
        for t in listed
    )
    used = reply.usage
    details = getattr(used, "prompt_tokens_details", None)
    out = getattr(used, "completion_tokens_details", None)
    usage = Usage(
        getattr(used, "prompt_tokens", None), getattr(used, "completion_tokens", None),
        getattr(details, "cached_tokens", None), getattr(out, "reasoning_tokens", None),
    )  # fmt: skip
    return Response(
        request.key, content, tokens=tokens, usage=usage, finish=str(choice.finish_reason or ""), refused=refused,
        reasoning=getattr(message, "reasoning_content", None),
        sent={k: v for k, v in sent.items() if k != "messages"}, received_at=datetime.now(UTC).isoformat(),
    )  # fmt: skip
