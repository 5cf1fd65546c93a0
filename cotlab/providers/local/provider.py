"""The local provider: text and exact log-probabilities of a model in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime

import torch

from cotlab.core.errors import ProviderError, Unsupported
from cotlab.core.keys import derive_seed
from cotlab.core.requests import Complete, Locate, LogProb, Patched, Request, Response, Usage
from cotlab.core.types import Form, ModelRef
from cotlab.providers.local.backend import open_backend, with_fast_reading
from cotlab.providers.local.batching import (
    ROW_MULTIPLE,
    equal_shape_batches,
    single_torch_thread,
)
from cotlab.providers.local.generate import (
    Decoding,
    TokenTexts,
    answer_shape,
    choose_reading,
    generate,
    score_answers,
    score_tokens,
)
from cotlab.providers.local.load import (
    LoadedModel,
    load_model,
    load_organism,
)
from cotlab.providers.local.patching import Patcher
from cotlab.providers.local.readers import open_reader, prompt_length
from cotlab.providers.local.render import (
    AnswerIds,
    encode,
    encode_with_answers,
    locate_spans,
    render_prompt,
)

MAX_BATCH_TOKENS = 8192
"""Most tokens of a batch."""
MAX_SMALL_MODEL_BATCH_TOKENS = 16_384
"""Most tokens of the rows that a small model decodes together."""
NEW_TOKENS_ALLOWANCE = 64
"""Generated tokens that count into the size of a batch."""
MIN_LENGTH_CLASS = 8
"""Binary digits of a prompt's length up to which prompts are decoded together."""
MAX_SMALL_MODEL_WEIGHTS = 10_000_000
"""Number of weights below which one thread is faster than several."""


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

    def __init__(self, ref: ModelRef, loaded_model: LoadedModel, backend: str = "auto") -> None:
        form: Form = "continuation"
        if loaded_model.has_chat_template:
            form = "prefill" if ref.form == "prefill" else "chat"
        self._is_small = (
            sum(weights.numel() for weights in loaded_model.model.parameters())
            < MAX_SMALL_MODEL_WEIGHTS
        )
        with single_torch_thread() if self._is_small else nullcontext():
            loaded_model = choose_reading(with_fast_reading(loaded_model, backend))
        suffix = (
            ""
            if (loaded_model.device, backend) == ("cpu", "auto")
            else f":{loaded_model.device}:{backend}"
        ) + (":whole" if loaded_model.reads_whole else "")
        # With device and reading in the revision, a reply made otherwise is not reused.
        self.ref = replace(ref, revision=loaded_model.revision + suffix, form=form)
        self._loaded_model = loaded_model
        self._backend_name = backend
        self._cached_patcher: Patcher | None = None
        self._n_threads = torch.get_num_threads()
        if backend != "auto":
            open_backend(
                backend, loaded_model
            )  # raises before the run where it does not fit the model
        self._token_texts = TokenTexts(loaded_model.tokenizer)

    async def close(self) -> None:
        """Do nothing: the model is freed with the object."""

    @property
    def _patcher(self) -> Patcher:
        """Return the patcher, made when it is first needed: most runs patch nothing."""
        if self._cached_patcher is None:
            backend = open_backend(self._backend_name, self._loaded_model)
            n_workers = (
                self._n_threads
                if self._is_small and backend.is_thread_safe and self._loaded_model.device == "cpu"
                else 1
            )
            self._cached_patcher = Patcher(self._loaded_model, backend, n_workers)
        return self._cached_patcher

    def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        """Return a reply for each request, in order, batched by kind and length."""
        with single_torch_thread() if self._is_small else nullcontext():
            return self._answer_requests(requests)

    def _answer_requests(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        reply_by_index: dict[int, Response | ProviderError] = {}
        decodings: dict[int, Decoding] = {}
        answer_ids_by_index: dict[int, list[AnswerIds]] = {}
        for i, request in enumerate(requests):
            try:
                if isinstance(request, Complete):
                    decodings[i] = self._make_decoding(request)
                elif isinstance(request, LogProb) and request.top_logprobs:
                    reply_by_index[i] = self._score_with_tokens(request)
                elif isinstance(request, LogProb):
                    answer_ids_by_index[i] = encode_with_answers(
                        self._loaded_model,
                        render_prompt(self._loaded_model, request),
                        request.answers,
                    )
                elif isinstance(request, Locate):
                    located_spans = locate_spans(
                        self._loaded_model, request, self._patcher.n_layers
                    )
                    reply_by_index[i] = replace(
                        self._build_response(request, 1), located=located_spans
                    )
                elif not isinstance(request, Patched):
                    reply_by_index[i] = Unsupported(
                        f"a local model does not answer {request.kind!r} requests"
                    )
            except Unsupported as error:
                reply_by_index[i] = error
        device = self._loaded_model.device
        for group, n_rows in self._decoding_batches(decodings):
            reader = open_reader(self._loaded_model, n_rows)
            generate(self._loaded_model, reader, [decodings[i] for i in group], self._token_texts)
            for i in group:
                reply_by_index[i] = self._completion_response(requests[i], decodings[i], len(group))
        answer_rows = [
            ((shape := answer_shape(row)), shape[0], (i, k))
            for i, rows in answer_ids_by_index.items()
            for k, row in enumerate(rows)
        ]
        log_probs: dict[tuple[int, int], float] = {}
        for _, index_pairs, n_rows in equal_shape_batches(answer_rows, MAX_BATCH_TOKENS, device):
            scored_rows = [answer_ids_by_index[i][k] for i, k in index_pairs]
            log_probs |= zip(
                index_pairs, score_answers(self._loaded_model, scored_rows, n_rows), strict=True
            )
        for i, rows in answer_ids_by_index.items():
            reply_by_index[i] = replace(
                self._build_response(requests[i], len(rows)),
                numbers=tuple(log_probs[i, k] for k in range(len(rows))),
            )
        patch_requests = [
            (i, request) for i, request in enumerate(requests) if isinstance(request, Patched)
        ]
        if patch_requests:
            answers = self._patcher.answer_requests([request for _, request in patch_requests])
            for (i, request), answer in zip(patch_requests, answers, strict=True):
                reply = self._build_response(request, len(request.rows))
                reply_by_index[i] = (
                    answer
                    if isinstance(answer, Unsupported)
                    else replace(reply, numbers=tuple(answer))
                )
        return [reply_by_index[i] for i in range(len(requests))]

    def _decoding_batches(self, decodings: dict[int, Decoding]) -> Iterator[tuple[list[int], int]]:
        """Yield the indices of rows to decode together, and how many of them at most at once.

        Where rows of any length are read together, those of similar length are.
        """
        lengths = {i: len(row.ids) - 1 for i, row in decodings.items()}  # read before the last
        if self._loaded_model.fast is None:
            shapes = {i: prompt_length(n) for i, n in lengths.items()}
            entries = [(n, n + NEW_TOKENS_ALLOWANCE, i) for i, n in shapes.items()]
            device = self._loaded_model.device
            for _, group, n_rows in equal_shape_batches(entries, MAX_BATCH_TOKENS, device):
                yield group, n_rows
            return
        sizes = {i: max(MIN_LENGTH_CLASS, n.bit_length()) for i, n in lengths.items()}
        for size in sorted(set(sizes.values())):
            group = [i for i in sizes if sizes[i] == size]
            longest = max(lengths[i] for i in group) + NEW_TOKENS_ALLOWANCE
            # rows with the same beginning become neighbours
            group.sort(key=lambda i: decodings[i].ids)
            max_tokens = MAX_SMALL_MODEL_BATCH_TOKENS if self._is_small else MAX_BATCH_TOKENS
            yield group, min(len(group), max(ROW_MULTIPLE, max_tokens // longest))

    def _score_with_tokens(self, request: LogProb) -> Response:
        """Return the log-probabilities, and the answers' tokens with alternatives."""
        rows = encode_with_answers(
            self._loaded_model, render_prompt(self._loaded_model, request), request.answers
        )
        scored_rows = [
            score_tokens(self._loaded_model, row, request.top_logprobs, self._token_texts)
            for row in rows
        ]
        tokens = tuple(token for _, answer_tokens in scored_rows for token in answer_tokens)
        return replace(
            self._build_response(request, 1),
            numbers=tuple(number for number, _ in scored_rows),
            tokens=tokens,
        )

    def _make_decoding(self, request: Complete) -> Decoding:
        ids = encode(self._loaded_model, render_prompt(self._loaded_model, request))
        return Decoding(
            ids,
            request.max_tokens,
            request.temperature,
            derive_seed("draw", request.key) if request.temperature > 0 else 0,
            request.top_logprobs,
            request.stop,
        )

    def _completion_response(self, request: Request, row: Decoding, batch_size: int) -> Response:
        text = self._token_texts.text(row.generated_ids)
        text_end = min(
            (text.find(stop_text) for stop_text in row.stop if stop_text in text), default=len(text)
        )
        return replace(
            self._build_response(request, batch_size),
            text=text[:text_end],
            tokens=tuple(row.tokens),
            finish=row.finish,
            usage=Usage(len(row.ids), len(row.generated_ids)),
        )

    def _build_response(self, request: Request, batch_size: int) -> Response:
        return Response(
            request.key,
            device=self._loaded_model.device,
            batch=batch_size,
            received_at=datetime.now(UTC).isoformat(),
        )
