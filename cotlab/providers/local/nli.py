"""Verification by natural-language inference: a cross-encoder that scores entailment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers.utils import logging as library_logging

from cotlab.core.errors import ConfigError, ProviderError, Unsupported
from cotlab.core.requests import Entail, Request, Response, Usage
from cotlab.core.types import ModelRef
from cotlab.providers.local.load import _revision, single_torch_thread

BATCH_TOKENS = 4096
"""Most tokens of a batch."""
_FAILURES = (OSError, ValueError, KeyError, TypeError, RuntimeError, ImportError, SafetensorError)
_UNBOUNDED = 1 << 20


def open_nli(ref: ModelRef, device: str = "cpu") -> CrossEncoder:
    """Open a sequence-classification model with an entailment label, by folder or hub id.

    Raises
    ------
    ConfigError
        If it cannot be loaded, or not exactly one of its labels is entailment.
    """
    folder = Path(ref.name).expanduser()
    if (folder.exists() or ref.name.startswith((".", "/", "~"))) and not (
        folder / "config.json"
    ).is_file():
        raise ConfigError(
            f"--verifier nli/{ref.name}: not a Hugging Face model folder (no config.json in it)."
        )
    library_logging.disable_progress_bar()
    source = str(folder) if folder.is_dir() else ref.name
    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
        model = AutoModelForSequenceClassification.from_pretrained(source, dtype=torch.float32)
    except _FAILURES as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConfigError(f"--verifier nli/{ref.name}: cannot be loaded: {first}") from error
    label = entailment_label(model.config.id2label, ref.name)
    model.eval().to(device)
    revision = _revision(folder, model, "float32") + ("" if device == "cpu" else f":{device}")
    return CrossEncoder(replace(ref, revision=revision), model, tokenizer, label, device)


def entailment_label(labels: dict[int, str], name: str) -> int:
    """Return the index of the entailment label ("entailment", "ENTAILMENT", "entails").

    Raises
    ------
    ConfigError
        If there is none, or several; "not_entailment" is none.
    """
    matches = [int(i) for i, label in labels.items() if str(label).lower().startswith("entail")]
    if len(matches) != 1:
        names = ", ".join(str(label) for label in labels.values())
        raise ConfigError(
            f"--verifier nli/{name}: one of its labels must be entailment; it has {names}."
        )
    return matches[0]


class CrossEncoder:
    """Answers ``Entail`` with the probability of entailment in [0, 1].

    Not thread-safe: one batch at a time.
    """

    answers = frozenset({Entail.kind})

    def __init__(
        self, ref: ModelRef, model: Any, tokenizer: Any, label: int, device: str = "cpu"
    ) -> None:
        self.ref, self._model, self._tokenizer, self._label, self._device = (
            ref,
            model,
            tokenizer,
            label,
            device,
        )
        limits = (
            getattr(model.config, "max_position_embeddings", None),
            tokenizer.model_max_length,
        )
        self._longest = min(
            (int(n) for n in limits if n is not None and 0 < n < _UNBOUNDED), default=_UNBOUNDED
        )

    async def send(self, request: Request) -> Response:
        """Answer one request in a thread."""
        (reply,) = await asyncio.to_thread(self.send_batch, [request])
        if isinstance(reply, ProviderError):
            raise reply
        return reply

    async def close(self) -> None:
        """Do nothing: the model is freed with the object."""

    def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        """Return a probability for each request.

        A pair that is longer than the model accepts is Unsupported, never truncated.
        """
        out: dict[int, Response | ProviderError] = {}
        pairs: list[tuple[int, int]] = []
        for i, request in enumerate(requests):
            if not isinstance(request, Entail):
                out[i] = Unsupported(f"an nli model does not answer {request.kind!r} requests")
                continue
            length = len(
                self._tokenizer(request.premise, request.hypothesis, verbose=False)["input_ids"]
            )
            if length > self._longest:
                out[i] = Unsupported(
                    f"premise and hypothesis have {length} tokens, the model takes {self._longest}"
                )
            else:
                pairs.append((length, i))
        with single_torch_thread(), torch.inference_mode():
            for group in _packed(sorted(pairs)):
                out |= self._scored([(i, requests[i]) for i in group])
        return [out[i] for i in range(len(requests))]

    def _scored(self, group: Sequence[tuple[int, Request]]) -> dict[int, Response | ProviderError]:
        texts = [(r.premise, r.hypothesis) for _, r in group if isinstance(r, Entail)]
        encoded = self._tokenizer(
            [a for a, _ in texts], [b for _, b in texts], padding=True, return_tensors="pt"
        )
        batch = encoded.to(self._device)
        chances = torch.softmax(self._model(**batch).logits.float(), dim=-1)[
            :, self._label
        ].tolist()
        sizes = batch["attention_mask"].sum(dim=1).tolist()
        at = datetime.now(UTC).isoformat()
        return {
            i: Response(
                request.key,
                numbers=(min(1.0, max(0.0, chance)),),
                usage=Usage(size, 0),
                batch=len(group),
                device=self._device,
                received_at=at,
            )
            for (i, request), chance, size in zip(group, chances, sizes, strict=True)
        }


def _packed(pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Group (length, index) pairs, ordered by length, up to a budget of tokens."""
    groups: list[list[int]] = []
    size = 0
    for length, i in pairs:
        if not groups or (size + 1) * length > BATCH_TOKENS:
            groups.append([])
            size = 0
        groups[-1].append(i)
        size += 1
    return groups
