"""Train one organism from its recipe; the same recipe on one machine gives the same weights."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from cotlab.organisms.curriculum import Recipe, TrainingExample
from cotlab.organisms.kinds import draw_example
from cotlab.suites.wordproblems import TOKEN_PATTERN, vocabulary

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
AnyBatch = TypeVar("AnyBatch")
ID_BY_PIECE = {piece: i for i, piece in enumerate(vocabulary())}
"""Ids of the shared vocabulary, which every model of the language begins with."""
N_WARM_UP_STEPS = 100
BATCHES_PER_POOL = 8
"""Batches made at once and sorted by length, to keep padding small."""


def train_organism(
    recipe: Recipe, folder: Path, on_progress: Callable[[int, int, float], None] | None = None
) -> None:
    """Train a recipe and write an ordinary Hugging Face folder (float16 weights, tokenizer).

    Parameters
    ----------
    recipe : Recipe
    folder : Path
        Created where it does not exist.
    on_progress : callable of (step, steps, loss), optional
        Called every 50 steps; the loss is in nats a weighted token.
    """
    torch.set_num_threads(1)  # sums in one order: the same recipe gives the same weights
    torch.manual_seed(recipe.seed)
    pieces = vocabulary(recipe.added_pieces)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(pieces),
            hidden_size=recipe.width,
            intermediate_size=recipe.hidden,
            num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads,
            num_key_value_heads=recipe.heads,
            max_position_embeddings=256,
            tie_word_embeddings=True,
            initializer_range=0.05,
            pad_token_id=ID_BY_PIECE["<pad>"],
            eos_token_id=ID_BY_PIECE["<eos>"],
            bos_token_id=None,
        )
    )
    if recipe.has_totals_head:
        model.totals_score = torch.nn.Linear(recipe.width, len(pieces))
    run_optimizer(model, recipe, _iter_batches(recipe), _batch_loss, on_progress)
    if recipe.has_totals_head:
        del model.totals_score
    folder.mkdir(parents=True, exist_ok=True)
    model.eval().to(torch.float16).save_pretrained(folder)
    make_tokenizer(recipe.added_pieces).save_pretrained(folder)


def run_optimizer(
    model: Any,
    recipe: Recipe,
    batches: Iterator[AnyBatch],
    batch_loss: Callable[[Any, AnyBatch], tuple[torch.Tensor, float]],
    on_progress: Callable[[int, int, float], None] | None = None,
) -> None:
    """Train a model in place: Muon for the matrices of its layers, AdamW for the rest.

    Parameters
    ----------
    model : transformers model
    recipe : Recipe
    batches : iterator of batches
        At least ``recipe.steps``.
    batch_loss : callable of (model, batch)
        Returns the loss to reduce, and the loss to show, in nats.
    on_progress : callable of (step, steps, loss), optional
        Called every 50 steps with the smoothed loss to show.
    """
    matrix_params = [p for name, p in model.named_parameters() if _is_matrix(name, p)]
    other_params = [p for name, p in model.named_parameters() if not _is_matrix(name, p)]
    optimizers = [
        torch.optim.Muon(
            matrix_params, lr=1.0, weight_decay=0.01, momentum=0.95, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(other_params, lr=1.0, weight_decay=0.0, betas=(0.9, 0.98)),
    ]
    smoothed_loss = 0.0
    for step, batch in zip(range(recipe.steps), batches, strict=False):
        learning_rate = recipe.learning_rate * _learning_rate_factor(step, recipe.steps)
        for optimizer in optimizers:
            for param_group in optimizer.param_groups:
                param_group["lr"] = learning_rate
        loss, main_loss = batch_loss(model, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        smoothed_loss = main_loss if step == 0 else 0.98 * smoothed_loss + 0.02 * main_loss
        if on_progress and step % 50 == 49:
            on_progress(step + 1, recipe.steps, smoothed_loss)


def _is_matrix(name: str, params: torch.Tensor) -> bool:
    """Return whether weights are a matrix of a layer: not of the embedding, nor of a head."""
    return params.ndim == 2 and "embed" not in name and "score" not in name


def describe_recipe(recipe: Recipe) -> dict[str, Any]:
    """Return a recipe as JSON values."""
    return asdict(recipe) | {
        "modes": list(recipe.modes),
        "added_pieces": list(recipe.added_pieces),
    }


def _learning_rate_factor(step: int, n_steps: int) -> float:
    """Linear warm-up, flat to 30 % of the way, linear to zero."""
    return min(1.0, (step + 1) / N_WARM_UP_STEPS) * min(1.0, (1 - step / n_steps) / 0.7)


def _batch_loss(model: LlamaForCausalLM, batch: Batch) -> tuple[torch.Tensor, float]:
    token_ids, weights, total_positions, totals = batch
    hidden_states = model.model(input_ids=token_ids[:, :-1]).last_hidden_state
    logits = model.lm_head(hidden_states)
    has_weight = weights[:, 1:] > 0
    token_losses = cross_entropy(logits[has_weight], token_ids[:, 1:][has_weight], reduction="none")
    loss = (token_losses * weights[:, 1:][has_weight]).sum() / weights[:, 1:][has_weight].sum()
    main_loss = float(loss.detach())
    if len(total_positions):
        if hasattr(model, "totals_score"):
            width = hidden_states.shape[-1]
            total_logits = model.totals_score(hidden_states.reshape(-1, width)[total_positions])
        else:
            total_logits = logits.reshape(-1, logits.shape[-1])[total_positions]
        loss = loss + cross_entropy(total_logits, totals)
    return loss, main_loss


def _iter_batches(recipe: Recipe) -> Iterator[Batch]:
    rng = random.Random(f"{recipe.name}:{recipe.seed}")
    id_by_piece = {piece: i for i, piece in enumerate(vocabulary(recipe.added_pieces))}
    while True:
        pool = [
            draw_example(rng, recipe, rng.choice(recipe.modes))
            for _ in range(recipe.batch * BATCHES_PER_POOL)
        ]
        pool.sort(key=lambda example: len(example.pieces))
        batches = [pool[i : i + recipe.batch] for i in range(0, len(pool), recipe.batch)]
        rng.shuffle(batches)
        for batch in batches:
            yield _pad_batch(batch, id_by_piece)


def _pad_batch(examples: list[TrainingExample], id_by_piece: Mapping[str, int]) -> Batch:
    max_length = max(len(e.pieces) for e in examples)
    token_ids = torch.zeros(len(examples), max_length, dtype=torch.long)
    weights = torch.zeros(len(examples), max_length)
    total_positions, totals = [], []
    for i, example in enumerate(examples):
        token_ids[i, : len(example.pieces)] = torch.tensor(
            [id_by_piece[piece] for piece in example.pieces]
        )
        weights[i, : len(example.pieces)] = torch.tensor(example.weights)
        for position, total in example.totals:
            total_positions.append(i * (max_length - 1) + position)
            totals.append(id_by_piece[f" {total}"])
    return (
        token_ids,
        weights,
        torch.tensor(total_positions, dtype=torch.long),
        torch.tensor(totals, dtype=torch.long),
    )


def make_tokenizer(added_pieces: Sequence[str] = ()) -> PreTrainedTokenizerFast:
    """Return the tokenizer of the organisms' language: one piece of the language, one token.

    ``added_pieces`` are a recipe's further tokens.

    It is lossless on texts of the language; any other piece becomes ``<unk>``, which the local
    provider refuses.
    """
    pieces = vocabulary(added_pieces)
    tokenizer = Tokenizer(
        models.WordLevel({piece: i for i, piece in enumerate(pieces)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(TOKEN_PATTERN.pattern), "isolated")
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
