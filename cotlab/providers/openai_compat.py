"""Servers with OpenAI's interface, like vLLM, llama.cpp and Together, through the openai SDK.

Requests go to /v1/chat/completions, or as raw text to /v1/completions where ``ref.endpoint`` says
so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NotRequired

from pydantic import BeforeValidator, Field
from typing_extensions import TypedDict  # typing.TypedDict is none to pydantic before 3.12

from cotlab.core.errors import BadReply, ConfigError, ProviderError, Unavailable, Unsupported
from cotlab.core.provider import Finding
from cotlab.core.requests import Complete, Embed, Request, Response, Token, Usage
from cotlab.core.types import ModelRef
from cotlab.providers import wire
from cotlab.providers.capabilities import Family, SupportedParams, supported_params
from cotlab.providers.continuation import cut_at_stop, remove_echo, tokens_after
from cotlab.providers.raw_prompt import (
    ServerTemplate,
    base_model_prompt,
    split_reasoning,
)
from cotlab.providers.sdk import SdkProvider
from cotlab.providers.server_limits import retry_after_s

if TYPE_CHECKING:
    import httpx2
    import openai

_FINISH_BY_REASON = {"stop": "stop", "length": "length", "content_filter": "content_filter"}
_REFUSAL_CODES = ("content_filter", "content_policy_violation", "invalid_prompt")
"""Error codes of a 400 that rejects a prompt for its content."""
_REJECTION_STATUSES = (400, 422)
"""Statuses of servers that know no response_format, or not this schema."""
_QUOTA_CODES = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")


class OpenAICompat(SdkProvider):
    """A model behind ``ref.base_url``.

    The key comes from OPENAI_COMPAT_API_KEY; a server may need none.
    """

    answers = frozenset({Complete.kind, Embed.kind})
    package = "openai"
    default_base_url: ClassVar[str | None] = None
    """Address of the vendor; None where the user has to name the server."""
    max_tokens_name: ClassVar[str] = "max_tokens"
    """Name of the parameter that limits the output."""

    def __init__(self, ref: ModelRef) -> None:
        if not ref.base_url and not self.default_base_url:
            raise ConfigError(
                f"The provider {ref.provider} needs --base-url, e.g. http://127.0.0.1:8000/v1"
            )
        url = wire.clean_base_url(ref.base_url or self.default_base_url or "")
        super().__init__(ref, url, map_openai_error)
        self._echoes_prefix = False
        self._template = ServerTemplate(self._post, url)

    @staticmethod
    def _client_classes() -> tuple[type[Any], Callable[..., httpx2.AsyncClient]]:
        import openai

        return openai.AsyncOpenAI, openai.DefaultAioHttpClient

    async def send(self, request: Request) -> Response:
        """Send one request: for vectors, as turns, or as raw text."""
        if isinstance(request, Embed):
            return read_vectors(
                request, await self._post("/embeddings", embedding_parameters(request))
            )
        assert isinstance(request, Complete)
        try:
            return await self._complete(request, self._family)
        except ProviderError as error:
            is_rejected = getattr(error.__cause__, "status_code", None) in _REJECTION_STATUSES
            if not (is_rejected and request.reply_schema and self._family.json_schema):
                raise
        family = replace(self._family, json_schema=False)
        response = await self._complete(request, family)
        self._family = family  # the server does take the request without a schema
        return response

    async def _complete(self, request: Complete, family: Family) -> Response:
        if self.ref.endpoint == "completions":
            prompt = await self._raw_prompt(request)
            read = partial(read_completion, key_variable=self._key_variable, prompt=prompt)
            response = await self._ask(
                request, "/completions", raw_parameters(request, prompt, family), read
            )
        else:
            response = await self._ask(
                request,
                "/chat/completions",
                completion_parameters(request, family, self.max_tokens_name),
                partial(read_completion, key_variable=self._key_variable),
            )
        if self._echoes_prefix:
            response = remove_echo(wire.replace_surrogates(request.prefix), response)
        return cut_at_stop(request.stop, response)

    def _parameters(self, request: Complete) -> wire.VendorRequest:
        return completion_parameters(request, self._family, self.max_tokens_name)

    async def _raw_prompt(self, request: Complete) -> str:
        if self.ref.form == "continuation":
            return base_model_prompt(request)
        return await self._template.prompt(request)

    def use_findings(self, findings: Mapping[str, Finding]) -> None:
        """Remove the prefix from replies if the server echoes it."""
        prefix = findings.get("prefix")
        self._echoes_prefix = prefix is not None and prefix.verdict == "echoed"

    async def models(self) -> Sequence[str]:
        """Return the names of the models that the server lists."""
        return await self._model_names("/models")


def completion_parameters(
    request: Complete, family: Family, max_tokens_name: str
) -> wire.VendorRequest:
    """Return a request as the chat interface takes it, alone or as a line of a batch."""
    accepted_params = supported_params(request, family)
    messages = wire.chat_messages(request)
    body = _sampling_parameters(request, accepted_params, max_tokens_name)
    if family.effort:
        body["reasoning_effort"] = family.effort
    if accepted_params.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": accepted_params.top_logprobs}
    if accepted_params.reply_schema:
        schema = {"name": "reply", "strict": True, "schema": dict(accepted_params.reply_schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.prefix:
        messages.append({"role": "assistant", "content": wire.replace_surrogates(request.prefix)})
        # vLLM and llama.cpp begin a new turn without these; other servers do not know them.
        body |= {"continue_final_message": True, "add_generation_prompt": False}
    return wire.build_request(
        {"messages": messages},
        body,
        has_prefix=bool(request.prefix),
        dropped_params=accepted_params.not_sent,
    )


def raw_parameters(request: Complete, prompt: str, family: Family) -> wire.VendorRequest:
    """Return a request as /v1/completions takes it, without a schema of the reply."""
    accepted_params = supported_params(request, replace(family, json_schema=False))
    body = _sampling_parameters(request, accepted_params, "max_tokens")
    if accepted_params.top_logprobs:
        body["logprobs"] = accepted_params.top_logprobs
    return wire.build_request(
        {"prompt": wire.replace_surrogates(prompt)},
        body,
        has_prefix=bool(request.prefix),
        dropped_params=accepted_params.not_sent,
    )


def _sampling_parameters(
    request: Complete, accepted_params: SupportedParams, max_tokens_name: str
) -> dict[str, Any]:
    """Return the parameters that both endpoints name alike."""
    body: dict[str, Any] = {
        "model": request.model.name,
        max_tokens_name: accepted_params.max_tokens,
        "temperature": accepted_params.temperature,
        "seed": accepted_params.seed,
        "stop": list(accepted_params.stop) or None,
    }
    return {name: value for name, value in body.items() if value is not None}


def embedding_parameters(request: Embed) -> dict[str, Any]:
    """Return a request for vectors as /v1/embeddings takes it."""
    if not all(text.strip() for text in request.texts):
        raise Unsupported("a text without a word has no vector")
    texts = [wire.replace_surrogates(text) for text in request.texts]
    return {"model": request.model.name, "input": texts, "encoding_format": "float"}


# Replies


class _TextPart(wire.Body):
    type: Literal["text"]
    text: str


class _ThinkingPart(wire.Body):
    type: Literal["thinking"]
    thinking: list[_Part]


_Part = Annotated[_TextPart | _ThinkingPart, Field(discriminator="type")]
"""Part of a content. Any other, such as a tool call, is an error: a text without it may say
something else."""


def _as_parts(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


class _Alternative(TypedDict):
    token: str
    logprob: wire.AnyNumber


class _Token(TypedDict):  # of which a reply may have thousands: a Body takes three times as long
    token: str
    logprob: wire.Number
    top_logprobs: NotRequired[list[_Alternative] | None]


class _Logprobs(wire.Body):
    content: list[_Token] | None = None
    """The chat's form; the fields below are that of /v1/completions of OpenAI and vLLM."""
    tokens: list[str] | None = None
    token_logprobs: list[wire.Number] | None = None
    top_logprobs: list[dict[str, wire.AnyNumber] | None] | None = None
    """Alternatives of each token, and the token itself where it is none of the likeliest."""


