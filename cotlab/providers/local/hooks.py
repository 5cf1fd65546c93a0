"""Patching by hooks, for any causal language model: on transformers or on TransformerLens."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from cotlab.core.errors import ConfigError, MissingExtra
from cotlab.providers.local.backend import Backend, PatchRow, upcast
from cotlab.providers.local.batching import LENGTH_MULTIPLE, ROW_MULTIPLE, round_up
from cotlab.providers.local.load import LoadedModel, first_line, max_positions

StateChange = Callable[[int, torch.Tensor], torch.Tensor]


class HookedBackend(Backend, ABC):
    """A ``Backend`` that changes the input of each block while the whole model runs."""

    _model_type: str
    _max_tokens: int
    _device: Any

    @abstractmethod
    def _run_model(
        self, batch_ids: torch.Tensor, change_state: StateChange, n_logits: int
    ) -> torch.Tensor:
        """Return at least the last ``n_logits`` logits, with ``change(layer, state)`` as inputs."""

    @torch.inference_mode()
    def residuals(self, ids: Sequence[int]) -> torch.Tensor:
        """Return the residual stream at the input of each layer."""
        states: list[torch.Tensor] = []

        def record_state(layer: int, state: torch.Tensor) -> torch.Tensor:
            states.append(state[0].clone())
            return state

        padded_ids = self._padded_ids(ids)
        self._run_model(torch.tensor([padded_ids], device=self._device), record_state, 1)
        if [len(state) for state in states] != [len(padded_ids)] * self.n_layers:
            raise ConfigError(
                f"The blocks of a {self._model_type} model do not each get one state a token, so"
                " it cannot be patched: choose a plain causal language model."
            )
        return torch.stack([state[: len(ids)] for state in states])

    def _padded_ids(self, ids: Sequence[int]) -> list[int]:
        """Return ids with padding after them, which no token of theirs attends to."""
        length = min(round_up(len(ids), LENGTH_MULTIPLE), max(len(ids), self._max_tokens))
        return [*ids, *[ids[-1]] * (length - len(ids))]

    @torch.inference_mode()
    def patched_log_probs(
        self,
        ids: Sequence[int],
        n_answer: int,
        clean_states: torch.Tensor,
        source_states: torch.Tensor,
        rows: Sequence[PatchRow],
    ) -> list[float]:
        """Return log P of the answer in nats for each row; see ``Backend.patched_log_probs``."""
        padded_ids = torch.tensor(self._padded_ids(ids), device=self._device)

        def patch_state(layer: int, state: torch.Tensor) -> torch.Tensor:
            state = state.clone()
            for row_index, row in enumerate(rows):
                if layer in row.layers and row.positions:
                    text_states = state[row_index, : len(ids)]
                    text_states[list(row.positions)] = source_states[layer, list(row.columns)]
            return state

        last = len(ids) - 1 - len(padded_ids)
        n_logits = min(len(padded_ids), n_answer + 1 - last + ROW_MULTIPLE)
        logits = self._run_model(padded_ids.expand(len(rows), -1), patch_state, n_logits)
        answer_ids = torch.tensor(list(ids[-n_answer:]), device=logits.device)
        indices = answer_ids.expand(len(logits), -1)[..., None]
        token_log_probs = upcast(logits[:, last - n_answer : last]).log_softmax(-1)
        log_probs: list[float] = token_log_probs.gather(2, indices)[..., 0].sum(1).tolist()
        return log_probs


class TransformersHookBackend(HookedBackend):
    """A ``Backend`` for any architecture whose blocks are one list."""

    def __init__(self, model: Any) -> None:
        self._model, self._device = model, model.device
        self._blocks = _decoder_blocks(model)
        self.n_layers = len(self._blocks)
        self._model_type = model.config.model_type
        self._max_tokens = max_positions(model)

    def _run_model(
        self, batch_ids: torch.Tensor, change_state: StateChange, n_logits: int
    ) -> torch.Tensor:
        handles = [
            block.register_forward_pre_hook(_input_hook(layer, change_state), with_kwargs=True)
            for layer, block in enumerate(self._blocks)
        ]
        try:
            logits: torch.Tensor = self._model(
                input_ids=batch_ids, use_cache=False, logits_to_keep=n_logits
            ).logits
        finally:
            for handle in handles:
                handle.remove()
        return logits


def _input_hook(layer: int, change_state: StateChange) -> Callable[..., Any]:
    def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if args:
            return (change_state(layer, args[0]), *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": change_state(layer, kwargs["hidden_states"])}

    return hook


def _decoder_blocks(model: Any) -> Sequence[Any]:
    """Return the text decoder's blocks.

    They are its outermost module list with as many entries as the configuration has layers.
    """
    config = model.config.get_text_config()
    n_layers = getattr(config, "num_hidden_layers", None)
    decoder = model.get_decoder() or model
    module_lists = [
        module
        for module in decoder.modules()
        if isinstance(module, nn.ModuleList) and len(module) == n_layers
    ]
    if not module_lists:
        raise ConfigError(
            f"No list of {n_layers or 'decoder'} blocks was found in a {model.config.model_type}"
            " model, so it cannot be patched: choose a plain causal language model."
        )
    return list(module_lists[0])


_MAX_REASON_CHARS = 200
"""Characters of the library's error message that are shown."""


