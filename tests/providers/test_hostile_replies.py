"""What a hostile server sends ends its call, costs little memory and gets no key."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import repeat
from typing import Any

import pytest

from cotlab.core.errors import BadReply, ProviderError, Unavailable
from cotlab.core.provider import SupportsBatches
from cotlab.providers import wire
from cotlab.providers.anthropic import map_anthropic_error
from cotlab.providers.google import map_google_error
from cotlab.providers.keys import KEY_VARIABLES
from cotlab.providers.openai_compat import map_openai_error
from tests.support.loopback import Loopback, raw_server, serving
from tests.support.vendors import MODELS, SECRET, ask, opened_at

SENT_BYTES = 128 * 2**20
"""Of what is called endless: without a limit it is read whole."""
MAX_GROWTH_BYTES = 200 * 10**6
PIECE = b" " * 2**20
BODY = {
    "choices": [{"message": {"content": "é"}, "finish_reason": "stop"}],
    "content": [{"type": "text", "text": "é"}],
    "stop_reason": "end_turn",
    "candidates": [{"content": {"parts": [{"text": "é"}]}, "finishReason": "STOP"}],
}


def endless() -> Iterator[bytes]:
    return repeat(PIECE, SENT_BYTES // len(PIECE))


def packed() -> Iterator[bytes]:
    """As much, in gzip: about a thousandth of it."""
    packer = zlib.compressobj(wbits=31)
    yield from filter(None, map(packer.compress, endless()))
    yield packer.flush()


@asynccontextmanager
async def sending(head: str, *, batch: str | None = None) -> AsyncIterator[str]:
    """A server that sends a head and an endless body; ``batch`` is its reply to polls of one."""
    pieces = list(packed()) if "gzip" in head else None

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = await reader.readuntil(b"\r\n\r\n")
            if batch is not None and b"/batches/b1 " in asked:
                writer.write(f"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{batch}".encode())
            else:
                writer.write(f"HTTP/1.1 {head}\r\nConnection: close\r\n\r\n".encode())
                for piece in pieces or endless():
                    writer.write(piece)
                    await writer.drain()
        except OSError:
            pass  # the client had enough
        finally:
            writer.close()

    async with raw_server(answer) as root:
        yield root


async def growth_of(call: Any, kind: type[ProviderError]) -> int:
    """The most that a call allocates that fails as ``kind``."""
    tracemalloc.start()
    try:
        with pytest.raises(ProviderError) as caught:
            await call
        assert type(caught.value) is kind and len(str(caught.value)) < 400
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("provider", list(MODELS))
@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("200 OK", BadReply),
        ("200 OK\r\nContent-Encoding: gzip", BadReply),
        ("500 Oh\r\nContent-Type: application/json", Unavailable),
    ],
)
async def test_a_body_without_an_end_is_not_read_to_its_end(
    provider: str, head: str, kind: type[ProviderError]
) -> None:
    async with sending(head) as root:
        model = opened_at(provider, root)
        call = model.models() if "gzip" in head else model.send(ask(model))
        assert await growth_of(call, kind) < MAX_GROWTH_BYTES
        await model.close()


async def test_long_replies_in_flight_are_read_one_at_a_time() -> None:
    async with sending("200 OK") as root:
        model = opened_at("openai_compat", root)
        calls = [model.send(ask(model, sample)) for sample in range(4)]
        tracemalloc.start()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        growth = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        await model.close()
    assert {type(outcome) for outcome in outcomes} == {BadReply} and growth < MAX_GROWTH_BYTES


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_file_of_replies_is_read_by_lines_that_end(provider: str) -> None:
    batch = json.dumps(
        {"id": "b1", "status": "completed", "output_file_id": "f1", "results_url": "/r"}
    )
    async with sending("200 OK", batch=batch) as root:
        model = opened_at(provider, root)
        assert isinstance(model, SupportsBatches)
        results = model.results("b1", [ask(model)])
        assert await growth_of(results, BadReply) < MAX_GROWTH_BYTES
        await model.close()


@pytest.mark.parametrize("provider", list(MODELS))
async def test_the_charset_of_a_header_changes_nothing(provider: str, server: Loopback) -> None:
    model = opened_at(provider, server.root)
    for charset in ("rot13", "utf-16", "latin-1", "idna", "no-such", '"'):
        kind = f"application/json; charset={charset}"
        server.script({"body": json.dumps(BODY, ensure_ascii=False), "type": kind})
        assert (await model.send(ask(model))).text == "é"
        server.script({"status": 500, "type": kind})
        with pytest.raises(Unavailable, match="500"):
            await model.send(ask(model))
    await model.close()


@pytest.mark.parametrize("provider", list(MODELS))
async def test_a_reply_that_is_not_utf_8_is_no_reply(provider: str) -> None:
    body = json.dumps(BODY, ensure_ascii=False).encode("latin-1")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        writer.close()

    async with raw_server(answer) as root:
        model = opened_at(provider, root)
        with pytest.raises(BadReply):
            await model.send(ask(model))
        await model.close()


@pytest.mark.parametrize("map_error", [map_openai_error, map_anthropic_error, map_google_error])
def test_whatever_is_raised_within_a_call_is_an_error_of_that_call(map_error: Any) -> None:
    for error in (LookupError("rot13"), ValueError(), RecursionError(), zlib.error("x"), OSError()):
        with pytest.raises(ProviderError) as caught, wire.mapped_errors(map_error, ""):
            raise error
        assert caught.value.is_retryable and caught.value.may_be_billed
    for passed in (KeyboardInterrupt(), asyncio.CancelledError()):
        with pytest.raises(type(passed)), wire.mapped_errors(map_error, ""):
            raise passed


@pytest.mark.parametrize("provider", list(MODELS))
async def test_no_redirect_is_followed(
    provider: str, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLES[provider], SECRET)
    monkeypatch.setenv("COTLAB_SEND_KEY_TO", "127.0.0.1")
    model = opened_at(provider, server.root)
    with serving() as other:
        for root in (other.root, other.root.replace("127.0.0.1", "localhost"), server.root):
            for status in (301, 302, 303, 307, 308):
                server.script({"status": status, "headers": {"Location": f"{root}/v1/models"}})
                with pytest.raises(Unavailable, match=str(status)):
                    await model.send(ask(model))
                assert len(server.seen()) == 1
        assert other.seen() == []
    await model.close()
