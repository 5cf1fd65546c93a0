"""What one script has set and what has been asked since: turns, storm, usage, the bill."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from hashlib import blake2b
from random import Random
from types import ModuleType
from typing import Any

import chat
from chat import ChatRequest, Used
from http1 import Reply, Request

SCRIPT = {
    "turns",
    "then",
    "storm",
    "latency_s",
    "held",
    "jitter_s",
    "answers",
    "prices",
    "usage",
    "seed",
    "bill_errors",
    "batch_s",
    "batch_errors",
    "batch_expire",
    "remember",
    "models",
    "chat_template",
    "writer",
}
TURN = {
    "latency_s",
    "held",
    "text",
    "status",
    "headers",
    "error",
    "retry_delay",
    "body",
    "type",
    "cut",
    "reset",
    "malformed",
    "finish",
    "refusal",
    "reasoning",
    "logprobs",
    "usage",
    "reported",
}
STORM = {"seed", "share", "kinds", "slow_s", "retry_after_s", "most"}
LOST_STATUSES = (408, 502, 504, 520, 524)
"""Of a call that may have been processed: a time-out, and a gateway that lost the reply."""
HTTP_KINDS = (
    *("429", "400", "409", "413", "422", "500", "501", "503", "529"),
    *map(str, LOST_STATUSES),
)
KINDS = (*HTTP_KINDS, "cut", "reset", "malformed", "shape", "slow")
_FAILURES = {"status", "headers", "error", "body", "type", "cut", "reset", "malformed"}


class State:
    def __init__(self, script: dict[str, Any]) -> None:
        self.script = script
        self.turns = list(reversed(script.get("turns") or ()))
        self.then = script.get("then") or {}
        self.storm = script.get("storm") or {}
        self.answers = script.get("answers") or {}
        self.remember = script.get("remember", True)
        self.seed = script.get("seed", self.storm.get("seed", 0))
        told = (
            script.get("usage"),
            self.then.get("usage"),
            *(turn.get("usage") for turn in self.turns),
        )
        self.draws = bool(script.get("jitter_s")) or "random" in told
        self.seen: list[dict[str, Any]] = []
        self.count = 0
        self.released = False
        self.asked: Counter[str] = Counter()
        self.hits: Counter[str] = Counter()
        self.tokens = {False: [0, 0, 0], True: [0, 0, 0]}
        """Billed: in and not cached, cached, out; at the full price and at half of it."""
        self.files: dict[str, Any] = {}
        self.batches: dict[str, Any] = {}

    def saw(self, request: Request, body: Any) -> None:
        if self.remember:
            self.seen.append(
                {
                    "method": request.method,
                    "path": request.path,
                    "headers": request.headers,
                    "body": body,
                    "at": time.time(),
                    "monotonic": time.monotonic(),
                }
            )

    def note(self, path: str, asked: Any) -> tuple[int, str]:
        """Counts a call; returns its number and the digest of what it asks."""
        said = json.dumps(asked, sort_keys=True, separators=(",", ":"))
        key = blake2b(f"{path} {said}".encode(), digest_size=12).hexdigest()
        self.asked[key] += 1
        self.count += 1
        return self.count - 1, key

    def call(self, wire: ModuleType, path: str, asked: dict[str, Any]) -> Reply:
        """Return the reply to one call; a call that the vendor would reject takes no turn."""
        number, key = self.note(path, asked)
        ask = wire.read(path, asked)
        if wrong := wire.reject(asked, ask):
            return Reply(400, json.dumps(wrong).encode())
        draw = Random(f"{self.seed}/{number}") if self.draws else None
        turn = self._turn(number, key)
        status, told = self._answer(wire, ask, turn, draw)
        body = turn["body"].encode() if "body" in turn else json.dumps(told).encode()
        if turn.get("malformed"):
            body = body[:-2]
        delay = turn.get("latency_s", self.script.get("latency_s", 0)) + turn.get("slow_s", 0)
        if draw and (jitter := self.script.get("jitter_s")):
            delay += draw.random() * jitter
        return Reply(
            status,
            body,
            turn.get("type", "application/json"),
            turn.get("headers") or {},
            delay,
            bool(turn.get("cut")),
            bool(turn.get("reset")),
            bool(turn.get("held", self.script.get("held"))) and not self.released,
        )

    def one_of_a_batch(
        self, wire: ModuleType, path: str, asked: dict[str, Any], number: int
    ) -> tuple[int, dict[str, Any]]:
        """Status and body for a request of a batch, at half the price. No storm."""
        ask = wire.read(path, asked)
        if wrong := wire.reject(asked, ask):
            return 400, wrong
        draw = Random(f"{self.seed}/{number}") if self.draws else None
        return self._answer(wire, ask, self._next(), draw, half=True)

    def _next(self) -> dict[str, Any]:
        return self.turns.pop() if self.turns else self.then

    def _turn(self, number: int, key: str) -> dict[str, Any]:
        """The next turn, or what the storm makes of it."""
        turn = self._next()
        if not self.storm:
            return turn
        draw = Random(f"{self.storm.get('seed', 0)}/{number}/storm")
        if draw.random() >= self.storm.get("share", 0.3):
            return turn
        kind = draw.choice(self.storm.get("kinds") or KINDS)
        if kind != "429":
            if self.hits[key] >= self.storm.get("most", sys.maxsize):
                return turn
            self.hits[key] += 1
        return _hit(turn, kind, self.storm)

    def _answer(
        self,
        wire: ModuleType,
        ask: ChatRequest,
        turn: dict[str, Any],
        draw: Random | None,
        half: bool = False,
    ) -> tuple[int, dict[str, Any]]:
        writer = self.script.get("writer")
        text = (
            chat.written(ask, writer)
            if writer and "text" not in turn
            else chat.text_for(ask, turn, self.answers)
        )
        used = chat.used_for(turn.get("usage", self.script.get("usage")), ask, text, draw)
        if wire.BLOCKS and turn.get("refusal") and turn.get("finish") != "safety":
            used = used._replace(out=0, reasoning=None)
        status = turn.get("status", 200)
        if self._is_billed(status, turn):
            self._bill(used, half)
        if "reported" in turn:
            used = chat.used_for(turn["reported"], ask, text, draw)
        return status, (
            wire.error(status, turn) if "status" in turn else wire.reply(ask, turn, text, used)
        )

    def _is_billed(self, status: int, turn: dict[str, Any]) -> bool:
        if status in LOST_STATUSES or (status < 400 and turn.get("reset")):
            return bool(self.script.get("bill_errors"))
        return status < 400

    def _bill(self, used: Used, half: bool) -> None:
        cached = used.cached or 0
        tokens = self.tokens[half]
        tokens[0] += used.into - cached
        tokens[1] += cached
        tokens[2] += used.out

    def spend(self) -> Fraction:
        """Micro-dollars, exact: a price in dollars a million tokens is one in micro-dollars a
        token."""
        prices = self.script.get("prices")
        if not prices:
            return Fraction(0)
        each = [
            Fraction(prices[name])
            for name in ("in", "cached" if "cached" in prices else "in", "out")
        ]
        full, half = (
            sum(map(Fraction.__mul__, each, map(Fraction, self.tokens[cheap])))
            for cheap in (False, True)
        )
        return full + half / 2


def _hit(turn: dict[str, Any], kind: str, storm: dict[str, Any]) -> dict[str, Any]:
    turn = {name: value for name, value in turn.items() if name not in _FAILURES}
    if kind == "429":
        after = storm.get("retry_after_s", 0.2)
        return turn | {
            "status": 429,
            "headers": {"Retry-After": str(after)},
            "retry_delay": f"{after}s",
        }
    if kind in HTTP_KINDS:
        return turn | {"status": int(kind)}
    if kind == "shape":
        return turn | {"body": "{}"}
    if kind == "slow":
        return turn | {"slow_s": storm.get("slow_s", 3)}
    return turn | {kind: True}


def wrong_with(script: Mapping[str, Any]) -> str:
    """What a script says that nothing would read; empty where all is known."""
    turns = [*(script.get("turns") or ()), script.get("then") or {}]
    storm = script.get("storm") or {}
    unknown = (
        {*script} - SCRIPT | {name for turn in turns for name in turn} - TURN | {*storm} - STORM
    )
    unknown |= {*storm.get("kinds", ())} - {*KINDS}
    return f"unknown: {', '.join(sorted(unknown))}" if unknown else ""
