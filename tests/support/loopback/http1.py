"""HTTP/1.1 by hand: requests taken from a buffer of bytes, replies made into bytes."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qsl

REASONS = {status.value: status.phrase for status in HTTPStatus} | {529: "Overloaded"}
END = b"\r\n\r\n"


class Request(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


class Reply(NamedTuple):
    status: int
    body: bytes
    kind: str = "application/json"
    headers: dict[str, str] = {}
    delay: float = 0.0
    cut: bool = False
    """Half of the body is sent, then the connection is closed."""
    reset: bool = False
    """Nothing is sent, the connection is reset."""
    held: bool = False
    """Nothing is sent until the server is told to."""


def take(buffer: bytearray) -> Request | None:
    """The first whole request in the buffer, removed from it; None while some of it is still on its
    way."""
    at = buffer.find(END)
    if at < 0:
        return None
    lines = buffer[:at].decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    found = _body(buffer, at + len(END), headers)
    if found is None:
        return None
    body, end = found
    del buffer[:end]
    path, _, query = target.partition("?")
    return Request(method, path, dict(parse_qsl(query)) if query else {}, headers, body)


def _body(buffer: bytearray, start: int, headers: dict[str, str]) -> tuple[bytes, int] | None:
    if "chunked" in headers.get("transfer-encoding", ""):
        return _chunks(buffer, start)
    end = start + int(headers.get("content-length", 0))
    return (bytes(buffer[start:end]), end) if len(buffer) >= end else None


def _chunks(buffer: bytearray, at: int) -> tuple[bytes, int] | None:
    """The body put together from its chunks and where it ends. Trailers are not read."""
    parts = []
    while (line := buffer.find(b"\r\n", at)) >= 0:
        size = int(buffer[at:line].split(b";")[0], 16)
        start, at = line + 2, line + 2 + size + 2
        if len(buffer) < at:
            return None
        if size == 0:
            return b"".join(parts), at
        parts.append(bytes(buffer[start : start + size]))
    return None


def encode(reply: Reply) -> bytes:
    more = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
    head = (
        f"HTTP/1.1 {reply.status} {REASONS.get(reply.status, '')}\r\nContent-Type: {reply.kind}\r\n"
        f"Content-Length: {len(reply.body)}\r\n{more}\r\n"
    ).encode("latin-1")
    return head + (reply.body[: len(reply.body) // 2] if reply.cut else reply.body)


def form(request: Request) -> dict[str, tuple[str | None, bytes]]:
    """The fields of a multipart form: name to (file name, content)."""
    boundary = re.search(r'boundary="?([^";]+)', request.headers.get("content-type", ""))
    fields = {}
    for part in request.body.split(b"--" + boundary[1].encode())[1:-1] if boundary else ():
        head, _, content = part.partition(END)
        told = dict(re.findall(r'\b(name|filename)="([^"]*)"', head.decode("utf-8", "replace")))
        fields[told.get("name", "")] = (told.get("filename"), content.removesuffix(b"\r\n"))
    return fields
