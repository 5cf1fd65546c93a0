"""Protocols that providers implement and the runner relies on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from cotlab.core.errors import ProviderError
from cotlab.core.requests import Request, Response
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

    has_ended: bool
    """Whether it ended; true also if it was cancelled or expired. Results that exist stay."""
    n_done: int
    """Number of requests that were processed."""
    n_total: int
    """Number of requests in the batch."""


@runtime_checkable
class SupportsBatches(Protocol):
    """A provider with a batch API: many requests at once, cheaper, within a day."""

    async def submit(self, name: str, requests: Sequence[Request]) -> str:
        """Submit one batch under a name that we chose; return the vendor's id."""
        ...

    async def find(self, name: str, keys: Sequence[str], submitted_after: str) -> str | None:
        """Find the batch with these keys that was submitted as ``name`` after ``submitted_after``.

        ``submitted_after`` is an ISO time. None if there is no such batch or it is ambiguous.
        """
        ...

    async def poll(self, batch_id: str) -> BatchState:
        """Return the progress of a batch."""
        ...

    async def results(
        self, batch_id: str, requests: Sequence[Request]
    ) -> Mapping[str, Response | ProviderError]:
        """Return responses and errors of an ended batch by request key; keys may be missing."""
        ...


@runtime_checkable
class SupportsModelList(Protocol):
    """A provider that can list its models, the cheapest check of API key and address."""

    async def models(self) -> Sequence[str]:
        """Return the names of the models that the API key can use."""
        ...


class ServerLimits(NamedTuple):
    """The rate limits that a reply of a server states; None where it does not state one."""

    max_requests: int | None = None
    """Requests that the server takes a minute, or in a longer time."""
    requests_left: int | None = None
    """Requests that it takes now."""
    reset_s: float | None = None
    """Seconds until it takes as many as ``max_requests`` again."""
    max_tokens: int | None = None
    """Tokens that it takes a minute, or in a longer time."""


@runtime_checkable
class OpensLate(Protocol):
    """A provider that imports its package only once a request is to be sent."""

    def open(self) -> None:
        """Import the package and open its client, if that has not been done; blocks."""
        ...


@runtime_checkable
class ReportsServerLimits(Protocol):
    """A provider whose servers state their rate limits."""

    server_limits: ServerLimits | None
    """Limits that the latest reply states, error replies included; None where it states none."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one question to a server found."""

    verdict: str
    """One of the verdicts of the question, such as ``echoed``; ``unknown`` where it cannot tell."""
    detail: str = ""
    """What was seen, or the server's own message; "" where the verdict says all."""
    count: int | None = None
    """What was counted: alternatives of a token, or words of a prompt; None where nothing was."""


@runtime_checkable
class SupportsServerCheck(Protocol):
    """A provider that adapts to what the questions of ``providers.probe`` find of its server."""

    def use_findings(self, findings: Mapping[str, Finding]) -> None:
        """Adapt to what was found, by name of the question."""
        ...


@runtime_checkable
class InProcessProvider(Protocol):
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


AnyProvider = Provider | InProcessProvider
