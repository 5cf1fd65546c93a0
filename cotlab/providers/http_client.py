"""The HTTP client of all vendors: no redirects, and replies in UTF-8 whose size is bounded."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing

import httpx2

MAX_BODY_BYTES = 64 * 2**20
"""Bytes, unpacked, of a reply, or of a line of a file of replies; a longer one fails its call."""
MAX_ERROR_BYTES = 2**20
"""Bytes, unpacked, that are read of the body of an error; the rest is left."""
_LONG_BODY_BYTES = 4 * 2**20
"""Length from which replies are read one at a time: not all that are in flight may be long."""
_LINES_TYPE = "application/binary"
"""What the vendors' clients accept where they ask for a file, which is read line by line."""


def open_http_client(
    client_class: Callable[..., httpx2.AsyncClient],
    *response_hooks: Callable[[httpx2.Response], Awaitable[None]],
) -> httpx2.AsyncClient:
    """Open a client for one provider, of the class that a vendor's package builds on aiohttp."""
    long_body_turn = asyncio.Lock()

    async def bound_body(reply: httpx2.Response) -> None:
        # what charset the header names does not matter: JSON is UTF-8
        reply.encoding = "utf-8"
        if not (reply.is_success and reply.request.headers.get("accept") == _LINES_TYPE):
            reply.stream = _BoundedBody(reply, long_body_turn)
            reply.headers.pop("content-encoding", None)

    return client_class(
        # more connections than the runner has in flight, closed before vendors close theirs
        limits=httpx2.Limits(
            max_connections=2_000, max_keepalive_connections=2_000, keepalive_expiry=15
        ),
        timeout=None,
        follow_redirects=False,
        event_hooks={"response": [bound_body, *response_hooks]},
    )


class _BoundedBody(httpx2.AsyncByteStream):
    """The unpacked body of a reply, up to its limit."""

    def __init__(self, reply: httpx2.Response, long_body_turn: asyncio.Lock) -> None:
        self._packed = httpx2.Response(
            reply.status_code, headers=reply.headers, stream=reply.stream
        )
        self._long_body_turn = long_body_turn

    async def __aiter__(self) -> AsyncIterator[bytes]:
        is_error = not self._packed.is_success
        utf8 = codecs.getincrementaldecoder("utf-8")()
        n_bytes = 0
        async with AsyncExitStack() as stack, aclosing(self._packed.aiter_bytes()) as pieces:
            async for piece in pieces:
                if n_bytes <= _LONG_BODY_BYTES < n_bytes + len(piece):
                    await stack.enter_async_context(self._long_body_turn)
                n_bytes += len(piece)
                if is_error and n_bytes > MAX_ERROR_BYTES:
                    return
                if n_bytes > MAX_BODY_BYTES:
                    raise ValueError(f"it is longer than {MAX_BODY_BYTES:,} bytes")
                if not is_error:
                    utf8.decode(piece)  # raises: a client that decodes would put a mark in place
                yield piece

    async def aclose(self) -> None:
        await self._packed.aclose()
