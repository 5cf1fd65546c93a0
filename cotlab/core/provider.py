"""Protocols that providers implement and the runner relies on."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from cotlab.core.errors import ProviderError
from cotlab.core.requests import Complete, Failed, Reply, Request, Response
from cotlab.core.types import ModelRef


@runtime_checkable
class Provider(Protocol):
    """A model behind an API, called with one request at a time."""

    ref: ModelRef
    """Model that was opened, with its revision and form."""
    answers: frozenset[str]
    """Kinds of requests that it can answer."""

    async def send(self, request: Request) -> Response:
        """Answer one request, or raise a ProviderError."""
        ...

    async def close(self) -> None:
        """Release the connections."""
        ...


class BatchState(NamedTuple):
    """Progress of a vendor's batch."""

    ended: bool
    """Whether it ended; true also if it was cancelled or expired. Results that exist stay."""
    done: int
    """Number of requests that were processed."""
    total: int
    """Number of requests in the batch."""


@runtime_checkable
class Batching(Protocol):
    """A provider with a batch API: many requests at once, cheaper, within a day."""

    async def submit(self, name: str, requests: Sequence[Request]) -> str:
        """Submit one batch under a name that we chose; return the vendor's id."""
        ...

    async def find(self, name: str, keys: Sequence[str], since: str) -> str | None:
        """Find the batch with these keys that was submitted as ``name`` after ``since``.

        ``since`` is an ISO time. None if there is no such batch or it is ambiguous.
        """
        ...

    async def poll(self, batch: str) -> BatchState:
        """Return the progress of a batch."""
        ...

    async def results(
        self, batch: str, requests: Sequence[Request]
    ) -> Mapping[str, Response | ProviderError]:
        """Return responses and errors of an ended batch by request key; keys may be missing."""
        ...


@runtime_checkable
class Listing(Protocol):
    """A provider that can list its models, the cheapest check of API key and address."""

    async def models(self) -> Sequence[str]:
        """Return the names of the models that the API key can use."""
        ...


@runtime_checkable
class CheckingPrefix(Protocol):
    """A provider whose servers may start a new turn instead of continuing a prefix (prefill)."""

    def check_prefix(
        self, request: Complete, sample: int
    ) -> Generator[Complete, Reply, str | Failed]:
        """Determine how the server treats the prefix of ``request``.

        Yields requests and is sent their replies. Returns "continues", "echoes" or "unknown", or
        Failed if a request got no reply. Raises SelfTestFailed if replies do not continue prefixes.
        """
        ...


@runtime_checkable
class BatchProvider(Protocol):
    """A model in this process: answers many requests at once, without cost or rate limit."""

    ref: ModelRef
    """Model that was opened, with its revision and form."""
    answers: frozenset[str]
    """Kinds of requests that it can answer."""

    def send_batch(self, requests: Sequence[Request]) -> Sequence[Response | ProviderError]:
        """Return one response or error per request, in order.

        Blocks. The runner calls it in a thread, one call at a time.
        """
        ...

    async def close(self) -> None:
        """Release the model."""
        ...


AnyProvider = Provider | BatchProvider
