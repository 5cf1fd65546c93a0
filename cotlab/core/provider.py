"""What the runner expects of a provider."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from cotlab.core.errors import ProviderError
from cotlab.core.requests import Complete, Failed, Reply, Request, Response
from cotlab.core.types import ModelRef


@runtime_checkable
class Provider(Protocol):
    """Answers requests of the kinds in ``answers``. ``ref`` is the model it was opened for, with its revision and form."""

    ref: ModelRef
    answers: frozenset[str]

    async def send(self, request: Request) -> Response:
        """Answer one request, or raise a ProviderError."""
        ...

    async def close(self) -> None: ...


class BatchState(NamedTuple):
    """Where a vendor's batch stands. ``ended`` also where it was cancelled or has expired: what has a result keeps it."""

    ended: bool
    done: int
    total: int


@runtime_checkable
class Batching(Protocol):
    """A provider whose vendor also takes many requests at once, for less, and answers within a day."""

    async def submit(self, name: str, requests: Sequence[Request]) -> str:
        """Hand in one batch under a name of ours; the vendor's id of it."""
        ...

    async def find(self, name: str, keys: Sequence[str], since: str) -> str | None:
        """The id of the batch of the requests ``keys`` that was handed in under ``name`` after ``since`` (ISO time).

        None where there is none, or where it cannot be told from others.
        """
        ...

    async def poll(self, batch: str) -> BatchState: ...

    async def results(
        self, batch: str, requests: Sequence[Request]
    ) -> Mapping[str, Response | ProviderError]:
        """Replies and errors of an ended batch by request key; a request without either has none."""
        ...


@runtime_checkable
class Listing(Protocol):
    """A provider that can say which models its key reaches: the cheapest proof that key and address work."""

    async def models(self) -> Sequence[str]: ...


@runtime_checkable
class CheckingPrefix(Protocol):
    """A provider whose servers may start a new turn instead of continuing a prefix."""

    def check_prefix(
        self, request: Complete, sample: int
    ) -> Generator[Complete, Reply, str | Failed]:
        """Find out how the server treats the prefix of ``request``: ask what is yielded and send each reply.

        Returns "continues", "echoes" or "unknown", or Failed where a request got no reply. Raises
        SelfTestFailed where replies would not follow from prefixes.
        """
        ...


@runtime_checkable
class BatchProvider(Protocol):
    """A model in this process: answers many requests at once, costs nothing, needs no rate limit."""

    ref: ModelRef
    answers: frozenset[str]

    def send_batch(self, requests: Sequence[Request]) -> Sequence[Response | ProviderError]:
        """One reply or error a request, in order. Blocks; the runner calls it in a thread, one call at a time."""
        ...

    async def close(self) -> None: ...


AnyProvider = Provider | BatchProvider
