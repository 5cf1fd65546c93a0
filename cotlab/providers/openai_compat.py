"""Servers with OpenAI's interface, like vLLM, llama.cpp and Together, through the openai SDK.

Requests go to /v1/chat/completions, or as raw text to /v1/completions where ``ref.endpoint`` says
so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import openai

from cotlab.core.errors import BadReply, ConfigError, ProviderError, Unavailable
from cotlab.core.provider import Finding
from cotlab.core.requests import Complete, Embed, Request, Response, Token, Usage
from cotlab.core.types import ModelRef
from cotlab.providers import waits, wire
from cotlab.providers.capabilities import Family, SupportedParams, supported_params
from cotlab.providers.continuation import cut_at_stop, remove_echo, tokens_after
from cotlab.providers.embeddings import embedding_parameters, read_vectors
from cotlab.providers.raw_prompt import (
    ChatTemplate,
    RawPrompt,
    ServerTemplate,
    base_model_prompt,
    check_token_count,
    open_folder_template,
    split_reasoning,
)
from cotlab.providers.sdk import SdkProvider

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
    _client: openai.AsyncOpenAI
    default_base_url: ClassVar[str | None] = None
    """Address of the vendor; None where the user has to name the server."""
    max_tokens_name: ClassVar[str] = "max_tokens"
    """Name of the parameter that limits the output."""

    def __init__(self, ref: ModelRef, *, template_folder: str = "") -> None:
        if not ref.base_url and not self.default_base_url:
            raise ConfigError(
                f"The provider {ref.provider} needs --base-url, e.g. http://127.0.0.1:8000/v1"
            )
        url = wire.clean_base_url(ref.base_url or self.default_base_url or "")
        super().__init__(ref, url, openai.AsyncOpenAI, openai.DefaultAioHttpClient)
        self._echoes_prefix = False
        self._template: ChatTemplate = ServerTemplate(self._post, url)
        if template_folder:
            self._template, revision = open_folder_template(template_folder)
            self.ref = replace(self.ref, revision=f"template {revision}")

    def _mapped_errors(self) -> AbstractContextManager[None]:
        return wire.mapped_errors(partial(map_openai_error, provider=self.ref.provider))

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
            cause = error.__cause__
            is_rejected = isinstance(cause, openai.APIStatusError) and (
                cause.status_code in _REJECTION_STATUSES
            )
            if not (is_rejected and request.reply_schema and self._family.json_schema):
                raise
        family = replace(self._family, json_schema=False)
        response = await self._complete(request, family)
        self._family = family  # the server does take the request without a schema
        return response

    async def _complete(self, request: Complete, family: Family) -> Response:
        prompt = await self._raw_prompt(request) if self.ref.endpoint == "completions" else None
        if prompt is not None:
            path = "/completions"
            body, sent_params = raw_parameters(request, prompt, family)
        else:
            path = "/chat/completions"
            body, sent_params = completion_parameters(request, family, self.max_tokens_name)
        try:
            reply = await self._post(path, body)
        except ProviderError as error:
            cause = error.__cause__
            if isinstance(cause, openai.APIStatusError) and is_refusal(
                cause.status_code, cause.code
            ):
                return wire.refusal_response(request, sent_params)
            raise
        if prompt is not None:
            response = read_raw_completion(
                request, reply, sent_params, self.ref.provider, prompt=prompt.text
            )
            check_token_count(prompt, response.usage.tokens_in)
        else:
            response = read_completion(request, reply, sent_params, self.ref.provider)
        if self._echoes_prefix:
            response = remove_echo(wire.replace_surrogates(request.prefix), response)
        return cut_at_stop(request.stop, response)

    async def _raw_prompt(self, request: Complete) -> RawPrompt:
        if self.ref.form == "continuation":
            return base_model_prompt(request)
        return await self._template.prompt(request)

    def use_findings(self, findings: Mapping[str, Finding]) -> None:
        """Remove the prefix from replies if the server echoes it."""
        prefix = findings.get("prefix")
        self._echoes_prefix = prefix is not None and prefix.verdict == "echoed"

    async def models(self) -> Sequence[str]:
        """Return the names of the models that the server lists."""
        return wire.model_ids(await self._get("/models"))


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


def raw_parameters(request: Complete, prompt: RawPrompt, family: Family) -> wire.VendorRequest:
    """Return a request as /v1/completions takes it, without a schema of the reply."""
    accepted_params = supported_params(request, replace(family, json_schema=False))
    body = _sampling_parameters(request, accepted_params, "max_tokens")
    if accepted_params.top_logprobs:
        body["logprobs"] = accepted_params.top_logprobs
    if prompt.has_special_tokens:
        body["add_special_tokens"] = False
    return wire.build_request(
        {"prompt": wire.replace_surrogates(prompt.text)},
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
        "n": request.n_choices if request.n_choices > 1 else None,
    }
    return {name: value for name, value in body.items() if value is not None}


def read_completion(
    request: Complete, body: Any, sent_params: Mapping[str, Any], provider: str
) -> Response:
    """Convert a chat completion to a response."""
    body, choice = _read_choice(body, provider)
    message = wire.require_object(choice.get("message"), "message")
    finish = _finish_of(choice)
    is_refused = finish == "content_filter" or bool(message.get("refusal"))
    content, reasoning = message.get("content"), ""
    if isinstance(content, list):
        content, reasoning = wire.read_parts(content)
    for name in ("reasoning_content", "reasoning"):
        reasoning = reasoning or wire.optional_text(message.get(name))
    if content is None and (finish == "length" or (finish == "stop" and reasoning)):
        content = ""  # all tokens went into reasoning
    return wire.build_response(
        request,
        sent_params,
        text=None if content is None and is_refused else wire.require_text(content, "content"),
        finish=finish,
        refused=is_refused,
        tokens=_read_tokens(choice.get("logprobs")),
        usage=_read_usage(body),
        reasoning=reasoning or None,
        model=wire.optional_text(body.get("model")),
        n_choices=len(body["choices"]) if request.n_choices > 1 else None,
    )


def read_raw_completion(
    request: Complete, body: Any, sent_params: Mapping[str, Any], provider: str, *, prompt: str
) -> Response:
    """Convert a completion of ``prompt`` to a response, without its hidden reasoning."""
    body, choice = _read_choice(body, provider)
    finish = _finish_of(choice)
    whole_text = wire.require_text(choice.get("text"), "text")
    reasoning, text = split_reasoning(prompt, whole_text)
    tokens = _read_tokens(choice.get("logprobs"), request.top_logprobs)
    return wire.build_response(
        request,
        sent_params,
        text=text,
        finish=finish,
        refused=finish == "content_filter",
        tokens=tokens_after(whole_text.removesuffix(text), text, tokens),
        usage=_read_usage(body),
        reasoning=reasoning or None,
        model=wire.optional_text(body.get("model")),
        n_choices=len(body["choices"]) if request.n_choices > 1 else None,
    )


def _read_choice(body: Any, provider: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return a reply and its first choice; some routers answer 200 with an error."""
    body = wire.require_object(body, "it")
    if not body.get("choices") and isinstance(error := body.get("error"), dict):
        status_error = error_from_body(
            wire.optional_count(error.get("code")) or 500, error, provider
        )
        # the router got an answer, so a model may have worked on it
        status_error.may_be_billed = isinstance(status_error, Unavailable)
        raise status_error
    choices = wire.require_list(body.get("choices"), "choices")
    return body, wire.require_object(next(iter(choices), None), "choice")


