"""Raw text as llama.cpp takes it: /v1/completions, and the chat template beside it."""

from __future__ import annotations

import json
from typing import Any

from chat import ChatRequest, Used
from http1 import Reply, Request
from openai_wire import BLOCKS, MODELS, error, finish_of, invalid, reject, usage
from state import State

__all__ = ["BLOCKS", "MODELS", "error", "invalid", "read", "reject", "reply", "usage"]


def read(path: str, asked: dict[str, Any]) -> ChatRequest:
    return ChatRequest(asked.get("model", ""), [asked["prompt"]], False, asked.get("max_tokens"))


def reply(ask: ChatRequest, turn: dict[str, Any], text: str | None, used: Used) -> dict[str, Any]:
    listed = turn.get("logprobs")
    columns = listed and {
        "tokens": [token for token, _, _ in listed],
        "token_logprobs": [logprob for _, logprob, _ in listed],
        "top_logprobs": [dict(top) | {token: logprob} for token, logprob, top in listed],
        "text_offset": [0] * len(listed),
    }
    choice = {
        "index": 0,
        "text": text,
        "logprobs": columns or None,
        "finish_reason": finish_of(turn),
    }
    return {
        "id": "c",
        "object": "text_completion",
        "model": ask.model,
        "choices": [choice],
        "usage": usage(used),
    }


def rendered(messages: list[dict[str, str]]) -> str:
    turns = "".join(f"<|{m['role']}|>{m['content'].strip()}\n" for m in messages)
    return f"{turns}<|assistant|>"


def apply_template(state: State, request: Request) -> Reply:
    """llama.cpp's, which leaves the first token to the tokenizer."""
    asked = json.loads(request.body)
    state.saw(request, asked)
    if state.script.get("chat_template") != "llama.cpp":
        return Reply(404, json.dumps({"detail": "Not Found"}).encode())
    return Reply(200, json.dumps({"prompt": rendered(asked["messages"])}).encode())
