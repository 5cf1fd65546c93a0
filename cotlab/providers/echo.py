"""A provider that answers with what it was asked, after a wait: for trying out a suite and for measuring the runner."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime

from cotlab.core.errors import ConfigError
from cotlab.core.requests import Complete, Request, Response, Usage
from cotlab.core.types import ModelRef

_LATENCY = re.compile(r"latency_s=([0-9]+(?:\.[0-9]+)?)")


class Echo:
    """Replies with the question, then the text so far. A model name ``latency_s=0.1`` makes each reply take 0.1 s."""

    answers = frozenset({Complete.kind})

    def __init__(self, ref: ModelRef) -> None:
        match = _LATENCY.fullmatch(ref.name)
        if not match and ref.name != "echo":
            raise ConfigError(
                "The echo provider knows the models 'echo' and 'latency_s=SECONDS', not"
                f" {ref.name!r}."
            )
        self.ref = replace(ref, revision="1")
        self._latency_s = float(match.group(1)) if match else 0.0

    async def send(self, request: Request) -> Response:
        assert isinstance(request, Complete)
        await asyncio.sleep(self._latency_s)
        text = f"{request.messages[-1].content}\n{request.prefix}".strip()
        length = len(text.split())
        return Response(
            request.key,
            text,
            usage=Usage(length, length),
            finish="stop",
            received_at=datetime.now(UTC).isoformat(),
        )

    async def close(self) -> None:
        return None
