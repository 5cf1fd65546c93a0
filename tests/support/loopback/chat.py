"""What is the same for every vendor: what a request asks, and the tokens that its reply took."""

from __future__ import annotations

import re
from random import Random
from typing import Any, NamedTuple

MOST = 4096
"""Tokens of a reply where the request sets no limit."""
SILENT = ("safety", "content_filter")
"""Values of ``finish`` that leave no text unless the turn gives one."""


class ChatRequest(NamedTuple):
    model: str
    texts: list[str]
    """The system text, if any, and then each message."""
    prefill: bool
    """The last message is the start of the model's own reply."""
    most: int | None
    """Tokens that the reply may have."""
    n: int = 1
    """Choices that the reply has."""


class Used(NamedTuple):
    """Tokens; ``cached`` is part of ``into``, ``reasoning`` part of ``out``. None: not told."""

    into: int
    out: int
    cached: int | None = None
    reasoning: int | None = None


def text_of(content: Any) -> str:
    """The text of a message's content, given as a string or as a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in content or () if isinstance(part, dict))


def text_for(ask: ChatRequest, turn: dict[str, Any], answers: dict[str, Any]) -> str | None:
    if "text" in turn:
        return turn["text"]
    if turn.get("refusal") or turn.get("finish") in SILENT:
        return None
    if answers:
        asked = "\n".join(ask.texts)
        for key, text in answers.items():
            if key in asked and isinstance(text, list):
                text.append(text.pop(0))
                return str(text[-1])
            if key in asked:
                return str(text)
    if ask.prefill:
        return " 7."
    question = ask.texts[-1].strip() if ask.texts else ""
    # it fills the place of an answer, so that it has answered
    return question.splitlines()[-1].replace("<answer>", "echo") if question else ""


def written(ask: ChatRequest, writer: dict[str, str]) -> str:
    """What a model that always writes ``text`` says where a token is a word with the blanks before
    it.

    ``prefix`` says what becomes of the start of its own turn: "continue", "echo" (given back before
    its continuation), "trim" (continued, without the blanks around the reply) or "new" (a new
    turn). It continues another beginning with ``answer``.
    """
    text, given = writer["text"], ask.texts[-1] if ask.prefill and writer["prefix"] != "new" else ""
    rest = text[len(given) :] if text.startswith(given) else writer["answer"]
    said = "".join(re.findall(r"\s*\S+", rest)[: ask.most])
    return (
        given + said
        if writer["prefix"] == "echo"
        else said.strip()
        if writer["prefix"] == "trim"
        else said
    )


def refusal_of(turn: dict[str, Any]) -> str:
    return turn["refusal"] if isinstance(turn["refusal"], str) else "I cannot help with that."


def used_for(told: Any, ask: ChatRequest, text: str | None, draw: Random | None) -> Used:
    """The tokens as told by the script, drawn, or else counted in words."""
    if isinstance(told, dict):
        return _told(told)
    if told == "random" and draw is not None:
        return _drawn(ask, draw)
    return Used(sum(len(said.split()) for said in ask.texts), len(text_of(text).split()))


def in_openai_form(told: Any) -> bool:
    return isinstance(told, dict) and not ("in" in told or "out" in told)


def _told(told: dict[str, Any]) -> Used:
    if in_openai_form(told):
        prompt = told.get("prompt_tokens_details") or {}
        reply = told.get("completion_tokens_details") or {}
        told = {
            "in": told.get("prompt_tokens"),
            "out": told.get("completion_tokens"),
            "cached": prompt.get("cached_tokens"),
            "reasoning": reply.get("reasoning_tokens"),
        }
    into, out, cached, reasoning = (
        _count(told.get(name)) for name in ("in", "out", "cached", "reasoning")
    )
    return Used(into or 0, out or 0, cached, reasoning)


def _count(told: Any) -> int | None:
    return told if type(told) is int and told >= 0 else None


def _drawn(ask: ChatRequest, draw: Random) -> Used:
    """No more than a vendor could count: a token is at least one byte."""
    most_in = sum(len(said.encode("utf-8", "replace")) for said in ask.texts)
    most_out = MOST if ask.most is None else ask.most
    into, out = draw.randint(min(1, most_in), most_in), draw.randint(min(1, most_out), most_out)
    return Used(into, out, draw.randint(0, into), draw.randint(0, out))