class TransformerLensBackend(HookedBackend):
    """A ``Backend`` on TransformerLens.

    The model is copied, for the library rebuilds the one that it gets.
    """

    def __init__(self, loaded_model: LoadedModel) -> None:
        bridge_class, config = _import_transformer_bridge(), loaded_model.model.config
        if config.get_text_config() is not config:
            raise _unsupported_model_error(loaded_model, "it takes more than text")
        weights = next(loaded_model.model.parameters())
        try:
            with _prevent_installs():
                self._bridge: Any = bridge_class.boot_transformers(
                    config.name_or_path,
                    hf_model=copy.deepcopy(loaded_model.model),
                    tokenizer=loaded_model.tokenizer,
                    device=loaded_model.device,
                    dtype=weights.dtype,
                )
        except Exception as error:  # noqa: BLE001 - its adapters raise anything
            raise _unsupported_model_error(loaded_model, first_line(error)) from error
        self._device = loaded_model.device
        self.n_layers = config.num_hidden_layers
        self._model_type = config.model_type
        self._max_tokens = max_positions(loaded_model.model)

    def _run_model(
        self, batch_ids: torch.Tensor, change_state: StateChange, n_logits: int
    ) -> torch.Tensor:
        def make_hook(layer: int) -> Callable[[torch.Tensor, Any], torch.Tensor]:
            return lambda state, hook: change_state(layer, state)

        hooks = [(f"blocks.{layer}.hook_in", make_hook(layer)) for layer in range(self.n_layers)]
        logits: torch.Tensor = self._bridge.run_with_hooks(
            batch_ids, fwd_hooks=hooks, return_type="logits"
        )
        return logits


def _import_transformer_bridge() -> Any:
    try:
        from transformer_lens.model_bridge import TransformerBridge
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] == "transformer_lens":
            raise MissingExtra(
                "--role subject.backend=transformer_lens", "transformer-lens"
            ) from missing
        raise ConfigError(
            f"TransformerLens is installed but not usable: {missing}. Use --role"
            " subject.backend=hooks."
        ) from missing
    return TransformerBridge


def _unsupported_model_error(loaded_model: LoadedModel, reason: str) -> ConfigError:
    config = loaded_model.model.config
    message = reason.rstrip(".")
    if len(message) > _MAX_REASON_CHARS:  # for an unknown type the library lists all known ones
        message = (
            message[:_MAX_REASON_CHARS].rpartition(". ")[0]
            or f"{message[: _MAX_REASON_CHARS - 1]}…"
        )
    return ConfigError(
        f"TransformerLens does not take the {config.model_type} model {config.name_or_path!r}:"
        f" {message}. Use --role subject.backend=hooks."
    )


@contextmanager
def _prevent_installs() -> Iterator[None]:
    """Keep TransformerLens from running ``pip install`` within the context.

    For some models it would replace torch under the running process.
    """
    from transformer_lens.model_bridge.sources.transformers import helpers

    original_function = getattr(helpers, "_ensure_torchvision", None)
    helpers._ensure_torchvision = lambda: False
    try:
        yield
    finally:
        helpers._ensure_torchvision = original_function
