"""Patching by hooks on the library's own model: any causal language model whose blocks stand in one list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import torch
from torch import nn

from cotlab.core.errors import ConfigError
from cotlab.providers.local.backend import PatchRow, wide

Change = Callable[[int, torch.Tensor], torch.Tensor]


class Hooks:
    """A ``Backend`` for any architecture. Rows with one first layer run together, and no block before it is computed."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._blocks = _blocks(model)
        self.layers = len(self._blocks)
        self._tuples: dict[int, int] = {}
        """How many things each block returns in a tuple; 0 where it returns its states alone."""

    @torch.inference_mode()
    def residuals(self, ids: Sequence[int]) -> torch.Tensor:
        states: list[torch.Tensor] = []

        def keep(layer: int, state: torch.Tensor) -> torch.Tensor:
            states.append(state[0].clone())
            return state

        with self._changing(keep, 0):
            self._run(ids, 1, 1)
        if [len(state) for state in states] != [len(ids)] * self.layers:
            raise ConfigError(
                f"The blocks of a {self._model.config.model_type} model do not each get one state a"
                " token, so it cannot be patched: choose a plain causal language model."
            )
        return torch.stack(states)

    at_once = False

    def weight(self, row: PatchRow, tokens: int) -> int:
        return tokens

    @torch.inference_mode()
    def patched(
        self,
        ids: Sequence[int],
        n_answer: int,
        clean: torch.Tensor,
        bank: torch.Tensor,
        rows: Sequence[PatchRow],
    ) -> list[float]:
        if len(self._tuples) < self.layers:
            self.residuals(ids)  # tells what each block returns
        numbers: list[float] = []
        for first, group in groupby(rows, key=lambda row: row.first):
            numbers += self._run_group(ids, n_answer, clean, bank, first, list(group))
        return numbers

    def _run_group(
        self,
        ids: Sequence[int],
        n_answer: int,
        clean: torch.Tensor,
        bank: torch.Tensor,
        first: int,
        rows: Sequence[PatchRow],
    ) -> list[float]:
        def change(layer: int, state: torch.Tensor) -> torch.Tensor:
            if layer < first:
                return state
            state = (
                clean[first].expand(len(rows), -1, -1).clone() if layer == first else state.clone()
            )
            for number, row in enumerate(rows):
                if layer in row.layers and row.at:
                    state[number, list(row.at)] = bank[layer, list(row.columns)]
            return state

        with self._changing(change, first):
            logits = self._run(ids, len(rows), n_answer + 1)[:, -n_answer - 1 : -1]
        answer_ids = torch.tensor(list(ids[-n_answer:]), device=logits.device).expand(len(rows), -1)
        log_probs: list[float] = (
            wide(logits).log_softmax(-1).gather(2, answer_ids[..., None])[..., 0].sum(1).tolist()
        )
        return log_probs

    def _run(self, ids: Sequence[int], batch: int, tail: int) -> torch.Tensor:
        batch_ids = torch.tensor([list(ids)], device=self._model.device).expand(batch, -1)
        logits: torch.Tensor = self._model(
            input_ids=batch_ids, use_cache=False, logits_to_keep=tail
        ).logits
        return logits

    @contextmanager
    def _changing(self, change: Change, first: int) -> Iterator[None]:
        """Every block is given ``change(layer, state)`` for its input; those before ``first`` hand on what they are given."""
        handles = []
        originals = [block.__dict__.get("forward") for block in self._blocks[:first]]
        try:
            for layer, block in enumerate(self._blocks):
                if layer < first:
                    block.forward = _passing(self._tuples[layer])
                handles.append(
                    block.register_forward_pre_hook(_before(layer, change), with_kwargs=True)
                )
                handles.append(block.register_forward_hook(self._record_outputs(layer)))
            yield
        finally:
            for handle in handles:
                handle.remove()
            for block, forward in zip(self._blocks, originals, strict=False):
                block.__dict__.pop("forward", None)  # the class's own stands behind it
                if forward is not None:
                    block.forward = forward

    def _record_outputs(self, layer: int) -> Callable[..., None]:
        def note(module: nn.Module, args: Any, output: Any) -> None:
            self._tuples.setdefault(layer, len(output) if isinstance(output, tuple) else 0)

        return note


def _before(layer: int, change: Change) -> Callable[..., Any]:
    def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if args:
            return (change(layer, args[0]), *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": change(layer, kwargs["hidden_states"])}

    return hook


def _passing(of: int) -> Callable[..., Any]:
    """Stands for a block that hands on its states, in a tuple of ``of`` things where it returns one."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        state = args[0] if args else kwargs["hidden_states"]
        return (state, *[None] * (of - 1)) if of else state

    return forward


def _blocks(model: Any) -> Sequence[Any]:
    """The text decoder's blocks: its outermost module list that has as many entries as its configuration has layers."""
    config = model.config.get_text_config()
    depth = getattr(config, "num_hidden_layers", None)
    decoder = model.get_decoder() or model
    matches = [
        module
        for module in decoder.modules()
        if isinstance(module, nn.ModuleList) and len(module) == depth
    ]
    if not matches:
        raise ConfigError(
            f"No list of {depth or 'decoder'} blocks was found in a {model.config.model_type}"
            " model, so it cannot be patched: choose a plain causal language model."
        )
    return list(matches[0])
