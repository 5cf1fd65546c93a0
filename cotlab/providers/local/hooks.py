"""Patching by hooks, for any causal language model: on transformers or on TransformerLens."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import torch
from torch import nn

from cotlab.core.errors import ConfigError, MissingExtra
from cotlab.providers.local.backend import PatchRow, wide
from cotlab.providers.local.load import Loaded

Change = Callable[[int, torch.Tensor], torch.Tensor]


class Hooks:
    """A ``Backend`` for any architecture whose blocks are one list.

    Rows with the same first layer run together, and no block before it is computed.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._blocks = _blocks(model)
        self.layers = len(self._blocks)
        self._tuples: dict[int, int] = {}
        """Length of the tuple that each block returns; 0 where it returns its states alone."""

    @torch.inference_mode()
    def residuals(self, ids: Sequence[int]) -> torch.Tensor:
        """Return the residual stream at the input of each layer."""
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
        """Return the cost of a row: all tokens."""
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
        """Return log P of the answer in nats for each row; see ``Backend.patched``."""
        if len(self._tuples) < self.layers:
            self.residuals(ids)  # records what each block returns
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
        return _answer_log_probs(logits, ids[-n_answer:])

    def _run(self, ids: Sequence[int], batch: int, tail: int) -> torch.Tensor:
        batch_ids = torch.tensor([list(ids)], device=self._model.device).expand(batch, -1)
        logits: torch.Tensor = self._model(
            input_ids=batch_ids, use_cache=False, logits_to_keep=tail
        ).logits
        return logits

    @contextmanager
    def _changing(self, change: Change, first: int) -> Iterator[None]:
        """Replace the input of every block by ``change(layer, state)`` within the context.

        Blocks before ``first`` return their input.
        """
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
                block.__dict__.pop("forward", None)  # uncovers the method of the class
                if forward is not None:
                    block.forward = forward

    def _record_outputs(self, layer: int) -> Callable[..., None]:
        def note(module: nn.Module, args: Any, output: Any) -> None:
            self._tuples.setdefault(layer, len(output) if isinstance(output, tuple) else 0)

        return note


def _answer_log_probs(logits: torch.Tensor, answer: Sequence[int]) -> list[float]:
    """Return log P of the answer's tokens in nats for each row of (rows, tokens, vocabulary)."""
    answer_ids = torch.tensor(list(answer), device=logits.device).expand(len(logits), -1)
    log_probs: list[float] = (
        wide(logits).log_softmax(-1).gather(2, answer_ids[..., None])[..., 0].sum(1).tolist()
    )
    return log_probs


def _before(layer: int, change: Change) -> Callable[..., Any]:
    def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if args:
            return (change(layer, args[0]), *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": change(layer, kwargs["hidden_states"])}

    return hook


def _passing(of: int) -> Callable[..., Any]:
    """Return a forward that returns its input, in a tuple of ``of`` entries if not 0."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        state = args[0] if args else kwargs["hidden_states"]
        return (state, *[None] * (of - 1)) if of else state

    return forward


def _blocks(model: Any) -> Sequence[Any]:
    """Return the text decoder's blocks.

    They are its outermost module list with as many entries as the configuration has layers.
    """
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


_MAX_REASON_CHARS = 200
"""Characters of the library's error message that are shown."""


class Bridge:
    """A ``Backend`` on TransformerLens; slower, as it computes every block of every row.

    The model is copied, for the library rebuilds the one that it gets.
    """

    def __init__(self, loaded: Loaded) -> None:
        bridge, config = _import_transformer_bridge(), loaded.model.config
        if config.get_text_config() is not config:
            raise _unsupported_model(loaded, "it takes more than text")
        weights = next(loaded.model.parameters())
        try:
            with _nothing_installed():
                self._bridge: Any = bridge.boot_transformers(
                    config.name_or_path,
                    hf_model=copy.deepcopy(loaded.model),
                    tokenizer=loaded.tokenizer,
                    device=loaded.device,
                    dtype=weights.dtype,
                )
        except Exception as error:  # noqa: BLE001 - its adapters raise anything
            raise _unsupported_model(
                loaded, (str(error).strip() or type(error).__name__).splitlines()[0]
            ) from error
        self.layers: int = config.num_hidden_layers

    @torch.inference_mode()
    def residuals(self, ids: Sequence[int]) -> torch.Tensor:
        """Return the residual stream at the input of each layer."""
        states: list[torch.Tensor] = []

        def keep(state: torch.Tensor, hook: Any) -> torch.Tensor:
            states.append(state[0].clone())
            return state

        self._run(ids, 1, [keep] * self.layers)
        return torch.stack(states)

    at_once = False

    def weight(self, row: PatchRow, tokens: int) -> int:
        """Return the cost of a row: all tokens."""
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
        """Return log P of the answer in nats for each row; see ``Backend.patched``."""

        def changing(layer: int) -> Callable[[torch.Tensor, Any], torch.Tensor]:
            def change(state: torch.Tensor, hook: Any) -> torch.Tensor:
                state = state.clone()
                for number, row in enumerate(rows):
                    if layer in row.layers and row.at:
                        state[number, list(row.at)] = bank[layer, list(row.columns)]
                return state

            return change

        logits = self._run(ids, len(rows), [changing(layer) for layer in range(self.layers)])[
            :, -n_answer - 1 : -1
        ]
        return _answer_log_probs(logits, ids[-n_answer:])

    def _run(
        self, ids: Sequence[int], batch: int, changes: Sequence[Callable[..., Any]]
    ) -> torch.Tensor:
        batch_ids = torch.tensor([list(ids)], device=self._bridge.cfg.device).expand(batch, -1)
        hooks = [(f"blocks.{layer}.hook_in", change) for layer, change in enumerate(changes)]
        logits: torch.Tensor = self._bridge.run_with_hooks(
            batch_ids, fwd_hooks=hooks, return_type="logits"
        )
        return logits


def _import_transformer_bridge() -> Any:
    try:
        from transformer_lens.model_bridge import TransformerBridge
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] == "transformer_lens":
            raise MissingExtra("--backend transformer_lens", "transformer-lens") from missing
        raise ConfigError(
            f"TransformerLens is installed but not usable: {missing}. Use --backend hooks."
        ) from missing
    return TransformerBridge


def _unsupported_model(loaded: Loaded, reason: str) -> ConfigError:
    config = loaded.model.config
    message = reason.rstrip(".")
    if len(message) > _MAX_REASON_CHARS:  # for an unknown type the library lists all known ones
        message = (
            message[:_MAX_REASON_CHARS].rpartition(". ")[0]
            or f"{message[: _MAX_REASON_CHARS - 1]}…"
        )
    return ConfigError(
        f"TransformerLens does not take the {config.model_type} model {config.name_or_path!r}:"
        f" {message}. Use --backend hooks."
    )


@contextmanager
def _nothing_installed() -> Iterator[None]:
    """Keep TransformerLens from running ``pip install`` within the context.

    For some models it would replace torch under the running process.
    """
    from transformer_lens.model_bridge.sources.transformers import helpers

    original = getattr(helpers, "_ensure_torchvision", None)
    helpers._ensure_torchvision = lambda: False
    try:
        yield
    finally:
        helpers._ensure_torchvision = original
