"""A server before another one that treats requests as servers of open models do: it opens a new
turn, echoes, leaves out log-probabilities, cuts prompts, rejects fields."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEPT_WORDS = 30
"""Words of a prompt that a server with a small context reads."""
REJECTED = {"detail": [{"loc": ["body"], "msg": "no continue_final_message\x1b[2J\x07 here"}]}


@dataclass
class Misbehaving:
    """The server's address and what it was sent."""

    base_url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    """Each chat request as it came."""
    raw_bodies: list[dict[str, Any]] = field(default_factory=list)
    """Each request for a continuation of raw text."""


@contextmanager
def misbehaving(upstream: str, *faults: str) -> Iterator[Misbehaving]:
    """Serve what ``upstream`` (its address without /v1) serves, with faults by name."""
    seen = Misbehaving()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def answer(self, status: int, body: Any) -> None:
            told = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def do_GET(self) -> None:
            self.answer(404, {"error": {"message": "no such page"}})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if not self.path.endswith("/chat/completions"):  # raw text, and what makes it
                seen.raw_bodies += [body] if self.path == "/v1/completions" else []
                status, reply = _post(f"{upstream}{self.path}", body)
                self.answer(status, reply)
                return
            seen.bodies.append(body)
            if "422" in faults and body["messages"][-1]["role"] == "assistant":
                self.answer(422, REJECTED)
                return
            asked = _changed_request(body, faults)
            status, reply = _post(f"{upstream}{self.path}", asked)
            self.answer(status, _changed_reply(reply, body, faults))

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    seen.base_url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _post(address: str, body: Mapping[str, Any]) -> tuple[int, Any]:
    request = urllib.request.Request(
        address, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def _changed_request(body: dict[str, Any], faults: tuple[str, ...]) -> dict[str, Any]:
    messages = [dict(message) for message in body["messages"]]
    if "new turn" in faults and messages[-1]["role"] == "assistant":
        messages.pop()
    if "cuts prompts" in faults:
        for message in messages:
            if message["role"] == "user":
                words = message["content"].split(" ")
                message["content"] = " ".join(words[-KEPT_WORDS:])
    names = ("logprobs", "top_logprobs") if "no logprobs" in faults else ()
    return {k: v for k, v in body.items() if k not in names} | {"messages": messages}


def _changed_reply(reply: Any, body: dict[str, Any], faults: tuple[str, ...]) -> Any:
    for choice in reply.get("choices", ()):
        message = choice["message"]
        last = body["messages"][-1]
        if "echo" in faults and last["role"] == "assistant":
            message["content"] = last["content"] + message["content"]
        if "no logprobs" in faults:
            choice["logprobs"] = None
    return reply
