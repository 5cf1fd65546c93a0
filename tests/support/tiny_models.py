"""Models and tokenizers so small that a test makes them in milliseconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaForTokenClassification,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

TEXTS = (
    "the cat sat on the mat.",
    "So the answer is 12.\n",
    "Q: how many? three, four; five!\nSo it is.",
    "naïve café 🙂 ¿qué?",
)
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system turns') }}{%"
    " endif %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt"
    " %}<assistant>{% endif %}"
)


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """GPT-2's kind: bytes and their merges, a space belongs to the word after it, no text is
    unknown."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(vocab_size=320, special_tokens=["<end>"], initial_alphabet=alphabet),
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")


def metaspace_tokenizer() -> PreTrainedTokenizerFast:
    """Llama's kind: its decoder drops the space before the first word."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(vocab_size=200, special_tokens=["<unk>", "<end>"], show_progress=False),
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>", unk_token="<unk>")


def save(folder: Path, tokenizer: Any, kind: str) -> Path:
    """A random model so small that it takes milliseconds, with weights wide enough for its choices
    to be clear."""
    torch.manual_seed(0)
    size = {
        "vocab_size": len(tokenizer),
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None,
        "pad_token_id": None,
    }
    model: Any
    if kind == "gpt2":
        model = GPT2LMHeadModel(
            GPT2Config(
                n_positions=96, n_embd=32, n_layer=2, n_head=2, initializer_range=0.2, **size
            )
        )
    else:
        model = LlamaForCausalLM(
            LlamaConfig(
                hidden_size=32,
                intermediate_size=48,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=2,
                max_position_embeddings=200,
                initializer_range=0.2,
                **size,
            )
        )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


PROCESS_REWARD_KINDS = ("head", "token", "qwen")
"""The kinds of process reward model that are published."""


def save_process_reward(
    folder: Path, kind: str, *, tokens: tuple[str, ...] = ("ки", "+", "-"), n_labels: int = 2
) -> Path:
    """A random process reward model of a kind, saved with the names that the published ones have.

    ``tokens`` are texts that are one token after a space.
    """
    tokenizer = byte_tokenizer()
    tokenizer.add_tokens([AddedToken(f" {text}", lstrip=False) for text in tokens])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<extra_0>"]})
    tokenizer.chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"
    torch.manual_seed(0)
    size = {
        "vocab_size": len(tokenizer) + 8,  # a tokenizer of Qwen's kind adds one when it is read
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 240,
        "initializer_range": 0.2,
        "num_labels": n_labels,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None,
    }
    model: Any
    if kind == "head":
        model = LlamaForTokenClassification(LlamaConfig(**size))
    elif kind == "token":
        model = LlamaForCausalLM(LlamaConfig(**size))
    else:
        model = Qwen2ForCausalLM(Qwen2Config(**size))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if kind == "qwen":
        _add_qwen_head(folder, size["hidden_size"], n_labels)
    return folder


def _add_qwen_head(folder: Path, width: int, n_labels: int) -> None:
    """Replace the language head by two linear layers, as in the published safetensors."""
    weights = load_file(folder / "model.safetensors")
    weights.pop("lm_head.weight", None)
    for name, shape in (("0", (width, width)), ("2", (n_labels, width))):
        weights[f"score.{name}.weight"] = torch.randn(shape) / width**0.5
        weights[f"score.{name}.bias"] = torch.randn(shape[0])
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    path = folder / "config.json"
    config = json.loads(path.read_text()) | {"architectures": ["Qwen2ForProcessRewardModel"]}
    path.write_text(json.dumps(config))
