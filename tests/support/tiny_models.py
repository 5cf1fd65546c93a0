"""Models and tokenizers so small that a test makes them in milliseconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
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
