"""The wire form of Anthropic's messages and the requests that it turns away."""

from __future__ import annotations

import re
from typing import Any

from chat import ChatRequest, Used, refusal_of, text_of

BLOCKS = False
MODELS = ("claude-haiku-4-5", "claude-opus-4-7")
_NO_PREFILL = re.compile(r"claude-((opus|sonnet)-4-[6-9](?!\d)|[a-z]+-5)")
_NO_TEMPERATURE = re.compile(r"claude-([a-z]+-4-[7-9](?!\d)|[a-z]+-5)")
_FINISH = {
    "safety": "refusal",
    "content_filter": "refusal",
    "length": "max_tokens",
    "stop": "end_turn",
}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def read(path: str, asked: dict[str, Any]) -> ChatRequest:
    messages = asked.get("messages") or []
    texts = [text_of(m.get("content")) for m in messages]
    if asked.get("system"):
        texts.insert(0, text_of(asked["system"]))
    prefill = bool(messages) and messages[-1].get("role") == "assistant"
    return ChatRequest(asked.get("model", ""), texts, prefill, asked.get("max_tokens"))


def reject(asked: dict[str, Any], ask: ChatRequest) -> dict[str, Any] | None:
    why = None
    if not isinstance(asked.get("max_tokens"), int):
        why = "max_tokens: Field required"
    elif any(not stop.strip() for stop in asked.get("stop_sequences") or ()):
        why = "stop_sequences: each stop sequence must contain non-whitespace"
    elif ask.prefill and _NO_PREFILL.match(ask.model):
        why = (
            "This model does not support assistant message prefill. The conversation must end with"
            " a user message."
        )
    elif ask.prefill and ask.texts[-1] != ask.texts[-1].rstrip():
        why = "messages: final assistant content cannot end with trailing whitespace"
    elif "temperature" in asked and _NO_TEMPERATURE.match(ask.model):
        why = "`temperature` is deprecated for this model."
    return invalid(why) if why else None


def invalid(message: str) -> dict[str, Any]:
    return error(400, {"error": {"message": message}})


def error(status: int, turn: dict[str, Any]) -> dict[str, Any]:
    kind = _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {
        "type": "error",
        "error": {"type": kind, "message": "no", **turn.get("error", {})},
        "request_id": "req_0",
    }


def reply(ask: ChatRequest, turn: dict[str, Any], text: str | None, used: Used) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    if "reasoning" in turn:
        blocks.append({"type": "thinking", "thinking": turn["reasoning"], "signature": "c2lnbmVk"})
    if text is not None:
        blocks.append({"type": "text", "text": text, "citations": None})
    refused = bool(turn.get("refusal"))
    finish = "refusal" if refused else turn.get("finish", "end_turn")
    details = (
        {"type": "refusal", "category": None, "explanation": refusal_of(turn)} if refused else None
    )
    return {
        "id": "msg_0",
        "type": "message",
        "role": "assistant",
        "model": ask.model,
        "content": blocks,
        "stop_reason": _FINISH.get(finish, finish),
        "stop_sequence": None,
        "stop_details": details,
        "usage": None if turn.get("usage", 0) is None else usage(used),
    }


def usage(used: Used) -> dict[str, Any]:
    """``input_tokens`` leaves out what came from the cache."""
    cached = used.cached or 0
    told: dict[str, Any] = {
        "input_tokens": used.into - cached,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": used.out,
        "service_tier": "standard",
    }
    if used.reasoning is not None:
        told["output_tokens_details"] = {"thinking_tokens": used.reasoning}
    return told


def models(names: tuple[str, ...]) -> dict[str, Any]:
    listed = [
        {
            "type": "model",
            "id": name,
            "display_name": name,
            "created_at": "2026-01-01T00:00:00Z",
            "lifecycle": "active",
        }
        for name in names
    ]
    ends = (
        {"first_id": names[0], "last_id": names[-1]}
        if names
        else {"first_id": None, "last_id": None}
    )
    return {"data": listed, "has_more": False, **ends}