class _Usage(wire.Body):
    model: wire.Lenient[str] = None
    tokens_in: wire.Count = wire.field_at("usage.prompt_tokens")
    tokens_out: wire.Count = wire.field_at("usage.completion_tokens")
    cached: wire.Count = wire.field_at("usage.prompt_tokens_details.cached_tokens")
    reasoning_tokens: wire.Count = wire.field_at("usage.completion_tokens_details.reasoning_tokens")


class _Reply(_Usage):
    choices: list[Any] | None = None
    """The first is read."""
    finish_reason: wire.Lenient[str] = wire.field_at("choices.0.finish_reason")
    logprobs: _Logprobs | None = wire.field_at("choices.0.logprobs")
    text: str | None = wire.field_at("choices.0.text")
    """Of /v1/completions; the fields below are the chat's."""
    content: Annotated[list[_Part], BeforeValidator(_as_parts)] | None = wire.field_at(
        "choices.0.message.content"
    )
    """A text, or parts as Mistral sends them."""
    refusal: Any = wire.field_at("choices.0.message.refusal")
    reasoning_content: wire.Lenient[str] = wire.field_at("choices.0.message.reasoning_content")
    reasoning: wire.Lenient[str] = wire.field_at("choices.0.message.reasoning")
    error: wire.Lenient[wire.ServerError] = None


