"""Providers that imitate a model, without network or weights: echo and scripted."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from cotlab.core.errors import BadReply, ConfigError
from cotlab.core.requests import Complete, Request, Response, Usage
from cotlab.core.types import ModelRef


class ScriptError(BadReply):
    """The script's error for a request; not retried, as the script would repeat it."""

    retry = False


class Scripted:
    """Answers from a JSONL file, for tests of a pipeline and for replaying conversations.

    The model's name is the file. Each line is ``{"contains": TEXT, "text": REPLY}``, or has
    ``"refused": true`` or ``"error": MESSAGE`` instead of the reply. The first line whose TEXT
    occurs
    in the request answers it.
    """

    answers = frozenset({Complete.kind})

    def __init__(self, ref: ModelRef) -> None:
        path = Path(ref.name)
        if not path.is_file():
            raise ConfigError(
                f"{path}: no such file. The scripted provider's model is a JSONL file of replies."
            )
        data = path.read_bytes()
        try:
            self._lines = [
                json.loads(line) for line in data.decode("utf-8").splitlines() if line.strip()
            ]
        except ValueError as error:
            raise ConfigError(f"{path}: not JSONL: {error}") from error
        if not all(
            isinstance(line, dict) and isinstance(line.get("contains"), str) for line in self._lines
        ):
            raise ConfigError(f'{path}: every line must be an object with a text "contains"')
        self.ref = replace(ref, revision=sha256(data).hexdigest())

    async def send(self, request: Request) -> Response:
        """Answer with the first line of the script that matches."""
        assert isinstance(request, Complete)
        prompt = "\n".join((request.system, *(m.content for m in request.messages), request.prefix))
        line = next((line for line in self._lines if line["contains"] in prompt), None)
        if line is None:
            raise ScriptError("the script has no line for this request")
        if "error" in line:
            raise ScriptError(str(line["error"]))
        text = str(line.get("text", ""))
        return Response(
            request.key,
            text,
            usage=Usage(len(prompt.split()), len(text.split())),
            finish="stop",
            refused=bool(line.get("refused", False)),
            received_at=datetime.now(UTC).isoformat(),
        )

    async def close(self) -> None:
        """Do nothing: there is no connection."""


_LATENCY = re.compile(r"latency_s=([0-9]+(?:\.[0-9]+)?)")
"""Model name with a delay: latency_s=0.1."""


class Echo:
    """Repeats the question and the prefix, for trying out a suite and measuring the runner.

    The model ``latency_s=0.1`` waits 0.1 s before each reply.
    """

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
        """Answer with the question and the prefix."""
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
        """Do nothing: there is no connection."""
