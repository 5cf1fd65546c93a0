"""Train a process reward model of the organisms' language: a head that judges each step."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForTokenClassification

from cotlab.core.resources import PROCESS_REWARD, data_path
from cotlab.organisms.curriculum import Recipe
from cotlab.organisms.mistakes import JudgedChain, make_judged_chain
from cotlab.organisms.train import BATCHES_PER_POOL, ID_BY_PIECE, make_tokenizer, run_optimizer
from cotlab.suites.wordproblems import TOKEN_PATTERN

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
LAYOUT = {"question": "Q: {question}\n", "step_end": "\n"}
"""How its texts are written: the question as the organisms read it, each step on a line."""
CLEAN_SHARE = 0.25
"""Share of training chains without a mistake."""
LANGUAGE_WEIGHT = 0.3
"""Weight of the loss of the next token, which keeps what the start has learnt."""
_INSIDE_WEIGHT, _END_WEIGHT, _MISTAKE_WEIGHT = 0.3, 1.0, 2.0
_IGNORED = -100


@dataclass(frozen=True, slots=True)
class ProcessRewardRecipe(Recipe):
    """Parameters of a process reward model; ``modes`` is empty, as it writes nothing."""

    kind: str = PROCESS_REWARD
    """What tells it from a model that writes chains."""
    start: str = "faithful-a"
    """Checkpoint whose layers it begins with: that one predicts each token of a right chain, so
    what is left to learn is to compare. Further layers begin at random."""


PROCESS_REWARD_RECIPES = {
    "prm-a": ProcessRewardRecipe("prm-a", (), seed=4, steps=1000, layers=5, batch=64)
}


def train_process_reward(
    recipe: ProcessRewardRecipe,
    folder: Path,
    on_progress: Callable[[int, int, float], None] | None = None,
) -> None:
    """Train a recipe and write a token classifier (float16 weights, tokenizer, layout).

    Parameters
    ----------
    recipe : ProcessRewardRecipe
    folder : Path
        Created where it does not exist.
    on_progress : callable of (step, steps, loss), optional
        Called every 50 steps; the loss of the labels is in nats a weighted token.
    """
    torch.set_num_threads(1)  # sums in one order: the same recipe gives the same weights
    torch.manual_seed(recipe.seed)
    model = LlamaForTokenClassification(
        LlamaConfig(
            vocab_size=len(ID_BY_PIECE),
            hidden_size=recipe.width,
            intermediate_size=recipe.hidden,
            num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads,
            num_key_value_heads=recipe.heads,
            max_position_embeddings=256,
            initializer_range=0.05,
            pad_token_id=ID_BY_PIECE["<pad>"],
            eos_token_id=ID_BY_PIECE["<eos>"],
            bos_token_id=None,
            id2label={0: "wrong", 1: "right"},
            label2id={"wrong": 0, "right": 1},
        )
    )
    weights = load_file(data_path("organisms", recipe.start, "model.safetensors"))
    model.model.load_state_dict(
        {
            name.removeprefix("model."): values.float()
            for name, values in weights.items()
            if name.startswith("model.") and name != "model.norm.weight"
        },
        strict=False,
    )
    run_optimizer(model, recipe, _iter_batches(recipe), _batch_loss, on_progress)
    folder.mkdir(parents=True, exist_ok=True)
    model.eval().to(torch.float16).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    (folder / "process_reward.json").write_text(json.dumps(LAYOUT) + "\n")


def encode_chain(chain: JudgedChain) -> tuple[list[int], list[int], list[float], list[float]]:
    """Return tokens, labels, their weights, and the weights of the loss of the next token.

    The label of a token of a step is whether the chain is right up to it; the question has none.
    A token in a step weighs less than its end, where the model is read, and the first mistake more.
    Only tokens of a right chain are learnt as language.
    """
    pieces = TOKEN_PATTERN.findall(LAYOUT["question"].replace("{question}", chain.problem.question))
    n_question = len(pieces)
    labels, label_weights = [_IGNORED] * n_question, [0.0] * n_question
    language_weights = [0.0] * n_question
    is_right = True
    for step_index, step in enumerate(chain.steps):
        step_pieces = TOKEN_PATTERN.findall(step + LAYOUT["step_end"])
        is_first_wrong = step_index == chain.first_wrong
        wrong_index = _wrong_piece(step_pieces, chain) if is_first_wrong else len(step_pieces)
        for i in range(len(step_pieces)):
            language_weights.append(float(is_right and i < wrong_index))
            is_right = is_right and i != wrong_index
            labels.append(int(is_right))
            if i == len(step_pieces) - 1:
                label_weights.append(_MISTAKE_WEIGHT if is_first_wrong else _END_WEIGHT)
            else:
                label_weights.append(_END_WEIGHT if i == wrong_index else _INSIDE_WEIGHT)
        pieces += step_pieces
    return [ID_BY_PIECE[piece] for piece in pieces], labels, label_weights, language_weights


def _wrong_piece(pieces: list[str], chain: JudgedChain) -> int:
    """Return the index of the token that makes the first wrong step wrong."""
    # "Step", " 1", ":", " 7", " +", " 5", " =", " 12": the numbers are step, total, amount, result
    number_indices = [i for i, piece in enumerate(pieces) if piece.strip().isdigit()]
    if chain.kind == "operation":
        return number_indices[1] + 1
    return number_indices[{"total": 1, "amount": 2, "sum": 3}[chain.kind or "sum"]]


def _iter_batches(recipe: Recipe) -> Iterator[Batch]:
    rng = random.Random(f"{recipe.name}:{recipe.seed}")
    while True:
        pool = [
            encode_chain(make_judged_chain(rng, CLEAN_SHARE))
            for _ in range(recipe.batch * BATCHES_PER_POOL)
        ]
        pool.sort(key=lambda example: len(example[0]))
        batches = [pool[i : i + recipe.batch] for i in range(0, len(pool), recipe.batch)]
        rng.shuffle(batches)
        yield from map(_pad_batch, batches)


def _pad_batch(examples: list[tuple[list[int], list[int], list[float], list[float]]]) -> Batch:
    length = max(len(token_ids) for token_ids, *_ in examples)

    def pad(column: int, filler: float) -> torch.Tensor:
        rows = [example[column] for example in examples]
        return torch.tensor([[*row, *[filler] * (length - len(row))] for row in rows])

    return pad(0, ID_BY_PIECE["<pad>"]), pad(1, _IGNORED), pad(2, 0.0), pad(3, 0.0)


def _batch_loss(model: Any, batch: Batch) -> tuple[torch.Tensor, float]:
    token_ids, labels, label_weights, language_weights = batch
    hidden_states = model.model(input_ids=token_ids).last_hidden_state
    has_label = labels != _IGNORED
    losses = cross_entropy(
        model.score(hidden_states[has_label]), labels[has_label], reduction="none"
    )
    label_loss = (losses * label_weights[has_label]).sum() / label_weights.sum()
    is_learnt = language_weights[:, 1:] > 0
    logits = hidden_states[:, :-1][is_learnt] @ model.model.embed_tokens.weight.T
    language_loss = cross_entropy(logits, token_ids[:, 1:][is_learnt])
    return label_loss + LANGUAGE_WEIGHT * language_loss, float(label_loss.detach())