class _Vector(wire.Body):
    index: int
    embedding: list[wire.Number]


class _Vectors(_Usage):
    data: list[_Vector]


def read_completion(
    request: Complete,
    body: Any,
    sent_params: Mapping[str, Any],
    key_variable: str,
    *,
    prompt: str | None = None,
) -> Response:
    """Convert a completion of a chat, or of a raw ``prompt``, to a response."""
    reply = wire.read_body(_Reply, body)
    if not reply.choices:
        raise _error_without_choices(reply, key_variable)
    finish = _FINISH_BY_REASON.get(reply.finish_reason or "", "other")
    is_refused = finish == "content_filter" or bool(reply.refusal)
    tokens = _read_tokens(reply.logprobs, request.top_logprobs)
    if prompt is None:
        text, reasoning = _split_parts(reply.content or [])
        reasoning = reasoning or reply.reasoning_content or reply.reasoning or ""
        if text is None and (finish == "length" or (finish == "stop" and reasoning)):
            text = ""  # all tokens went into reasoning
    elif reply.text is None:
        raise wire.form_error("choices.0.text", "it is missing")
    else:
        reasoning, text = split_reasoning(prompt, reply.text)
        tokens = tokens_after(reply.text.removesuffix(text), text, tokens)
    if text is None and not is_refused:
        raise wire.form_error("choices.0.message.content", "it holds no text")
    return wire.build_response(
        request,
        sent_params,
        text=text,
        finish=finish,
        refused=is_refused,
        tokens=tokens,
        usage=Usage(reply.tokens_in, reply.tokens_out, reply.cached, reply.reasoning_tokens),
        reasoning=reasoning or None,
        model=reply.model or "",
    )


def _error_without_choices(reply: _Reply, key_variable: str) -> ProviderError:
    """Return the error of a reply without a choice; some routers answer 200 with an error."""
    if reply.error is None:
        return wire.form_error("choices", "it is empty")
    status = reply.error.code if isinstance(reply.error.code, int) else 500
    status_error = error_from_body(status, reply.error, key_variable)
    # the router got an answer, so a model may have worked on it
    status_error.may_be_billed = isinstance(status_error, Unavailable)
    return status_error


def read_vectors(request: Embed, body: Any) -> Response:
    """Convert a list of embeddings to a response with vectors of unit length, in order."""
    reply = wire.read_body(_Vectors, body)
    vector_by_index = {row.index: row.embedding for row in reply.data}
    n_texts = len(request.texts)
    if len(reply.data) != n_texts or vector_by_index.keys() != set(range(n_texts)):
        raise BadReply("the server returns embeddings of another number of texts")
    return Response(
        request.key,
        vectors=tuple(_unit_vector(vector_by_index[index]) for index in range(n_texts)),
        usage=Usage(reply.tokens_in, None if reply.tokens_in is None else 0),
        received_at=datetime.now(UTC).isoformat(),
        model=reply.model or "",
    )


