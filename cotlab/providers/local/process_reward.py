"""Verification by a process reward model: the probability that each step of a chain is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import torch

from cotlab.core.errors import ProviderError, Unsupported
from cotlab.core.requests import Request, Response, StepRewards, Usage
from cotlab.core.resources import shipped_reward_models
from cotlab.core.types import ModelRef
from cotlab.providers.local.batching import single_torch_thread, text_batches
from cotlab.providers.local.load import (
    model_source,
    require_device,
    token_limit,
    weights_revision,
)
from cotlab.providers.local.reward_models import RewardModel, load_reward_model
from cotlab.providers.local.windows import encodable


def open_process_reward(
    ref: ModelRef, device: str = "cpu", dtype: str = "float32"
) -> ProcessRewardModel:
    """Open a process reward model by folder, hub id, or the name of a shipped one.

    Raises
    ------
    ConfigError
        If it cannot be loaded, or is of no kind that can be read.
    """
    flag = f"--verifier prm:{ref.name}"
    shipped_folder = shipped_reward_models().get(ref.name)
    name = str(shipped_folder) if shipped_folder else ref.name
    require_device(device)
    reward_model = load_reward_model(name, flag, dtype)
    reward_model.model.to(device)
    revision = weights_revision(model_source(name, flag), reward_model.model, dtype, device)
    return ProcessRewardModel(replace(ref, revision=revision), reward_model, device)


class ProcessRewardModel:
    """Answers ``StepRewards`` with a probability in [0, 1] for each step.

    Not thread-safe: one batch at a time.
    """

    answers = frozenset({StepRewards.kind})

    def __init__(self, ref: ModelRef, reward_model: RewardModel, device: str = "cpu") -> None:
        self.ref, self._reward_model, self._device = ref, reward_model, device
        self._max_tokens = token_limit(reward_model.model, reward_model.tokenizer)
        tokenizer = reward_model.tokenizer
        self._padding_id = next(
            (i for i in (tokenizer.pad_token_id, tokenizer.eos_token_id) if i is not None), 0
        )

    async def close(self) -> None:
        """Do nothing: the model is freed with the object."""

    def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        """Return the probabilities of each request's steps, in order.

        A chain that is longer than the model accepts is Unsupported, never truncated.
        """
        reply_by_index: dict[int, Response | ProviderError] = {}
        chains: dict[int, tuple[list[int], list[int]]] = {}
        entries: list[tuple[int, int]] = []
        for i, request in enumerate(requests):
            try:
                chains[i] = token_ids, _ = self._encode(request)
            except Unsupported as problem:
                reply_by_index[i] = problem
                continue
            entries.append((len(token_ids), i))
        with single_torch_thread(), torch.inference_mode():
            for length, group, n_rows in text_batches(entries, self._max_tokens, self._device):
                rows = [chains[i] for i in group]
                received_at = datetime.now(UTC).isoformat()
                for i, rewards in zip(group, self._score(rows, length, n_rows), strict=True):
                    reply_by_index[i] = Response(
                        requests[i].key,
                        numbers=rewards,
                        usage=Usage(len(chains[i][0]), 0),
                        batch=len(group),
                        device=self._device,
                        received_at=received_at,
                    )
        return [reply_by_index[i] for i in range(len(requests))]

    def _encode(self, request: Request) -> tuple[list[int], list[int]]:
        """Return tokens and positions of a request; Unsupported where it cannot be scored."""
        if not isinstance(request, StepRewards):
            raise Unsupported(f"a process reward model does not answer {request.kind!r} requests")
        if not request.steps:
            raise Unsupported("a chain without a step")
        steps = [encodable(step) for step in request.steps]
        token_ids, positions = self._reward_model.encode(encodable(request.question), steps)
        if len(token_ids) > self._max_tokens:
            raise Unsupported(
                f"question and chain have {len(token_ids)} tokens, the model takes"
                f" {self._max_tokens}"
            )
        return token_ids, positions

    def _score(
        self, chains: Sequence[tuple[list[int], list[int]]], length: int, n_rows: int
    ) -> list[tuple[float, ...]]:
        """Score a batch padded on the right to ``length`` tokens and ``n_rows`` rows."""
        rows = [token_ids for token_ids, _ in chains]
        rows += rows[:1] * (n_rows - len(rows))
        input_ids = torch.tensor(
            [row + [self._padding_id] * (length - len(row)) for row in rows], device=self._device
        )
        attention_mask = torch.tensor(
            [[1] * len(row) + [0] * (length - len(row)) for row in rows], device=self._device
        )
        logits = self._reward_model.model(input_ids=input_ids, attention_mask=attention_mask).logits
        probabilities = self._reward_model.probabilities(logits).tolist()
        return [
            tuple(min(1.0, max(0.0, row[position])) for position in positions)
            for row, (_, positions) in zip(probabilities, chains, strict=False)
        ]