def _finish_of(choice: Mapping[str, Any]) -> str:
    return _FINISH_BY_REASON.get(wire.optional_text(choice.get("finish_reason")), "other")


def _read_usage(body: Mapping[str, Any]) -> Usage:
    usage_record = wire.optional_object(body.get("usage"))
    input_details = wire.optional_object(usage_record.get("prompt_tokens_details"))
    output_details = wire.optional_object(usage_record.get("completion_tokens_details"))
    return Usage(
        wire.optional_count(usage_record.get("prompt_tokens")),
        wire.optional_count(usage_record.get("completion_tokens")),
        wire.optional_count(input_details.get("cached_tokens")),
        wire.optional_count(output_details.get("reasoning_tokens")),
    )


def is_refusal(status: int, code: object) -> bool:
    """Return whether an error rejects the prompt for its content."""
    return status == 400 and code in _REFUSAL_CODES


def map_openai_error(error: BaseException, provider: str = "openai_compat") -> ProviderError:
    """Return the ProviderError for an error of the SDK or of the connection."""
    if isinstance(error, openai.APIStatusError):
        error_body = {"code": error.code, "message": _error_message(error)}
        return error_from_body(
            error.status_code, error_body, provider, waits.retry_after_s(error.response.headers)
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
    detail = wire.optional_object(body).get("detail")
    messages = (
        [wire.optional_object(validation_error).get("msg") for validation_error in detail]
        if isinstance(detail, list)
        else [detail]
    )
    reason = "; ".join(
        validation_error
        for validation_error in messages
        if isinstance(validation_error, str) and validation_error
    )
    return f"{error.message} - {reason}" if reason else error.message


def error_from_body(
    status: int, body: Mapping[str, Any], provider: str, retry_wait_s: float | None = None
) -> ProviderError:
    """Return the error for a status and the vendor's error object."""
    message = wire.optional_text(body.get("message")) or "no message"
    if body.get("code") in _QUOTA_CODES:
        return wire.quota_error(message)
    return wire.error_from_status(status, message, provider, retry_wait_s)


def _read_tokens(logprobs: Any, n_alternatives: int | None = None) -> tuple[Token, ...]:
    """Return the tokens of the chat's form, or of the older one that lists each field by itself."""
    record = wire.optional_object(logprobs)
    if isinstance(record.get("tokens"), list):
        return _read_token_columns(record, n_alternatives)
    entries = record.get("content") or []
    return tuple(_read_token(entry) for entry in wire.require_objects(entries, "logprobs", "token"))


def _read_token_columns(record: Mapping[str, Any], n_alternatives: int | None) -> tuple[Token, ...]:
    """Return the tokens of /v1/completions of OpenAI and vLLM, likeliest alternatives first.

    Each token's alternatives are an object of log-probabilities by text, to which the token itself
    is added where it is none of the likeliest.
    """
    texts, logprobs = record["tokens"], wire.require_list(record.get("token_logprobs"), "logprobs")
    alternatives = record.get("top_logprobs") or [None] * len(texts)
    if not len(texts) == len(logprobs) == len(wire.require_list(alternatives, "top_logprobs")):
        raise BadReply("the server lists log-probabilities of another number of tokens")
    tokens = []
    for text, logprob, logprob_by_text in zip(texts, logprobs, alternatives, strict=True):
        entry = {
            "token": text,
            "logprob": logprob,
            "top_logprobs": [
                {"token": key, "logprob": value}
                for key, value in wire.optional_object(logprob_by_text).items()
            ],
        }
        token = _read_token(entry)
        ranked = sorted(token.top, key=lambda alternative: -alternative[1])
        tokens.append(replace(token, top=tuple(ranked[:n_alternatives])))
    return tuple(tokens)


def _read_token(entry: Mapping[str, Any]) -> Token:
    alternatives = wire.require_objects(
        entry.get("top_logprobs") or [], "top_logprobs", "alternative"
    )
    top_alternatives = tuple(
        (
            wire.require_text(alternative.get("token"), "token"),
            wire.require_logprob(alternative.get("logprob")),
        )
        for alternative in alternatives
        if wire.has_logprob(alternative.get("logprob"))
    )
    return Token(
        wire.require_text(entry.get("token"), "token"),
        wire.require_logprob(entry.get("logprob")),
        top_alternatives,
    )