def _unit_vector(vector: Sequence[float]) -> tuple[float, ...]:
    length = math.hypot(*vector)
    if not 0 < length < math.inf:
        raise BadReply("the server returns an embedding without a direction")
    return tuple(value / length for value in vector)


def _split_parts(parts: Sequence[_TextPart | _ThinkingPart]) -> tuple[str | None, str]:
    """Return the text, None where there is none, and the reasoning of the parts of a content."""
    texts = [part.text for part in parts if isinstance(part, _TextPart)]
    thoughts = [
        (text or "") + thought
        for part in parts
        if isinstance(part, _ThinkingPart)
        for text, thought in [_split_parts(part.thinking)]
    ]
    return "".join(texts) if texts else None, "\n".join(thoughts)


def _read_tokens(
    logprobs: _Logprobs | None, n_alternatives: int | None = None
) -> tuple[Token, ...]:
    """Return the tokens; those of /v1/completions with the likeliest alternatives first."""
    if logprobs is None:
        return ()
    if logprobs.tokens is None:
        return tuple(
            Token(
                entry["token"],
                entry["logprob"],
                _finite(
                    (other["token"], other["logprob"]) for other in entry.get("top_logprobs") or ()
                ),
            )
            for entry in logprobs.content or ()
        )
    texts, token_logprobs = logprobs.tokens, logprobs.token_logprobs or []
    alternatives = logprobs.top_logprobs or [None] * len(texts)
    if not len(texts) == len(token_logprobs) == len(alternatives):
        raise BadReply("the server lists log-probabilities of another number of tokens")
    return tuple(
        Token(text, logprob, _likeliest(logprob_by_text or {})[:n_alternatives])
        for text, logprob, logprob_by_text in zip(texts, token_logprobs, alternatives, strict=True)
    )


def _finite(alternatives: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """Return the alternatives that have a log-probability; some servers send -inf."""
    return tuple(pair for pair in alternatives if math.isfinite(pair[1]))


def _likeliest(logprob_by_text: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(_finite(logprob_by_text.items()), key=lambda pair: -pair[1]))


def map_openai_error(error: BaseException, key_variable: str = "") -> ProviderError:
    """Return the ProviderError for an error of the SDK or of the connection."""
    import openai

    if isinstance(error, openai.APIStatusError):
        server_error = wire.ServerError(code=error.code, message=_error_message(error))
        return error_from_body(
            error.status_code, server_error, key_variable, retry_after_s(error.response.headers)
        )
    if isinstance(error, openai.APIConnectionError) or not isinstance(error, openai.OpenAIError):
        return wire.error_from_connection(error)
    return BadReply(wire.shorten_message(f"{type(error).__name__}: {error}"))


def _error_message(error: openai.APIStatusError) -> str:
    """Return the server's error message.

    FastAPI puts it in ``detail``, as text or as a list, and Ollama sends it as ``error`` itself.
    """
    body = error.body
    if isinstance(body, str):
        return error.message if body.startswith("<") else f"{error.message} - {body}"
    detail = body.get("detail") if isinstance(body, dict) else None
    entries = detail if isinstance(detail, list) else [{"msg": detail}]
    messages = [entry.get("msg") for entry in entries if isinstance(entry, dict)]
    reason = "; ".join(message for message in messages if message and isinstance(message, str))
    return f"{error.message} - {reason}" if reason else error.message


def error_from_body(
    status: int, error: wire.ServerError, key_variable: str, retry_wait_s: float | None = None
) -> ProviderError:
    """Return the error for a status and the vendor's error object."""
    message = error.message or "no message"
    if status == 400 and error.code in _REFUSAL_CODES:
        return wire.ContentRejected(wire.shorten_message(message))
    if error.code in _QUOTA_CODES:
        return wire.quota_error(message)
    return wire.error_from_status(status, message, key_variable, retry_wait_s)
