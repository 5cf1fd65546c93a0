"""Base class of the providers on the vendors' SDKs: requests and batch results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import httpx2

from cotlab.core.errors import ProviderError, require_package
from cotlab.core.provider import ServerLimits
from cotlab.core.requests import Complete, Request, Response
from cotlab.core.types import ModelRef
from cotlab.providers import wire
from cotlab.providers.capabilities import family_of
from cotlab.providers.http_client import open_http_client
from cotlab.providers.keys import key_for, key_variable_of
from cotlab.providers.server_limits import read_server_limits


class SdkProvider(ABC):
    """A vendor's model behind an SDK that sends over an HTTP client of aiohttp.

    The SDK is imported with the first request that is sent.
    """

    answers = frozenset({Complete.kind})
    package: ClassVar[str]
    """The SDK."""

    def __init__(
        self,
        ref: ModelRef,
        url: str,
        map_error: Callable[[BaseException, str], ProviderError],
    ) -> None:
        require_package(f"provider {ref.provider!r}", self.package)
        self._map_error = map_error
        self._family = family_of(ref.provider, ref.name)
        self.ref = replace(ref, form=wire.resolve_form(ref))
        self.server_limits: ServerLimits | None = None
        self._key_variable = key_variable_of(ref.provider)
        self._url, self._key = url, key_for(ref.provider, ref.base_url)

    @staticmethod
    @abstractmethod
    def _client_classes() -> tuple[type[Any], Callable[..., httpx2.AsyncClient]]:
        """Import the SDK; return its client and an HTTP client that is built on aiohttp."""

    @cached_property
    def _http_client(self) -> httpx2.AsyncClient:
        return open_http_client(self._client_classes()[1], self._read_server_limits)

    @cached_property
    def _client(self) -> Any:
        return self._client_classes()[0](
            base_url=self._url,
            api_key=self._key,
            max_retries=0,
            timeout=None,
            http_client=self._http_client,
        )

    def open(self) -> None:
        """Import the SDK and open its client, if that has not been done."""
        assert self._client is not None

    async def close(self) -> None:
        """Close the HTTP client, if it was opened."""
        if "_http_client" in vars(self):
            await self._http_client.aclose()

    @abstractmethod
    def _parameters(self, request: Complete) -> wire.VendorRequest:
        """Return a request in the vendor's form, alone or as one of a batch."""

    async def _ask(
        self,
        request: Complete,
        path: str,
        vendor_request: wire.VendorRequest,
        read: Callable[[Complete, Any, Mapping[str, Any]], Response],
    ) -> Response:
        """Send a request; ``read`` makes a response of the body."""
        body, sent_params = vendor_request
        try:
            return read(request, await self._post(path, body), sent_params)
        except wire.ContentRejected:
            return wire.refusal_response(request, sent_params)

    async def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        with wire.mapped_errors(self._map_error, self._key_variable):
            reply = await self._client.post(path, cast_to=httpx2.Response, body=body)
        return wire.decode_body(reply.content)

    async def _get(self, path: str, **query: object) -> Any:
        with wire.mapped_errors(self._map_error, self._key_variable):
            reply = await self._client.get(path, cast_to=httpx2.Response, options={"params": query})
        return wire.decode_body(reply.content)

    async def _model_names(self, path: str, **query: object) -> Sequence[str]:
        listing = wire.read_body(wire.Listing, await self._get(path, **query))
        return sorted(model.id for model in listing.data)

    async def _read_server_limits(self, reply: httpx2.Response) -> None:
        self.server_limits = read_server_limits(reply.headers)

    async def _json_lines(
        self, stream: AbstractAsyncContextManager[Any]
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """Yield the objects of a JSONL file of the vendor."""
        with wire.mapped_errors(self._map_error, self._key_variable):
            async with stream as reply:
                async for line in wire.json_lines(reply.iter_bytes()):
                    yield line

    async def _read_outcomes(
        self,
        stream: AbstractAsyncContextManager[Any],
        requests: Sequence[Request],
        read_line: Callable[[Complete, Any, Mapping[str, Any]], Response],
    ) -> dict[str, Response | ProviderError]:
        """Return the outcome of each request that a file of batch results answers, by key."""
        request_by_key = {
            request.key: request for request in requests if isinstance(request, Complete)
        }
        outcomes: dict[str, Response | ProviderError] = {}
        async for line in self._json_lines(stream):
            key = line.get("custom_id")
            if isinstance(key, str) and (request := request_by_key.get(key)):
                sent_params = self._parameters(request).sent_params
                try:
                    outcomes[key] = read_line(request, line, sent_params)
                except wire.ContentRejected:
                    outcomes[key] = wire.refusal_response(request, sent_params)
                except ProviderError as error:
                    outcomes[key] = error
        return outcomes
