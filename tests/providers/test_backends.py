"""Every way of patching gives the library's own numbers, and the same as every other way."""

from __future__ import annotations

import importlib.util
import random
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, trainers
from transformers import (
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    RwkvConfig,
    RwkvForCausalLM,
    XLNetConfig,
    XLNetLMHeadModel,
)

from cotlab.core.errors import ConfigError
from cotlab.providers.local.backend import Backend, PatchRow
from cotlab.providers.local.fast import FastBackend
from cotlab.providers.local.hooks import TransformerLensBackend, TransformersHookBackend
from cotlab.providers.local.load import LoadedModel


def byte_tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.train_from_iterator(
        ["a b c"], trainers.BpeTrainer(vocab_size=60, special_tokens=["<end>"], show_progress=False)
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")


LAYERS, TOKENS, ANSWER = 3, 24, 2
WIDE: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.3,
}
KINDS: dict[str, Any] = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**WIDE)),
    "llama3 rope": lambda: LlamaForCausalLM(
        LlamaConfig(
            **WIDE,
            rope_parameters={
                "rope_type": "llama3",
                "rope_theta": 1e4,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 16,
            },
        )
    ),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**WIDE)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**WIDE, head_dim=16)),
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(
            vocab_size=60,
            n_positions=64,
            n_embd=32,
            n_layer=LAYERS,
            n_head=4,
            initializer_range=0.3,
        )
    ),
    "gpt-neox": lambda: GPTNeoXForCausalLM(
        GPTNeoXConfig(
            vocab_size=60,
            hidden_size=32,
            intermediate_size=48,
            num_attention_heads=4,
            num_hidden_layers=LAYERS,
            initializer_range=0.3,
        )
    ),
    "gemma3 with images": lambda: Gemma3ForConditionalGeneration(
        Gemma3Config(
            text_config={**WIDE, "head_dim": 8, "sliding_window": 16},
            mm_tokens_per_image=4,
            image_token_index=59,
            boi_token_index=57,
            eoi_token_index=58,
            vision_config={
                "hidden_size": 16,
                "intermediate_size": 16,
                "num_hidden_layers": LAYERS,
                "num_attention_heads": 2,
                "image_size": 16,
                "patch_size": 8,
            },
        )
    ),
}
ALWAYS = ("llama", "qwen3", "gpt2")
"""The kinds of every test run; the others in ``make soak``."""


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, marks=() if kind in ALWAYS else pytest.mark.soak) for kind in KINDS],
)
def model(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(3)
    return KINDS[request.param]().eval()


def ways(model: Any) -> list[Backend]:
    return [
        TransformersHookBackend(model),
        *([FastBackend(model)] if FastBackend.supports_model(model) else []),
        *lens(model),
    ]


def lens(model: Any) -> list[Backend]:
    """TransformerLens where it is installed and takes the model."""
    if (
        importlib.util.find_spec("transformer_lens") is None
        or model.config.get_text_config() is not model.config
    ):
        return []
    return [TransformerLensBackend(LoadedModel(model, byte_tokenizer(), "", "cpu"))]


def texts() -> tuple[list[int], list[int]]:
    rng = random.Random(1)
    ids, other = ([rng.randrange(60) for _ in range(TOKENS)] for _ in range(2))
    return ids, other[:-ANSWER] + ids[-ANSWER:]


def own_logp(model: Any, ids: list[int]) -> float:
    with torch.inference_mode():
        logp = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return sum(float(logp[t - 1, ids[t]]) for t in range(TOKENS - ANSWER, TOKENS))


def mixed_rows() -> list[PatchRow]:
    rng, rows = random.Random(2), [PatchRow((), (), ())]
    for _ in range(30):
        first = rng.randrange(LAYERS)
        at = tuple(sorted(rng.sample(range(TOKENS - ANSWER), rng.randrange(1, 12))))
        take = tuple(rng.randrange(TOKENS) for _ in at)
        rows.append(PatchRow(tuple(range(first, rng.randrange(first, LAYERS) + 1)), at, take))
    return sorted(rows, key=lambda row: row.first_layer)


def test_the_fast_way_takes_what_it_can_and_no_other() -> None:
    assert [name for name, make in KINDS.items() if FastBackend.supports_model(make())] == [
        "llama",
        "llama3 rope",
        "qwen2",
        "qwen3",
    ]
    sliding = Qwen2ForCausalLM(Qwen2Config(**WIDE, use_sliding_window=True))
    assert not FastBackend.supports_model(sliding)


def test_residuals_are_the_inputs_of_the_layers(model: Any) -> None:
    ids, _ = texts()
    with torch.inference_mode():
        wanted = torch.cat(
            model(torch.tensor([ids]), output_hidden_states=True).hidden_states[:LAYERS]
        )
    for way in ways(model):
        assert torch.allclose(way.residuals(ids), wanted, atol=1e-4)


def test_all_ways_agree_and_a_row_without_a_patch_is_the_model_s_own(model: Any) -> None:
    ids, other = texts()
    rows, found = mixed_rows(), []
    for way in ways(model):
        clean, bank = way.residuals(ids), way.residuals(other)
        found.append(way.patched_log_probs(ids, ANSWER, clean, bank, rows))
        assert found[-1][0] == pytest.approx(own_logp(model, ids), abs=1e-4)
        alone = [way.patched_log_probs(ids, ANSWER, clean, bank, [row])[0] for row in rows]
        assert alone == pytest.approx(found[-1], abs=1e-4)  # a batch's make-up changes no number
    for numbers in found[1:]:
        assert numbers == pytest.approx(found[0], abs=1e-4)
    assert len({round(number, 3) for number in found[0]}) > 15  # the patches do something


def test_a_full_patch_is_the_source_s_run_and_the_own_states_change_nothing(model: Any) -> None:
    ids, other = texts()
    every, whole = tuple(range(LAYERS)), tuple(range(TOKENS - ANSWER))
    for way in ways(model):
        clean, bank = way.residuals(ids), way.residuals(other)
        full = way.patched_log_probs(
            ids, ANSWER, clean, bank, [PatchRow(every, whole, whole), PatchRow((0,), whole, whole)]
        )
        assert full == pytest.approx([own_logp(model, other)] * 2, abs=1e-4)
        (same,) = way.patched_log_probs(ids, ANSWER, clean, clean, [PatchRow((), whole, whole)])
        (identity,) = way.patched_log_probs(
            ids, ANSWER, clean, clean, [PatchRow(every, whole, whole)]
        )
        assert identity == same
        late = torch.cat([clean[1:], clean[-1:]])  # each layer's output for its input: off by one
        (wrong,) = way.patched_log_probs(ids, ANSWER, clean, late, [PatchRow(every, whole, whole)])
        assert abs(wrong - same) > 1e-3


def test_hooks_leave_the_model_as_it_was(model: Any) -> None:
    ids, other = texts()
    before = own_logp(model, ids)
    way = TransformersHookBackend(model)
    with pytest.raises(IndexError):
        way.patched_log_probs(
            ids,
            ANSWER,
            way.residuals(ids),
            way.residuals(other),
            [PatchRow((2,), (TOKENS + 5,), (0,))],
        )
    assert own_logp(model, ids) == before
    assert not any("forward" in block.__dict__ or block._forward_pre_hooks for block in way._blocks)


def test_a_model_without_a_list_of_blocks_is_refused() -> None:
    model = KINDS["gpt2"]()
    model.config.n_layer = 7
    with pytest.raises(ConfigError, match="No list of 7 blocks was found in a gpt2 model"):
        TransformersHookBackend(model)


def test_a_block_that_is_passed_by_returns_as_many_things_as_it_would() -> None:
    """RWKV's return their states, what they remember, and their attention."""
    torch.manual_seed(3)
    config = RwkvConfig(
        vocab_size=60, hidden_size=32, attention_hidden_size=32, num_hidden_layers=LAYERS
    )
    model = RwkvForCausalLM(config).eval()
    (ids, other), way = texts(), TransformersHookBackend(model)
    late = PatchRow((LAYERS - 1,), tuple(range(TOKENS - ANSWER)), tuple(range(TOKENS - ANSWER)))
    none, moved = way.patched_log_probs(
        ids, ANSWER, way.residuals(ids), way.residuals(other), [PatchRow((), (), ()), late]
    )
    assert none == pytest.approx(own_logp(model, ids), abs=1e-4) and abs(moved - none) > 1e-4


def test_a_model_whose_blocks_get_something_else_is_refused() -> None:
    """XLNet's are given the tokens first and the batch second."""
    model = XLNetLMHeadModel(
        XLNetConfig(vocab_size=60, d_model=32, n_layer=LAYERS, n_head=4, d_inner=48)
    ).eval()
    with pytest.raises(
        ConfigError, match="blocks of a xlnet model do not each get one state a token"
    ):
        TransformersHookBackend(model).residuals(texts()[0])


def test_a_model_of_text_and_images_is_patched_in_its_text_decoder() -> None:
    """Its image encoder has a list of as many blocks, which comes first."""
    model = KINDS["gemma3 with images"]()
    assert (
        not hasattr(model.config, "num_hidden_layers")
        and len(model.model.vision_tower.encoder.layers) == LAYERS
    )
    assert TransformersHookBackend(model)._blocks == list(model.model.language_model.layers)
