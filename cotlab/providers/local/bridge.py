"""Patching through TransformerLens's TransformerBridge: another implementation of the same numbers, by choice."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from cotlab.core.errors import ConfigError, MissingExtra
from cotlab.providers.local.backend import PatchRow, wide
from cotlab.providers.local.load import Loaded

_MAX_REASON_CHARS = 200
"""Characters of the library's own account of what went wrong that are told."""


class Bridge:
    """A ``Backend`` on TransformerLens. It computes every block of every row, so it is slower than the others.

    The model is copied, for the library rebuilds what it is given.
    """

    def __init__(self, loaded: Loaded) -> None:
        bridge, config = _library(), loaded.model.config
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
        except Exception as error:  # noqa: BLE001 - each of the library's many adapters fails in its own way
            raise _unsupported_model(
                loaded, (str(error).strip() or type(error).__name__).splitlines()[0]
            ) from error
        self.layers: int = config.num_hidden_layers

    @torch.inference_mode()
    def residuals(self, ids: Sequence[int]) -> torch.Tensor:
        states: list[torch.Tensor] = []

        def keep(state: torch.Tensor, hook: Any) -> torch.Tensor:
            states.append(state[0].clone())
            return state

        self._run(ids, 1, [keep] * self.layers)
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
        answer_ids = torch.tensor(list(ids[-n_answer:]), device=logits.device).expand(len(rows), -1)
        log_probs: list[float] = (
            wide(logits).log_softmax(-1).gather(2, answer_ids[..., None])[..., 0].sum(1).tolist()
        )
        return log_probs

    def _run(
        self, ids: Sequence[int], batch: int, changes: Sequence[Callable[..., Any]]
    ) -> torch.Tensor:
        batch_ids = torch.tensor([list(ids)], device=self._bridge.cfg.device).expand(batch, -1)
        hooks = [(f"blocks.{layer}.hook_in", change) for layer, change in enumerate(changes)]
        logits: torch.Tensor = self._bridge.run_with_hooks(
            batch_ids, fwd_hooks=hooks, return_type="logits"
        )
        return logits


def _library() -> Any:
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
    if len(message) > _MAX_REASON_CHARS:  # for an unknown kind the library lists all that it knows
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
    """TransformerLens runs ``pip install`` for some models, which replaces torch under the running process: not here."""
    from transformer_lens.model_bridge.sources.transformers import helpers

    original = getattr(helpers, "_ensure_torchvision", None)
    helpers._ensure_torchvision = lambda: False
    try:
        yield
    finally:
        helpers._ensure_torchvision = original
