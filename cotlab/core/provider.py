"""What the runner expects of a provider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from cotlab.core.errors import ProviderError
from cotlab.core.requests import Request, Response
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
