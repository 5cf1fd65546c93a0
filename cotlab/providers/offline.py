"""Providers that imitate a model, without network or weights: echo, scripted and recorded."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from cotlab.core.errors import BadReply, ConfigError, Unsupported
from cotlab.core.requests import Complete, Request, Response, Usage
from cotlab.core.types import ANSWER_PLACEHOLDER, ModelRef


class ScriptError(BadReply):
    """The script's error for a request; not retried, as the script would repeat it."""

    is_retryable = False


class Scripted:
    """Answers from a JSONL file, for tests of a pipeline and for replaying conversations.

    The model's name is the file. Each line is ``{"contains": TEXT, "text": REPLY}``, or has
    ``"refused": true`` or ``"error": MESSAGE`` instead of the reply. The first line whose TEXT
    occurs in the request answers it.
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
            self._script_lines = [
                json.loads(line) for line in data.decode("utf-8").splitlines() if line.strip()
            ]
        except ValueError as error:
            raise ConfigError(f"{path}: not JSONL: {error}") from error
        if not all(
            isinstance(line, dict) and isinstance(line.get("contains"), str)
            for line in self._script_lines
        ):
            raise ConfigError(f'{path}: every line must be an object with a text "contains"')
        self.ref = replace(ref, revision=sha256(data).hexdigest())

    async def send(self, request: Request) -> Response:
        """Answer with the first line of the script that matches."""
        assert isinstance(request, Complete)
        prompt = "\n".join((request.system, *(m.content for m in request.messages), request.prefix))
        line = next((line for line in self._script_lines if line["contains"] in prompt), None)
        if line is None:
            raise ScriptError("the script has no line for this request")
        if "error" in line:
            raise ScriptError(str(line["error"]))
        text = str(line.get("text", ""))
        usage = Usage(len(prompt.split()), len(text.split()))
        return _build_response(request, text, usage, is_refused=bool(line.get("refused", False)))

    async def close(self) -> None:
        """Do nothing: there is no connection."""


_LATENCY_PATTERN = re.compile(r"latency_s=([0-9]+(?:\.[0-9]+)?)")
"""Model name with a delay: latency_s=0.1."""


class Echo:
    """Repeats the question and the prefix, for trying out a suite and measuring the runner.

    In the place of an answer, where the prompt has one, it writes 0, which is its answer then.

    The model ``latency_s=0.1`` waits 0.1 s before each reply.
    """

    answers = frozenset({Complete.kind})

    def __init__(self, ref: ModelRef) -> None:
        match = _LATENCY_PATTERN.fullmatch(ref.name)
        if not match and ref.name != "echo":
            raise ConfigError(
                "The echo provider knows the models 'echo' and 'latency_s=SECONDS', not"
                f" {ref.name!r}."
            )
        self.ref = replace(ref, revision="3")
        self._latency_s = float(match.group(1)) if match else 0.0

    async def send(self, request: Request) -> Response:
        """Answer with the question and the prefix."""
        assert isinstance(request, Complete)
        await asyncio.sleep(self._latency_s)
        question = request.messages[-1].content.replace(ANSWER_PLACEHOLDER, "0")
        text = f"{question}\n{request.prefix}".strip()
        n_tokens = len(text.split())
        return _build_response(request, text, Usage(n_tokens, n_tokens))

    async def close(self) -> None:
        """Do nothing: there is no connection."""


class Recorded:
    """Stands for a model whose replies another tool has logged: it answers from the log alone.

    The model's name is ``NAME@REVISION``; the revision is the digest of what was imported.
    """

    answers = frozenset({Complete.kind})

    def __init__(self, ref: ModelRef) -> None:
        name, _, revision = ref.name.rpartition("@")
        if not (ref.revision or name):
            raise ConfigError(
                "A recorded model comes from an imported log: cotlab import inspect LOG."
            )
        self.ref = ref if ref.revision else replace(ref, name=name, revision=revision)

    async def send(self, request: Request) -> Response:
        """Raise Unsupported: whatever was logged is in the response log already."""
        raise Unsupported(f"the imported log of {self.ref.name} holds no reply to this request")

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def _build_response(
    request: Request, text: str, usage: Usage, is_refused: bool = False
) -> Response:
    received_at = datetime.now(UTC).isoformat()
    return Response(
        request.key, text, usage=usage, finish="stop", refused=is_refused, received_at=received_at
    )
