"""Any server that speaks OpenAI's chat interface: vLLM, Ollama, Together and others, through the openai SDK."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

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
        address = urlsplit(ref.base_url)
        if address.scheme not in ("http", "https") or not address.hostname or "@" in address.netloc:
            raise ConfigError(
                f"--base-url takes http://HOST/PATH or https://HOST/PATH without a password; a key goes into {KEY}."
            )
        self.ref = replace(ref, form="chat")
        self._client = openai.AsyncOpenAI(
            base_url=ref.base_url, api_key=os.environ.get(KEY) or "none", max_retries=0, timeout=TIMEOUT_S
        )

    async def send(self, request: Request) -> Response:
        assert isinstance(request, Complete)
        sent = _parameters(request)
        try:
            reply = await self._client.chat.completions.create(**sent)
        except openai.BadRequestError as error:
            if error.code != "content_filter":
                raise map_error(error) from error
            return _response(request, sent, finish="content_filter", refused=True)
        except openai.OpenAIError as error:
            raise map_error(error) from error
        except ValueError as error:
            raise BadReply(f"the server's reply is not JSON: {error}") from error
        try:
            return _read(request, reply, sent)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise BadReply(f"the server's reply does not have the promised form: {error}") from error

    async def close(self) -> None:
        await self._client.close()


def map_error(error: openai.OpenAIError) -> ProviderError:
    """The house's error for one of the SDK's, with the server's words shortened and without the key.

    What no request of the run could get past is Unauthorised: the key, a used-up quota, a model or path that is not there.
    """
    said = str(error)
    if key := os.environ.get(KEY):
        said = said.replace(key, "***")
    said = said[:300]
    if isinstance(error, openai.APITimeoutError):
        return TimedOut(f"no reply within {TIMEOUT_S:.0f} s")
    if isinstance(error, openai.APIResponseValidationError):
        return BadReply(f"the server's reply does not have the promised form: {said}")
    if isinstance(error, openai.APIConnectionError):
        return Unavailable(f"the server cannot be reached: {error.__cause__ or said}")
    if not isinstance(error, openai.APIStatusError):
        return BadReply(said)
    if error.code == "insufficient_quota":
        return Unauthorised(f"the account behind the key has no quota left ({error.status_code})")
    if isinstance(error, openai.RateLimitError):
        return RateLimited("too many requests (429)", _after_s(error.response.headers))
    if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
        return Unauthorised(f"the server refused the key ({error.status_code}): set {KEY}")
    if isinstance(error, openai.NotFoundError):
        return Unauthorised(f"the server knows no such model, or --base-url is wrong (404): {said}")
    if error.status_code >= 500 or error.status_code in (408, 409):
        return Unavailable(f"the server answered {error.status_code}")
    return Unsupported(f"the server answered {error.status_code}: {said}")


def _after_s(headers: Mapping[str, str]) -> float | None:
    """Retry-After in seconds, given as a number or as a date; None where there is no usable one."""
    told = headers.get("retry-after", "")
    try:
        after = float(told)
    except ValueError:
        try:
            after = (parsedate_to_datetime(told) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return after if 0 <= after < math.inf else None


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
    choice = reply.choices[0]
    message = choice.message
    content = message.content
    refused = choice.finish_reason == "content_filter" or bool(getattr(message, "refusal", None))
    if not isinstance(content, str) and not (content is None and refused):
        raise TypeError("it holds no text")
    listed = getattr(choice.logprobs, "content", None) or () if choice.logprobs else ()
    used = reply.usage
    details = getattr(used, "prompt_tokens_details", None)
    out = getattr(used, "completion_tokens_details", None)
    reasoning = getattr(message, "reasoning_content", None)
    return _response(
        request, sent, text=None if content is None else _clean(content), tokens=tuple(map(_token, listed)),
        usage=Usage(
            _count(used, "prompt_tokens"), _count(used, "completion_tokens"), _count(details, "cached_tokens"),
            _count(out, "reasoning_tokens"),
        ),
        finish=str(choice.finish_reason or ""), refused=refused,
        reasoning=_clean(reasoning) if isinstance(reasoning, str) else None,
    )  # fmt: skip


def _response(request: Complete, sent: dict[str, Any], **said: Any) -> Response:
    told = {k: v for k, v in sent.items() if k != "messages"}
    return Response(request.key, sent=told, received_at=datetime.now(UTC).isoformat(), **said)


def _token(told: Any) -> Token:
    if not math.isfinite(told.logprob):
        raise ValueError("a log-probability is not finite")
    top = ((str(o.token), float(o.logprob)) for o in told.top_logprobs or () if math.isfinite(o.logprob))
    return Token(_clean(told.token), float(told.logprob), tuple((_clean(text), logprob) for text, logprob in top))


def _count(used: Any, name: str) -> int | None:
    """A count of tokens, or None where the server gives none or no number."""
    count = getattr(used, name, None)
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def _clean(text: str) -> str:
    """``text`` without lone surrogates, which no file and no database takes."""
    return text.encode("utf-8", "replace").decode("utf-8")
