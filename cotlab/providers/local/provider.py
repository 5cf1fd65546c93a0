"""The local provider: text and exact log-probabilities of a model in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

import torch

from cotlab.core.errors import ProviderError, Unsupported
from cotlab.core.requests import Complete, Locate, LogProb, Patched, Request, Response, Usage
from cotlab.core.rng import derive_seed
from cotlab.core.types import Form, ModelRef
from cotlab.providers.local.backend import open_backend
from cotlab.providers.local.generate import Decoding, Pieces, generate, score_answers, score_tokens
from cotlab.providers.local.load import Loaded, load_model, load_organism, single_torch_thread
from cotlab.providers.local.patching import Patcher
from cotlab.providers.local.render import Scored, encode, encode_with_answers, locate, render

TOKENS_A_BATCH = 8192
"""Most tokens of a batch."""
SMALL = 10_000_000
"""Number of weights below which one thread is faster than several."""
Entry = TypeVar("Entry")


def open_organism(
    ref: ModelRef, device: str = "cpu", dtype: str = "float32", backend: str = "auto"
) -> LocalModel:
    """Open a shipped organism by name."""
    return LocalModel(ref, load_organism(ref.name, device, dtype), backend)


def open_local(
    ref: ModelRef, device: str = "cpu", dtype: str = "float32", backend: str = "auto"
) -> LocalModel:
    """Open a model by its folder or hub id.

    With a chat template it answers in turns, else by continuation.
    """
    return LocalModel(ref, load_model(ref.name, device=device, dtype=dtype), backend)


class LocalModel:
    """Answers ``Complete``, ``LogProb``, ``Locate`` and ``Patched``.

    Not thread-safe: one batch at a time.
    """

    answers = frozenset({Complete.kind, LogProb.kind, Locate.kind, Patched.kind})

    def __init__(self, ref: ModelRef, loaded: Loaded, backend: str = "auto") -> None:
        form: Form = "continuation"
        if loaded.has_chat_template:
            form = "prefill" if ref.form == "prefill" else "chat"
        suffix = (
            "" if (loaded.device, backend) == ("cpu", "auto") else f":{loaded.device}:{backend}"
        )
        # With the device in the revision, a reply of another device is not reused.
        self.ref = replace(ref, revision=loaded.revision + suffix, form=form)
        self._loaded = loaded
        self._backend_name = backend
        self._patcher_made: Patcher | None = None
        self._threads = torch.get_num_threads()
        if backend != "auto":
            open_backend(backend, loaded)  # raises before the run where it does not fit the model
        self._pieces = Pieces(loaded.tokenizer)
        self._small = sum(weights.numel() for weights in loaded.model.parameters()) < SMALL

    async def send(self, request: Request) -> Response:
        """Answer one request in a thread."""
        (reply,) = await asyncio.to_thread(self.send_batch, [request])
        if isinstance(reply, ProviderError):
            raise reply
        return reply

    async def close(self) -> None:
        """Do nothing: the model is freed with the object."""

    @property
    def _patcher(self) -> Patcher:
        """Return the patcher, made when it is first needed: most runs patch nothing."""
        if self._patcher_made is None:
            backend = open_backend(self._backend_name, self._loaded)
            workers = (
                self._threads
                if self._small and backend.at_once and self._loaded.device == "cpu"
                else 1
            )
            self._patcher_made = Patcher(self._loaded, backend, workers)
        return self._patcher_made

    def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        """Return a reply for each request, in order, batched by kind and length."""
        with single_torch_thread() if self._small else nullcontext():
            return self._answer(requests)

    def _answer(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        out: dict[int, Response | ProviderError] = {}
        decodings: dict[int, Decoding] = {}
        scored: dict[int, list[Scored]] = {}
        for i, request in enumerate(requests):
            try:
                if isinstance(request, Complete):
                    decodings[i] = self._decoding(request)
                elif isinstance(request, LogProb) and request.top_logprobs:
                    out[i] = self._with_tokens(request)
                elif isinstance(request, LogProb):
                    scored[i] = encode_with_answers(
                        self._loaded, render(self._loaded, request), request.answers
                    )
                elif isinstance(request, Locate):
                    located = locate(self._loaded, request, self._patcher.layers)
                    out[i] = replace(self._response(request, 1), located=located)
                elif not isinstance(request, Patched):
                    out[i] = Unsupported(f"a local model does not answer {request.kind!r} requests")
            except Unsupported as error:
                out[i] = error
        for group in _packed([(row.max_new, len(row.ids), i) for i, row in decodings.items()]):
            generate(self._loaded, [decodings[i] for i in group], self._pieces)
            for i in group:
                out[i] = self._completed(requests[i], decodings[i], len(group))
        flat = [
            (1, len(row.ids), (i, k)) for i, rows in scored.items() for k, row in enumerate(rows)
        ]
        numbers: dict[tuple[int, int], float] = {}
        for pairs in _packed(flat):
            numbers |= zip(
                pairs, score_answers(self._loaded, [scored[i][k] for i, k in pairs]), strict=True
            )
        for i, rows in scored.items():
            out[i] = replace(
                self._response(requests[i], len(rows)),
                numbers=tuple(numbers[i, k] for k in range(len(rows))),
            )
        patched = [
            (i, request) for i, request in enumerate(requests) if isinstance(request, Patched)
        ]
        if patched:
            answers = self._patcher.answer([request for _, request in patched])
            for (i, request), answer in zip(patched, answers, strict=True):
                reply = self._response(request, len(request.rows))
                out[i] = (
                    answer
                    if isinstance(answer, Unsupported)
                    else replace(reply, numbers=tuple(answer))
                )
        return [out[i] for i in range(len(requests))]

    def _with_tokens(self, request: LogProb) -> Response:
        """Return the log-probabilities, and the answers' tokens with alternatives."""
        rows = encode_with_answers(self._loaded, render(self._loaded, request), request.answers)
        scored = [
            score_tokens(self._loaded, row, request.top_logprobs, self._pieces) for row in rows
        ]
        tokens = tuple(token for _, answer_tokens in scored for token in answer_tokens)
        return replace(
            self._response(request, 1), numbers=tuple(number for number, _ in scored), tokens=tokens
        )

    def _decoding(self, request: Complete) -> Decoding:
        return Decoding(
            encode(self._loaded, render(self._loaded, request)),
            request.max_tokens,
            request.temperature,
            derive_seed("draw", request.key) if request.temperature > 0 else 0,
            request.top_logprobs,
            request.stop,
        )

    def _completed(self, request: Request, row: Decoding, batch: int) -> Response:
        text = self._pieces.text(row.generated)
        cut = min((text.find(s) for s in row.stop if s in text), default=len(text))
        return replace(
            self._response(request, batch),
            text=text[:cut],
            tokens=tuple(row.tokens),
            finish=row.finish,
            usage=Usage(len(row.ids), len(row.generated)),
        )

    def _response(self, request: Request, batch: int) -> Response:
        return Response(
            request.key,
            device=self._loaded.device,
            batch=batch,
            received_at=datetime.now(UTC).isoformat(),
        )


def _packed(rows: Sequence[tuple[int, int, Entry]]) -> Iterator[list[Entry]]:
    """Group (new tokens, length, entry) of similar size, up to a budget of tokens."""
    group: list[Entry] = []
    longest = 0
    for new, length, entry in sorted(rows, key=lambda row: (row[0], row[1])):
        longest = max(longest, length + min(new, 64))
        if group and (len(group) + 1) * longest > TOKENS_A_BATCH:
            yield group
            group, longest = [], length + min(new, 64)
        group.append(entry)
    if group:
        yield group
