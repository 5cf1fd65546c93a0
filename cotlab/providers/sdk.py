"""Base class of the providers on the anthropic and openai SDKs: requests and batch results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import httpx2

from cotlab.core.errors import ProviderError
from cotlab.core.provider import ServerLimits
from cotlab.core.requests import Complete, Request, Response
from cotlab.core.types import ModelRef
from cotlab.providers import wire
from cotlab.providers.capabilities import family_of
from cotlab.providers.http_client import open_http_client
from cotlab.providers.keys import key_for, key_read_from, named_key_variable
from cotlab.providers.server_limits import read_server_limits

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI


class StreamedReply(Protocol):
    """The body of a reply, read piece by piece."""

    def iter_bytes(self) -> AsyncIterator[bytes]:
        """Yield the pieces."""
        ...


class SdkProvider(ABC):
    """A vendor's model behind an SDK that sends JSON over an HTTP client of aiohttp."""

    answers = frozenset({Complete.kind})

    def __init__(
        self,
        ref: ModelRef,
        url: str,
        client_class: type[AsyncAnthropic] | type[AsyncOpenAI],
        http_client_class: Callable[..., httpx2.AsyncClient],
    ) -> None:
        self._family = family_of(ref.provider, ref.name)
        self.ref = replace(ref, form=wire.resolve_form(ref, self._family))
        self.server_limits: ServerLimits | None = None
        self._key_variable = named_key_variable()
        self._client = client_class(
            base_url=url,
            api_key=key_for(ref.provider, ref.base_url),
            max_retries=0,
            timeout=None,
            http_client=open_http_client(http_client_class, self._read_server_limits),
        )

    async def close(self) -> None:
        """Close the HTTP client."""
        await self._client.close()

    @abstractmethod
    def _mapped_errors(self) -> AbstractContextManager[None]:
        """Raise the SDK's errors as ProviderErrors within the context."""

    async def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        with key_read_from(self._key_variable), self._mapped_errors():
            reply = await self._client.post(path, cast_to=httpx2.Response, body=body)
        return wire.decode_body(reply.content)

    async def _read_server_limits(self, reply: httpx2.Response) -> None:
        self.server_limits = read_server_limits(reply.headers)

    async def _get(self, path: str, **query: object) -> Mapping[str, Any]:
        with key_read_from(self._key_variable), self._mapped_errors():
            reply = await self._client.get(path, cast_to=httpx2.Response, options={"params": query})
        return wire.require_object(wire.decode_body(reply.content), "it")

    async def _json_lines(
        self, stream: AbstractAsyncContextManager[StreamedReply]
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """Yield the objects of a JSONL file of the vendor."""
        with self._mapped_errors():
            async with stream as reply:
                async for line in wire.json_lines(reply.iter_bytes()):
                    yield line

    async def _read_outcomes(
        self,
        stream: AbstractAsyncContextManager[StreamedReply],
        requests: Sequence[Request],
        read_line: Callable[[Complete, Mapping[str, Any]], Response | ProviderError],
    ) -> dict[str, Response | ProviderError]:
        """Return the outcome of each request that a file of batch results answers, by key."""
        request_by_key = {
            request.key: request for request in requests if isinstance(request, Complete)
        }
        outcomes: dict[str, Response | ProviderError] = {}
        async for line in self._json_lines(stream):
            if request := request_by_key.get(wire.optional_text(line.get("custom_id"))):
                outcomes[request.key] = read_line(request, line)
        return outcomes
