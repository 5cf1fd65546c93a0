"""Raw text as vLLM and llama.cpp take it: /v1/completions, and the chat template beside it."""

from __future__ import annotations

import json
import re
from typing import Any

from chat import ChatRequest, Used
from http1 import Reply, Request
from openai_wire import BLOCKS, MODELS, error, finish_of, invalid, reject, usage
from state import State

__all__ = ["BLOCKS", "MODELS", "error", "invalid", "read", "reject", "reply", "usage"]
MARKERS = ("<s>", "<|system|>", "<|user|>", "<|assistant|>")
"""Texts that are one token each, with the ids 0 to 3; any other token is a character."""
_PIECE = re.compile("|".join(map(re.escape, MARKERS)) + "|.", re.DOTALL)


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
    return _template_reply(
        state, request, "llama.cpp", lambda asked: {"prompt": rendered(asked["messages"])}
    )


def tokenize(state: State, request: Request) -> Reply:
    """vLLM's."""
    return _template_reply(state, request, "vllm", lambda asked: {"tokens": _ids(asked)})


def detokenize(state: State, request: Request) -> Reply:
    return _template_reply(
        state,
        request,
        "vllm",
        lambda asked: {
            "prompt": "".join(MARKERS[i] if i < len(MARKERS) else chr(i) for i in asked["tokens"])
        },
    )


def _ids(asked: dict[str, Any]) -> list[int]:
    if "messages" in asked:
        text = f"<s>{rendered(asked['messages'])}"
    else:
        text = "<s>" * asked.get("add_special_tokens", True) + asked["prompt"]
    pieces = _PIECE.findall(text)
    return [MARKERS.index(piece) if piece in MARKERS else ord(piece) for piece in pieces]


def _template_reply(state: State, request: Request, server: str, answer: Any) -> Reply:
    asked = json.loads(request.body)
    state.saw(request, asked)
    if state.script.get("chat_template") != server:
        return Reply(404, json.dumps({"detail": "Not Found"}).encode())
    return Reply(200, json.dumps(answer(asked)).encode())
