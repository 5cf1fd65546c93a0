"""The wire form of Google's Gemini API."""

from __future__ import annotations

from typing import Any

from chat import ChatRequest, Used, text_of

BLOCKS = True
"""A refused prompt gets no candidate, so no tokens of a reply are counted."""
MODELS = ("gemini-2.5-flash", "gemini-2.5-pro")
_FINISH = {"length": "MAX_TOKENS", "content_filter": "SAFETY", "end_turn": "STOP"}
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    504: "DEADLINE_EXCEEDED",
}


def read(path: str, asked: dict[str, Any]) -> ChatRequest:
    """The model's name is in the path, as in ``/v1beta/models/NAME:generateContent``."""
    contents = asked.get("contents") or []
    texts = [text_of(c.get("parts")) for c in contents]
    if system := asked.get("systemInstruction"):
        texts.insert(0, text_of(system.get("parts")))
    prefill = bool(contents) and contents[-1].get("role") == "model"
    most = (asked.get("generationConfig") or {}).get("maxOutputTokens")
    return ChatRequest(path.rpartition("/")[2].partition(":")[0], texts, prefill, most)


def reject(asked: dict[str, Any], ask: ChatRequest) -> dict[str, Any] | None:
    return None if asked.get("contents") else invalid("contents is not specified")


def invalid(message: str) -> dict[str, Any]:
    return error(400, {"error": {"message": message}})


def error(status: int, turn: dict[str, Any]) -> dict[str, Any]:
    told = {
        "code": status,
        "message": "no",
        "status": _STATUS.get(status, "UNAVAILABLE"),
        **turn.get("error", {}),
    }
    if "retry_delay" in turn:
        retry = {
            "@type": "type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay": turn["retry_delay"],
        }
        told["details"] = [*told.get("details", ()), retry]
    return {"error": told}


def reply(ask: ChatRequest, turn: dict[str, Any], text: str | None, used: Used) -> dict[str, Any]:
    told: dict[str, Any] = {"modelVersion": ask.model, "responseId": "r"}
    if turn.get("refusal") and turn.get("finish") != "safety":
        told["promptFeedback"] = {"blockReason": "PROHIBITED_CONTENT"}
    else:
        told["candidates"] = [_candidate(turn, text)]
    if turn.get("usage", 0) is not None:
        told["usageMetadata"] = usage(used)
    return told


def _candidate(turn: dict[str, Any], text: str | None) -> dict[str, Any]:
    parts: list[dict[str, Any]] = (
        [{"text": turn["reasoning"], "thought": True}] if "reasoning" in turn else []
    )
    if text is not None:
        parts.append({"text": text})
    finish = turn.get("finish", "stop")
    told: dict[str, Any] = {"index": 0, "finishReason": _FINISH.get(finish, finish.upper())}
    if parts:
        told["content"] = {"role": "model", "parts": parts}
    if turn.get("logprobs"):
        told |= _logprobs(turn["logprobs"])
    return told


def _logprobs(listed: list[Any]) -> dict[str, Any]:
    chosen = [
        {"token": token, "tokenId": 0, "logProbability": logprob} for token, logprob, _ in listed
    ]
    top = [
        {"candidates": [{"token": t, "tokenId": 0, "logProbability": p} for t, p in others]}
        for *_, others in listed
    ]
    mean = sum(logprob for _, logprob, _ in listed) / len(listed)
    return {
        "avgLogprobs": mean,
        "logprobsResult": {"chosenCandidates": chosen, "topCandidates": top},
    }


def usage(used: Used) -> dict[str, Any]:
    """``candidatesTokenCount`` leaves out the thoughts."""
    told = {
        "promptTokenCount": used.into,
        "candidatesTokenCount": used.out - (used.reasoning or 0),
        "totalTokenCount": used.into + used.out,
    }
    if used.cached is not None:
        told["cachedContentTokenCount"] = used.cached
    if used.reasoning is not None:
        told["thoughtsTokenCount"] = used.reasoning
    return told


def models(names: tuple[str, ...]) -> dict[str, Any]:
    listed = [
        {
            "name": f"models/{name}",
            "version": "001",
            "displayName": name,
            "inputTokenLimit": 1048576,
            "outputTokenLimit": 65536,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }
        for name in names
    ]
    return {"models": listed}
