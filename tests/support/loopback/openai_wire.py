"""The wire form of OpenAI's chat completions and what its reasoning models refuse to take."""

from __future__ import annotations

import re
from typing import Any

from chat import ChatRequest, Used, in_openai_form, refusal_of, text_of

BLOCKS = False
MODELS = ("gpt-4o-mini", "gpt-5-mini", "o4-mini")
_REASONING = re.compile(r"o1|o3|o4|gpt-5(?!-chat)|gpt-6")
_FINISH = {"safety": "content_filter", "max_tokens": "length", "end_turn": "stop"}
_TYPES = {
    401: "authentication_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
}


def read(path: str, asked: dict[str, Any]) -> ChatRequest:
    messages = asked.get("messages") or []
    most = asked.get("max_completion_tokens") or asked.get("max_tokens")
    prefill = bool(messages) and messages[-1].get("role") == "assistant"
    return ChatRequest(
        asked.get("model", ""),
        [text_of(m.get("content")) for m in messages],
        prefill,
        most,
        asked.get("n") or 1,
    )


def reject(asked: dict[str, Any], ask: ChatRequest) -> dict[str, Any] | None:
    """The error of a model that reasons for what it does not take."""
    if not _REASONING.match(ask.model):
        return None
    for name, instead in (
        ("max_tokens", " Use 'max_completion_tokens' instead."),
        ("logprobs", ""),
        ("stop", ""),
    ):
        if asked.get(name):
            message = f"Unsupported parameter: '{name}' is not supported with this model.{instead}"
            return invalid(message, "unsupported_parameter", name)
    if asked.get("temperature", 1) not in (1, None):
        message = (
            f"Unsupported value: 'temperature' does not support {asked['temperature']} with this"
            " model."
        )
        return invalid(
            f"{message} Only the default (1) value is supported.",
            "unsupported_value",
            "temperature",
        )
    return None


def invalid(message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    return {
        "error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    }


def error(status: int, turn: dict[str, Any]) -> dict[str, Any]:
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {
        "error": {
            "message": "no",
            "type": kind,
            "param": None,
            "code": None,
            **turn.get("error", {}),
        }
    }


def reply(ask: ChatRequest, turn: dict[str, Any], text: str | None, used: Used) -> dict[str, Any]:
    message = {
        "role": "assistant",
        "content": text,
        "refusal": refusal_of(turn) if turn.get("refusal") else None,
    }
    if "reasoning" in turn:
        message["reasoning_content"] = turn["reasoning"]
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": finish_of(turn),
        "logprobs": _logprobs(turn),
    }
    told = turn.get("usage", 0)
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": ask.model,
        "choices": [{**choice, "index": index} for index in range(ask.n)],
        "usage": told if told is None or in_openai_form(told) else usage(used),
    }


def finish_of(turn: dict[str, Any]) -> str:
    finish = turn.get("finish", "stop")
    return str(_FINISH.get(finish, finish))


def usage(used: Used) -> dict[str, Any]:
    told: dict[str, Any] = {
        "prompt_tokens": used.into,
        "completion_tokens": used.out,
        "total_tokens": used.into + used.out,
    }
    if used.cached is not None:
        told["prompt_tokens_details"] = {"cached_tokens": used.cached}
    if used.reasoning is not None:
        told["completion_tokens_details"] = {"reasoning_tokens": used.reasoning}
    return told


def _logprobs(turn: dict[str, Any]) -> dict[str, Any] | None:
    listed = [
        {
            "token": token,
            "logprob": logprob,
            "bytes": None,
            "top_logprobs": [{"token": t, "logprob": p, "bytes": None} for t, p in top],
        }
        for token, logprob, top in turn.get("logprobs", ())
    ]
    return {"content": listed, "refusal": None} if listed else None


def models(names: tuple[str, ...]) -> dict[str, Any]:
    listed = [
        {"id": name, "object": "model", "created": 0, "owned_by": "loopback"} for name in names
    ]
    return {"object": "list", "data": listed}
