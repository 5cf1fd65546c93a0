"""Train one organism from its recipe; the same recipe on one machine gives the same weights."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from cotlab.organisms.curriculum import Example, Recipe, make_example
from cotlab.suites.wordproblems import PIECE, vocabulary

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
IDS = {piece: i for i, piece in enumerate(vocabulary())}
WARM_UP = 100
POOL = 8
"""Batches drawn at once and sorted by length, to keep padding small."""


def train_organism(
    recipe: Recipe, folder: Path, progress: Callable[[int, int, float], None] | None = None
) -> None:
    """Train a recipe and write an ordinary Hugging Face folder (float16 weights, tokenizer).

    Parameters
    ----------
    recipe : Recipe
    folder : Path
        Created where it does not exist.
    progress : callable of (step, steps, loss), optional
        Called every 50 steps; the loss is in nats a weighted token.
    """
    torch.set_num_threads(1)  # sums in one order: the same recipe gives the same weights
    torch.manual_seed(recipe.seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(IDS),
            hidden_size=recipe.width,
            intermediate_size=recipe.hidden,
            num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads,
            num_key_value_heads=recipe.heads,
            max_position_embeddings=256,
            tie_word_embeddings=True,
            initializer_range=0.05,
            pad_token_id=IDS["<pad>"],
            eos_token_id=IDS["<eos>"],
            bos_token_id=None,
        )
    )
    hidden = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    optimizers = [
        torch.optim.Muon(
            hidden, lr=1.0, weight_decay=0.01, momentum=0.95, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(others, lr=1.0, weight_decay=0.0, betas=(0.9, 0.98)),
    ]
    smooth = 0.0
    for step, batch in zip(range(recipe.steps), _batches(recipe), strict=False):
        rate = recipe.learning_rate * _schedule(step, recipe.steps)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
        loss, main = _loss(model, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        smooth = main if step == 0 else 0.98 * smooth + 0.02 * main
        if progress and step % 50 == 49:
            progress(step + 1, recipe.steps, smooth)
    folder.mkdir(parents=True, exist_ok=True)
    model.eval().to(torch.float16).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)


def describe_recipe(recipe: Recipe) -> dict[str, Any]:
    """Return a recipe as JSON values."""
    return asdict(recipe) | {"modes": list(recipe.modes)}


def _schedule(step: int, steps: int) -> float:
    """Linear warm-up, flat to 30 % of the way, linear to zero."""
    return min(1.0, (step + 1) / WARM_UP) * min(1.0, (1 - step / steps) / 0.7)


def _loss(model: LlamaForCausalLM, batch: Batch) -> tuple[torch.Tensor, float]:
    ids, weights, at, totals = batch
    logits = model(input_ids=ids[:, :-1]).logits
    used = weights[:, 1:] > 0
    each = cross_entropy(logits[used], ids[:, 1:][used], reduction="none")
    loss = (each * weights[:, 1:][used]).sum() / weights[:, 1:][used].sum()
    main = float(loss.detach())
    if len(at):
        loss = loss + cross_entropy(logits.reshape(-1, logits.shape[-1])[at], totals)
    return loss, main


def _batches(recipe: Recipe) -> Iterator[Batch]:
    rng = random.Random(f"{recipe.name}:{recipe.seed}")
    while True:
        pool = [
            make_example(
                rng,
                mode := rng.choice(recipe.modes),
                prefix=recipe.prefix,
                without_chain=0.5 if mode == "r0" and recipe.prefix else recipe.without_chain,
            )
            for _ in range(recipe.batch * POOL)
        ]
        pool.sort(key=lambda example: len(example.pieces))
        batches = [pool[i : i + recipe.batch] for i in range(0, len(pool), recipe.batch)]
        rng.shuffle(batches)
        yield from map(_pack, batches)


def _pack(examples: list[Example]) -> Batch:
    longest = max(len(e.pieces) for e in examples)
    ids = torch.zeros(len(examples), longest, dtype=torch.long)
    weights = torch.zeros(len(examples), longest)
    at, totals = [], []
    for i, example in enumerate(examples):
        ids[i, : len(example.pieces)] = torch.tensor([IDS[piece] for piece in example.pieces])
        weights[i, : len(example.pieces)] = torch.tensor(example.weights)
        for position, total in example.totals:
            at.append(i * (longest - 1) + position)
            totals.append(IDS[f" {total}"])
    return ids, weights, torch.tensor(at, dtype=torch.long), torch.tensor(totals, dtype=torch.long)


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Return the tokenizer of the organisms' language: one piece of the language, one token.

    It is lossless on texts of the language; any other piece becomes ``<unk>``, which the local
    provider refuses.
    """
    pieces = vocabulary()
    tokenizer = Tokenizer(
        models.WordLevel({piece: i for i, piece in enumerate(pieces)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PIECE.pattern), "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(
        [AddedToken(p, special=True, normalized=False) for p in pieces if p.startswith("<")]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<eos>",
        pad_token="<pad>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )
