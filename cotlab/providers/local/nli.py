"""Verification by natural-language inference: a cross-encoder that scores entailment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForSequenceClassification

from cotlab.core.errors import ConfigError, ProviderError, Unsupported
from cotlab.core.requests import Entail, Request, Response, Usage
from cotlab.core.types import ModelRef
from cotlab.providers.local.batching import single_torch_thread, text_batches
from cotlab.providers.local.load import (
    load_config,
    load_pretrained,
    model_source,
    token_limit,
    weights_revision,
)
from cotlab.providers.local.windows import encodable, split_windows


def open_nli(ref: ModelRef, device: str = "cpu") -> CrossEncoder:
    """Open a sequence-classification model with an entailment label, by folder or hub id.

    Raises
    ------
    ConfigError
        If it cannot be loaded, or not exactly one of its labels is entailment.
    """
    flag = f"--verifier nli:{ref.name}"
    source = model_source(ref.name, flag)
    model, tokenizer = load_pretrained(
        AutoModelForSequenceClassification, source, flag, load_config(source, flag)
    )
    label_index = entailment_label(model.config.id2label, ref.name)
    model.to(device)
    revision = weights_revision(source, model, "float32", device)
    return CrossEncoder(replace(ref, revision=revision), model, tokenizer, label_index, device)


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
            f"--verifier nli:{name}: one of its labels must be entailment; it has {names}."
        )
    return matches[0]


class _Pair(NamedTuple):
    """A premise and a hypothesis that the model reads at once."""

    premise: str
    hypothesis: str
    n_tokens: int


class CrossEncoder:
    """Answers ``Entail`` with the probability of entailment in [0, 1].

    Not thread-safe: one batch at a time.
    """

    answers = frozenset({Entail.kind})

    def __init__(
        self, ref: ModelRef, model: Any, tokenizer: Any, label_index: int, device: str = "cpu"
    ) -> None:
        self.ref, self._model, self._tokenizer = ref, model, tokenizer
        self._label_index, self._device = label_index, device
        self._max_tokens = token_limit(model, tokenizer)

    async def close(self) -> None:
        """Do nothing: the model is freed with the object."""

    def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        """Return a probability for each request.

        A pair that is longer than the model accepts is read in windows, never truncated: the
        greatest probability over windows of the premise, the least over windows of the hypothesis.
        """
        reply_by_index: dict[int, Response | ProviderError] = {}
        pairs_by_index: dict[int, list[list[_Pair]]] = {}
        for i, request in enumerate(requests):
            if not isinstance(request, Entail):
                reply_by_index[i] = Unsupported(
                    f"an nli model does not answer {request.kind!r} requests"
                )
            elif rows := self._window_pairs(encodable(request.premise), request.hypothesis):
                pairs_by_index[i] = rows
            else:
                reply_by_index[i] = Unsupported(
                    f"premise and hypothesis do not fit in the model's {self._max_tokens} tokens,"
                    " not even in windows"
                )
        pairs = list(
            dict.fromkeys(p for rows in pairs_by_index.values() for row in rows for p in row)
        )
        score_by_pair = self._score_pairs(pairs)
        received_at = datetime.now(UTC).isoformat()
        for i, rows in pairs_by_index.items():
            n_tokens = sum(pair.n_tokens for row in rows for pair in row)
            probability = min(max(score_by_pair[pair] for pair in row) for row in rows)
            reply_by_index[i] = Response(
                requests[i].key,
                numbers=(probability,),
                usage=Usage(n_tokens, 0),
                batch=len(pairs),
                device=self._device,
                received_at=received_at,
            )
        return [reply_by_index[i] for i in range(len(requests))]

    def _window_pairs(self, premise: str, hypothesis: str) -> list[list[_Pair]]:
        """Return pairs that fit: a row for each window of the hypothesis, of premise windows.

        Empty where none fits. Each side may take what the other leaves, at least half.
        """
        hypothesis = encodable(hypothesis)
        pair = _Pair(premise, hypothesis, self._count(premise, hypothesis))
        if pair.n_tokens <= self._max_tokens:
            return [[pair]]
        room = self._max_tokens - self._tokenizer.num_special_tokens_to_add(pair=True)
        half = room // 2
        premise_room = room - min(self._count(hypothesis), half)
        hypothesis_room = room - min(self._count(premise), room - half)
        premises = split_windows(
            premise, lambda text: self._count(text) <= premise_room, is_overlapping=True
        )
        hypotheses = split_windows(hypothesis, lambda text: self._count(text) <= hypothesis_room)
        rows = [[_Pair(p, h, self._count(p, h)) for p in premises] for h in hypotheses]
        fits = all(pair.n_tokens <= self._max_tokens for row in rows for pair in row)
        return rows if premises and fits else []

    def _count(self, *texts: str) -> int:
        """Return the tokens of a text alone, or of a pair with its special tokens."""
        encoding = self._tokenizer(*texts, add_special_tokens=len(texts) > 1, verbose=False)
        return len(encoding["input_ids"])

    def _score_pairs(self, pairs: Sequence[_Pair]) -> dict[_Pair, float]:
        """Return the probability of each pair, in batches of one shape."""
        entries = [(pair.n_tokens, pair) for pair in pairs]
        score_by_pair: dict[_Pair, float] = {}
        with single_torch_thread(), torch.inference_mode():
            for length, group, n_rows in text_batches(entries, self._max_tokens, self._device):
                score_by_pair |= self._score_batch(group, length, n_rows)
        return score_by_pair

    def _score_batch(self, group: Sequence[_Pair], length: int, n_rows: int) -> dict[_Pair, float]:
        """Score a batch padded to ``length`` tokens and ``n_rows`` rows."""
        rows = [*group, *[group[0]] * (n_rows - len(group))]
        encoding = self._tokenizer(
            [pair.premise for pair in rows],
            [pair.hypothesis for pair in rows],
            padding="max_length",
            max_length=length,
            return_tensors="pt",
        )
        logits = self._model(**encoding.to(self._device)).logits.float()
        probabilities = torch.softmax(logits, dim=-1)[:, self._label_index].tolist()
        return {
            pair: min(1.0, max(0.0, probability))
            for pair, probability in zip(group, probabilities, strict=False)
        }
