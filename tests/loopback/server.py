"""A small server that speaks OpenAI's chat-completions protocol and misbehaves on request; prints its port.

POST /script takes ``{"turns": [TURN, …], "then": TURN}``: each call takes the next turn, and ``then`` once they are used up.
A turn may have: ``latency_s``; ``text`` (default: the last line of what was asked); ``status`` with ``headers`` and ``error``;
``body`` (sent as it is, with ``type`` as its content type); ``cut`` (the connection is closed in the middle of the reply);
``finish``, ``refusal``, ``reasoning``, ``logprobs`` (a list of [token, logprob, [[alternative, logprob], …]]), ``usage``.
"""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOCK = threading.Lock()
STATE: dict[str, Any] = {"turns": [], "then": {}, "seen": []}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        return None

    def do_GET(self) -> None:
        with LOCK:
            told = STATE["seen"] if self.path == "/seen" else len(STATE["seen"])
        self.reply(200, json.dumps(told).encode())

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/script":
            with LOCK:
                STATE.update(asked, seen=[])
            return self.reply(200, b"{}")
        with LOCK:
            headers = {name.lower(): value for name, value in self.headers.items()}
            STATE["seen"].append({"headers": headers, "body": asked, "at": time.monotonic()})
            turn = STATE["turns"].pop(0) if STATE["turns"] else STATE["then"]
        time.sleep(turn.get("latency_s", 0))
        if turn.get("cut"):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"choices"')
            self.wfile.flush()
            self.close_connection = True
        elif "body" in turn:
            self.reply(200, turn["body"].encode(), turn.get("type", "application/json"))
        elif "status" in turn:
            error = {"error": {"message": "no", "type": "x", "code": None, **turn.get("error", {})}}
            self.reply(turn["status"], json.dumps(error).encode(), headers=turn.get("headers", {}))
        else:
            self.reply(200, json.dumps(completion(asked, turn)).encode())
        return None

    def reply(self, status: int, body: bytes, kind: str = "application/json", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def completion(asked: dict[str, Any], turn: dict[str, Any]) -> dict[str, Any]:
    question = asked["messages"][-1]["content"]
    text = turn.get("text", question.strip().splitlines()[-1] if question.strip() else "")
    message = {"role": "assistant", "content": text, "refusal": turn.get("refusal")}
    if "reasoning" in turn:
        message["reasoning_content"] = turn["reasoning"]
    listed = [
        {"token": token, "logprob": logprob, "bytes": None,
         "top_logprobs": [{"token": t, "logprob": p, "bytes": None} for t, p in top]}
        for token, logprob, top in turn.get("logprobs", [])
    ]  # fmt: skip
    words = sum(len(m["content"].split()) for m in asked["messages"])
    out = len((text or "").split())
    choice = {"index": 0, "message": message, "finish_reason": turn.get("finish", "stop"),
              "logprobs": {"content": listed} if listed else None}  # fmt: skip
    return {
        "id": "c", "object": "chat.completion", "created": 0, "model": asked["model"], "choices": [choice],
        "usage": turn.get("usage", {"prompt_tokens": words, "completion_tokens": out, "total_tokens": words + out}),
    }  # fmt: skip


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
