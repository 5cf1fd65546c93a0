"""Rows packed for speed give the numbers that each would give alone, by hooks, on the library's own
model."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from cotlab.providers.local.backend import PatchRow
from cotlab.providers.local.batching import single_torch_thread, use_reproducible_products
from cotlab.providers.local.fast import FastBackend
from cotlab.providers.local.hooks import TransformersHookBackend
from cotlab.providers.local.patching import map_in_threads, pack_rows

LAYERS, TOKENS = 5, 40
SHAPE: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.3,
}
MODELS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SHAPE)),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SHAPE)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SHAPE, head_dim=16)),
}


@pytest.fixture(autouse=True)
def in_one_thread() -> Iterator[None]:
    with single_torch_thread():
        yield


def rows_of_every_kind(n_answer: int) -> list[PatchRow]:
    """Every contiguous span, patches that begin and end anywhere, and states from other places than
    they are put to."""
    rng, rows = random.Random(n_answer), [PatchRow((), (), ())]
    spans = [tuple(range(a, b + 1)) for a in range(LAYERS) for b in range(a, LAYERS)] + [(0, 2, 4)]
    for span in spans * 4:
        at = tuple(
            sorted(
                rng.sample(range(rng.choice([1, 8, 20]), TOKENS - n_answer), rng.randrange(1, 14))
            )
        )
        rows.append(PatchRow(span, at, tuple(rng.randrange(TOKENS) for _ in at)))
    every = tuple(range(LAYERS))
    rows.append(PatchRow(every, (0, 5), (3, 3)))
    rows.append(PatchRow(every, tuple(range(TOKENS - n_answer)), tuple(range(TOKENS - n_answer))))
    rng.shuffle(rows)
    return rows


@pytest.mark.parametrize("n_answer", (1, 3))
@pytest.mark.parametrize("name", MODELS)
def test_packed_rows_are_each_row_alone(name: str, n_answer: int) -> None:
    torch.manual_seed(5)
    model, rng = MODELS[name]().eval(), random.Random(4)
    with (
        torch.no_grad()
    ):  # norms and biases begin as ones and zeros, which would hide that they are left out
        for key, weights in model.named_parameters():
            if "norm" in key or "bias" in key:
                weights.add_(torch.randn_like(weights) * 0.3)
    ids, other = ([rng.randrange(60) for _ in range(TOKENS)] for _ in range(2))
    fast = FastBackend(model)
    hooks = TransformersHookBackend(model)
    rows = rows_of_every_kind(n_answer)
    clean, bank = hooks.residuals(ids), hooks.residuals(other)
    wanted = [hooks.patched_log_probs(ids, n_answer, clean, bank, [row])[0] for row in rows]
    for budget in (1, 200, 10_000):
        chosen = list(pack_rows(rows, TOKENS, n_answer, budget, fast))
        assert sorted(k for pack in chosen for k in pack) == list(range(len(rows)))
        for workers in (1, 2):

            def numbers(pack: list[int]) -> list[float]:
                return fast.patched_log_probs(ids, n_answer, clean, bank, [rows[k] for k in pack])

            found = map_in_threads(numbers, chosen, workers)
            for pack, told in zip(chosen, found, strict=True):
                assert told == pytest.approx([wanted[k] for k in pack], abs=1e-4)


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_in_float64_packed_rows_are_each_row_alone_to_the_twelfth_digit(name: str) -> None:
    """So what tells the two ways apart in float32 is rounding, and nothing else."""
    torch.manual_seed(5)
    model, rng = MODELS[name]().eval().double(), random.Random(4)
    for module in model.modules():
        if hasattr(
            module, "variance_epsilon"
        ):  # the library's norms go through float32 whatever they are given
            module.forward = partial(
                F.rms_norm,
                normalized_shape=module.weight.shape,
                weight=module.weight,
                eps=module.variance_epsilon,
            )
    ids, other = ([rng.randrange(60) for _ in range(TOKENS)] for _ in range(2))
    fast, hooks, rows = FastBackend(model), TransformersHookBackend(model), rows_of_every_kind(2)
    clean, bank = hooks.residuals(ids), hooks.residuals(other)
    assert torch.allclose(fast.residuals(ids), clean, rtol=0, atol=1e-12)
    for pack in pack_rows(rows, TOKENS, 2, 500, fast):
        wanted = [hooks.patched_log_probs(ids, 2, clean, bank, [rows[k]])[0] for k in pack]
        assert fast.patched_log_probs(
            ids, 2, clean, bank, [rows[k] for k in pack]
        ) == pytest.approx(wanted, rel=0, abs=1e-11)


def test_a_pack_keeps_its_budget_and_its_order() -> None:
    fast, rows = FastBackend(MODELS["llama"]()), rows_of_every_kind(1)
    for budget in (60, 500):
        for pack in pack_rows(rows, TOKENS, 1, budget, fast):
            own = [rows[k] for k in pack]
            shapes = {fast.pack_shape(row, TOKENS, 1) for row in own}
            assert len(pack) == 1 or len(pack) * max(s.row_cost for s in shapes) <= budget
            assert all(a.first_layer <= b.first_layer for a, b in pairwise(own))
            assert len(shapes) == 1


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_a_pack_keep_their_bits(name: str) -> None:
    use_reproducible_products()
    torch.manual_seed(5)
    fast, rng = FastBackend(MODELS[name]().eval()), random.Random(4)
    for n_tokens in (TOKENS, 81, 190):
        ids, other = ([rng.randrange(60) for _ in range(n_tokens)] for _ in range(2))
        clean, bank = fast.residuals(ids), fast.residuals(other)
        rows = rows_of_every_kind(2)
        for start in range(0, n_tokens - 12, 7):
            at = tuple(range(start, rng.randrange(start + 1, n_tokens - 4)))
            rows.append(PatchRow(tuple(range(LAYERS)), at, at))
        for pack in pack_rows(rows, n_tokens, 2, 10_000, fast):
            alone = [fast.patched_log_probs(ids, 2, clean, bank, [rows[k]])[0] for k in pack]
            assert fast.patched_log_probs(ids, 2, clean, bank, [rows[k] for k in pack]) == alone
