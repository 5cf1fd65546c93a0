"""A server with the wire protocols of OpenAI, Anthropic and Google that misbehaves on request.

It prints its port. POST /script sets what happens from then on and forgets what was before. Each
call of a model takes the next of ``turns``, and ``then`` once they are used up. A turn may hold:

    text, reasoning     texts of the reply
    refusal             a text, or true
    finish              reason of the end
    logprobs            [[token, logprob, [[token, logprob], ...]], ...]
    usage               {"in", "out", "cached", "reasoning"}, sent in each vendor's fields; or
                        OpenAI's own form, or null
    reported            {"in", "out", ...}: usage in the reply where it is not what is billed
    status              with error (merged into the vendor's form), headers, and retry_delay ("2s",
                        Google's RetryInfo)
    body, type          sent as they are, with ``status``, 200 by default
    latency_s           seconds before the reply
    held                true: no reply until POST /release, which lets all go, then and later
    cut                 half: half of the reply is sent and the connection closed; reset: nothing is
                        sent; malformed: JSON cut short

A script may also hold:

    latency_s, jitter_s          for every call; the jitter is drawn from 0 to this
    held                         for every call: no reply until POST /release
    answers                      {part of the request: reply}; the first that matches answers, a
                                 list of replies one after the other
    writer                       {"text", "prefix", "answer"}: a model that writes one text
                                 (``chat.written``)
    usage                        "random", or as in a turn; by default words are counted
    prices                       {"in", "out", "cached" (by default as in)}: dollars a million
                                 tokens, as strings
    bill_errors                  reset calls and those that a server or a gateway lost (408, 502,
                                 504, 520, 524) are billed too
    storm                        {"seed", "share", "kinds", "slow_s", "retry_after_s", "most"}:
                                 some calls get no proper reply, the same request at most ``most``
                                 times, not counting 429
    batch_s                      seconds that a batch takes
    batch_errors, batch_expire   shares of its requests that fail and that expire
    chat_template                "llama.cpp": applied as that server does, else 404
    models                       names to list, or {"status": ...} for a list that fails
    seed                         of all that is drawn
    remember                     false: /seen stays empty

GET /seen, /count, /spend and /keys_count return the calls and what they cost; /cpu the seconds of
processor time so far.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
import sys
import time
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import anthropic_batches
import anthropic_wire
import google_wire
import http1
import openai_batches
import openai_wire
import raw_text_wire
from http1 import Reply, Request
from state import State, wrong_with

ID = "([^/]+)"
AT_ONCE = struct.pack("ii", 1, 0)
"""Of SO_LINGER: closing a socket resets its connection."""


def model_call(wire: ModuleType, state: State, request: Request, *_: str) -> Reply:
    try:
        asked = json.loads(request.body)
    except ValueError:
        return Reply(400, json.dumps(wire.invalid("the body is not JSON")).encode())
    state.saw(request, asked)
    return state.call(wire, request.path, asked)


def models(wire: ModuleType, state: State, request: Request) -> Reply:
    state.saw(request, None)
    told = state.script.get("models", wire.MODELS)
    if isinstance(told, dict):
        return Reply(told["status"], json.dumps(wire.error(told["status"], told)).encode())
    return Reply(200, json.dumps(wire.models(tuple(told))).encode())


def vendor(request: Request) -> ModuleType:
    """Whose client asks, by its headers, where the path does not tell."""
    if "anthropic-version" in request.headers:
        return anthropic_wire
    return google_wire if "x-goog-api-key" in request.headers else openai_wire


def shared_models(state: State, request: Request) -> Reply:
    return models(vendor(request), state, request)


def tell(read: Callable[[State], Any], state: State, request: Request) -> Reply:
    return Reply(200, json.dumps(read(state)).encode())


def spent(state: State) -> dict[str, Any]:
    micro = state.spend()
    return {"micro": f"{micro.numerator}/{micro.denominator}", "float": float(micro)}


Handler = Callable[..., Reply]
ROUTES: dict[str, Handler] = {
    "POST /v1/chat/completions": partial(model_call, openai_wire),
    "POST /v1/completions": partial(model_call, raw_text_wire),
    "POST /apply-template": raw_text_wire.apply_template,
    "POST /v1/messages": partial(model_call, anthropic_wire),
    f"POST /v1(?:beta)?/models/{ID}:generateContent": partial(model_call, google_wire),
    "GET /v1/models": shared_models,
    "GET /v1beta/models": partial(models, google_wire),
    "POST /v1/files": openai_batches.upload,
    f"GET /v1/files/{ID}": openai_batches.file,
    f"GET /v1/files/{ID}/content": openai_batches.content,
    "POST /v1/batches": openai_batches.create,
    "GET /v1/batches": openai_batches.listed,
    f"GET /v1/batches/{ID}": openai_batches.retrieve,
    f"POST /v1/batches/{ID}/cancel": openai_batches.cancel,
    "POST /v1/messages/batches": anthropic_batches.create,
    "GET /v1/messages/batches": anthropic_batches.listed,
    f"GET /v1/messages/batches/{ID}": anthropic_batches.retrieve,
    f"GET /v1/messages/batches/{ID}/results": anthropic_batches.results,
    f"POST /v1/messages/batches/{ID}/cancel": anthropic_batches.cancel,
    "GET /seen": partial(tell, lambda state: state.seen),
    "GET /count": partial(tell, lambda state: state.count),
    "GET /spend": partial(tell, spent),
    "GET /keys_count": partial(tell, lambda state: state.asked),
    "GET /cpu": partial(tell, lambda state: time.process_time()),
}
_PATTERNS = [(re.compile(route), handler) for route, handler in ROUTES.items() if ID in route]


def find(request: Request) -> tuple[Handler, tuple[str, ...]] | None:
    asked = f"{request.method} {request.path}"
    if asked in ROUTES:
        return ROUTES[asked], ()
    for pattern, handler in _PATTERNS:
        if match := pattern.fullmatch(asked):
            return handler, match.groups()
    return None


class Server:
    """The state between two scripts, and the way from a request to its reply."""

    def __init__(self) -> None:
        self.state = State({})
        self.held: list[Callable[[], None]] = []

    def answer(self, request: Request) -> Reply:
        if request.path == "/script":
            return self.start(json.loads(request.body))
        if request.path == "/release":
            return self.release()
        if found := find(request):
            handler, parts = found
            return handler(self.state, request, *parts)
        return Reply(
            404,
            json.dumps(
                vendor(request).error(404, {"error": {"message": f"no {request.path}"}})
            ).encode(),
        )

    def start(self, script: dict[str, Any]) -> Reply:
        if why := wrong_with(script):
            return Reply(400, json.dumps(why).encode())
        self.release()
        self.state = State(script)
        return Reply(200, b"{}")

    def release(self) -> Reply:
        self.state.released = True
        held, self.held = self.held, []
        for send in held:
            asyncio.get_running_loop().call_soon(send)
        return Reply(200, b"{}")


class Connection(asyncio.Protocol):
    """One client's connection: a request is answered before the next is read."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.buffer = bytearray()
        self.busy = False
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self.advance()

    def advance(self) -> None:
        while not self.busy and (request := http1.take(self.buffer)) is not None:
            self.busy = True
            try:
                reply = self.server.answer(request)
            # a fault of this server: the client must not wait for ever, and the fault is to be seen
            except BaseException:
                self.transport.abort()
                raise
            last = request.headers.get("connection", "").lower() == "close"
            if reply.held:
                self.server.held.append(partial(self.later, reply, last))
            elif reply.delay > 0:
                asyncio.get_running_loop().call_later(reply.delay, self.later, reply, last)
            else:
                self.send(reply, last)

    def later(self, reply: Reply, last: bool) -> None:
        self.send(reply, last)
        self.advance()

    def send(self, reply: Reply, last: bool) -> None:
        self.busy = False
        if self.transport.is_closing():
            return
        if reply.reset:
            self.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE
            )
            self.transport.abort()
            return
        self.transport.write(http1.encode(reply))
        if last or reply.cut:
            self.transport.close()


async def serve() -> None:
    server, loop = Server(), asyncio.get_running_loop()
    listening = await loop.create_server(lambda: Connection(server), "127.0.0.1", 0, backlog=1024)
    if "--until-stdin-ends" in sys.argv:  # so that it does not outlive a test that was killed
        loop.add_reader(sys.stdin, loop.stop)
    print(listening.sockets[0].getsockname()[1], flush=True)


if __name__ == "__main__":
    LOOP = asyncio.new_event_loop()
    LOOP.run_until_complete(serve())
    LOOP.run_forever()
