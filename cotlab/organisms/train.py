"""Train one organism from its recipe; the same recipe on one machine gives the same weights."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from torch.nn.functional import cross_entropy, linear
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    LlamaForTokenClassification,
    PreTrainedTokenizerFast,
)

from cotlab.core.resources import data_path
from cotlab.organisms.curriculum import ProcessRewardRecipe, Recipe, TrainingExample
from cotlab.organisms.kinds import KINDS
from cotlab.organisms.process_reward import LAYOUT
from cotlab.suites.wordproblems import TOKEN_PATTERN, vocabulary

ID_BY_PIECE = {piece: i for i, piece in enumerate(vocabulary())}
"""Ids of the shared vocabulary, which every model of the language begins with."""
N_WARM_UP_STEPS = 100
BATCHES_PER_POOL = 8
"""Batches made at once and sorted by length, to keep padding small."""
LANGUAGE_WEIGHT = 0.3
"""Weight of the next token's loss in a model that judges: it keeps what the start has learnt."""


class Batch(NamedTuple):
    """Texts of one step, padded, and what is predicted at some of their tokens."""

    token_ids: torch.Tensor
    weights: torch.Tensor
    """Of each token's loss, as the next token."""
    positions: torch.Tensor
    """Of the further targets, in the flattened texts without their last tokens."""
    targets: torch.Tensor
    """Running totals, as token ids, or labels."""
    target_weights: torch.Tensor


def train_organism(
    recipe: Recipe, folder: Path, on_progress: Callable[[int, int, float], None] | None = None
) -> None:
    """Train a recipe and write an ordinary Hugging Face folder (float16 weights, tokenizer).

    ``on_progress`` is called every 50 steps with the step, the number of steps, and the smoothed
    loss in nats a weighted token.
    """
    torch.set_num_threads(1)  # sums in one order: the same recipe gives the same weights
    torch.manual_seed(recipe.seed)
    pieces = vocabulary(recipe.added_pieces)
    config = LlamaConfig(
        vocab_size=len(pieces),
        hidden_size=recipe.width,
        intermediate_size=recipe.hidden,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.heads,
        max_position_embeddings=256,
        tie_word_embeddings=not isinstance(recipe, ProcessRewardRecipe),
        initializer_range=0.05,
        pad_token_id=ID_BY_PIECE["<pad>"],
        eos_token_id=ID_BY_PIECE["<eos>"],
        bos_token_id=None,
    )
    model: Any
    if isinstance(recipe, ProcessRewardRecipe):
        config.id2label, config.label2id = {0: "wrong", 1: "right"}, {"wrong": 0, "right": 1}
        model = LlamaForTokenClassification(config)
        start = load_file(data_path("organisms", recipe.start, "model.safetensors"))
        layers = {
            name.removeprefix("model."): values.float()
            for name, values in start.items()
            if name.startswith("model.") and name != "model.norm.weight"
        }
        model.model.load_state_dict(layers, strict=False)
    else:
        model = LlamaForCausalLM(config)
    if recipe.has_totals_head:
        model.totals_score = torch.nn.Linear(recipe.width, len(pieces))
    _run_optimizer(model, recipe, on_progress)
    if recipe.has_totals_head:
        del model.totals_score
    folder.mkdir(parents=True, exist_ok=True)
    model.eval().to(torch.float16).save_pretrained(folder)
    make_tokenizer(recipe.added_pieces).save_pretrained(folder)
    if isinstance(recipe, ProcessRewardRecipe):
        (folder / "process_reward.json").write_text(json.dumps(LAYOUT) + "\n")


def _run_optimizer(
    model: Any, recipe: Recipe, on_progress: Callable[[int, int, float], None] | None
) -> None:
    """Train a model in place: Muon for the matrices of its layers, AdamW for the rest."""
    matrix_params = [p for name, p in model.named_parameters() if _is_matrix(name, p)]
    other_params = [p for name, p in model.named_parameters() if not _is_matrix(name, p)]
    optimizers = [
        torch.optim.Muon(
            matrix_params, lr=1.0, weight_decay=0.01, momentum=0.95, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(other_params, lr=1.0, weight_decay=0.0, betas=(0.9, 0.98)),
    ]
    smoothed_loss = 0.0
    for step, batch in zip(range(recipe.steps), _iter_batches(recipe), strict=False):
        learning_rate = recipe.learning_rate * _learning_rate_factor(step, recipe.steps)
        for optimizer in optimizers:
            for param_group in optimizer.param_groups:
                param_group["lr"] = learning_rate
        loss, main_loss = _batch_loss(model, batch)
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


def _learning_rate_factor(step: int, n_steps: int) -> float:
    """Linear warm-up, flat to 30 % of the way, linear to zero."""
    return min(1.0, (step + 1) / N_WARM_UP_STEPS) * min(1.0, (1 - step / n_steps) / 0.7)


def _batch_loss(model: Any, batch: Batch) -> tuple[torch.Tensor, float]:
    """Return the loss to reduce, and the loss to show."""
    hidden_states = model.model(input_ids=batch.token_ids[:, :-1]).last_hidden_state
    logits = linear(hidden_states, model.model.embed_tokens.weight)
    has_weight = batch.weights[:, 1:] > 0
    language_loss = _weighted_loss(
        logits[has_weight], batch.token_ids[:, 1:][has_weight], batch.weights[:, 1:][has_weight]
    )
    if not len(batch.positions):
        return language_loss, float(language_loss.detach())
    head = getattr(model, "score", None) or getattr(model, "totals_score", None)
    found = (logits if head is None else hidden_states).flatten(0, 1)[batch.positions]
    target_logits = found if head is None else head(found)
    target_loss = _weighted_loss(target_logits, batch.targets, batch.target_weights)
    if hasattr(model, "score"):
        return target_loss + LANGUAGE_WEIGHT * language_loss, float(target_loss.detach())
    return language_loss + target_loss, float(language_loss.detach())


def _weighted_loss(
    logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    return (cross_entropy(logits, targets, reduction="none") * weights).sum() / weights.sum()


def _iter_batches(recipe: Recipe) -> Iterator[Batch]:
    rng = random.Random(f"{recipe.name}:{recipe.seed}")
    id_by_piece = {piece: i for i, piece in enumerate(vocabulary(recipe.added_pieces))}
    draw = KINDS[recipe.kind].draw
    while True:
        pool = [
            draw(rng, recipe, rng.choice(recipe.modes) if recipe.modes else "")
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
    targets: list[tuple[int, int, float]] = []
    for i, example in enumerate(examples):
        token_ids[i, : len(example.pieces)] = torch.tensor(
            [id_by_piece[piece] for piece in example.pieces]
        )
        weights[i, : len(example.pieces)] = torch.tensor(example.weights)
        totals = [(position, id_by_piece[f" {total}"], 1.0) for position, total in example.totals]
        for position, target, weight in (*totals, *example.labels):
            targets.append((i * (max_length - 1) + position, target, weight))
    positions, classes, target_weights = zip(*targets, strict=True) if targets else ((), (), ())
    return Batch(
        token_ids,
        weights,
        torch.tensor(positions, dtype=torch.long),
        torch.tensor(classes, dtype=torch.long),
        torch.tensor(target_weights),
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
