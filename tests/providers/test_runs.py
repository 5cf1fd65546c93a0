"""Residuals that were computed are kept by their bytes, and a batch is no larger than memory
allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from cotlab.providers.local import patching
from cotlab.providers.local.patching import ResidualCache, token_budget

LAYERS, WIDTH = 2, 4
A_TOKEN = LAYERS * WIDTH * 4
"""Bytes of one token's states in float32."""


class Counting:
    """A backend whose states are the ids, and which notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, ...]] = []

    def residuals(self, ids: Sequence[int]) -> torch.Tensor:
        self.asked.append(tuple(ids))
        return (
            torch.tensor([list(ids)], dtype=torch.float32)[..., None]
            .expand(LAYERS, -1, WIDTH)
            .clone()
        )


def runs(tokens: int) -> tuple[ResidualCache, Counting]:
    backend: Any = Counting()
    return ResidualCache(backend, tokens * A_TOKEN), backend


def test_the_least_recently_used_text_is_forgotten_first() -> None:
    kept, backend = runs(8)
    for ids in (
        [1, 2, 3],
        [4, 5, 6],
        [1, 2, 3],
        [7, 8, 9],
    ):  # nine tokens: the second text has to go
        kept.residuals(ids)
    assert backend.asked == [(1, 2, 3), (4, 5, 6), (7, 8, 9)]
    kept.residuals([1, 2, 3])
    kept.residuals([4, 5, 6])
    assert backend.asked[3:] == [(4, 5, 6)]


def test_one_text_that_is_larger_than_all_that_may_be_kept_is_kept_alone() -> None:
    kept, backend = runs(2)
    kept.residuals([1])
    assert kept.residuals([1, 2, 3, 4, 5])[0, :, 0].tolist() == [1, 2, 3, 4, 5]
    kept.residuals([1, 2, 3, 4, 5])
    kept.residuals([1])
    assert backend.asked == [(1,), (1, 2, 3, 4, 5), (1,)]


def test_a_text_is_found_in_its_run_with_an_answer_and_another_answer_takes_its_place() -> None:
    kept, backend = runs(100)
    assert kept.residuals([1, 2, 3, 9], n_answer=1).shape == (LAYERS, 4, WIDTH)
    assert kept.residuals([1, 2, 3])[0, :, 0].tolist() == [1, 2, 3]
    assert len(backend.asked) == 1
    assert kept.residuals([1, 2, 3, 8], n_answer=1)[0, :, 0].tolist() == [1, 2, 3, 8]
    assert len(backend.asked) == 2 and kept._bytes == 4 * A_TOKEN and len(kept._entries) == 1


def test_a_batch_is_as_large_as_free_memory_allows_and_as_is_fast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=100,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
        )
    )
    each = (16 * 32 + 4 * 64) * 4 + 0.1 * 8 * 100  # bytes a token, a tenth of them with logits
    monkeypatch.setattr(patching, "_free_bytes", lambda: 1 << 40)
    fast = token_budget(model)
    assert fast == patching.MAX_CPU_STATE_NUMBERS // 32 * torch.get_num_threads()
    monkeypatch.setattr(patching, "_free_bytes", lambda: int(2 * 1000 * each))
    assert token_budget(model) == 1000 < fast
    assert token_budget(model, answer_share=1.0) < 1000
    monkeypatch.setattr(patching, "_free_bytes", lambda: 0)
    assert token_budget(model) == 256
