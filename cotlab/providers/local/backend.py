"""Activation patching: rows to run, and the protocol of the backends that run them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch

if TYPE_CHECKING:
    from cotlab.providers.local.load import LoadedModel

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.providers.local.batching import can_share_lengths


class PatchRow(NamedTuple):
    """One forward pass with patched states.

    At the input of each of ``layers`` (ascending), position ``at[i]`` gets the bank's column
    ``columns[i]``. Without layers or positions it is the clean run.
    """

    layers: tuple[int, ...]
    """Layers whose input is patched, ascending."""
    positions: tuple[int, ...]
    """Patched positions."""
    columns: tuple[int, ...]
    """Column of the bank that each position gets."""

    @property
    def first_layer(self) -> int:
        """Return the first layer that this row changes; earlier ones equal the clean run."""
        return self.layers[0] if self.layers else 0

    @property
    def is_contiguous(self) -> bool:
        """Return whether it patches the same positions at consecutive layers.

        Nothing is computed at these positions in between.
        """
        return (
            bool(self.positions)
            and len(self.layers) > 1
            and self.layers[-1] - self.layers[0] == len(self.layers) - 1
        )


class PackShape(NamedTuple):
    """Shape in which rows of a text are computed.

    A row gets the same bits in any batch of rows with its shape.
    """

    row_cost: int
    """Cost of a row, in tokens."""
    layout: Hashable = None
    """What else the shape depends on, beyond the text."""


def upcast(x: torch.Tensor) -> torch.Tensor:
    """Return ``x`` in float32, or in float64 where it is: the precision of log-probabilities."""
    return x if x.dtype == torch.float64 else x.float()


class Backend(Protocol):
    """A way to run a model with patched states; all agree to 1e-4 nats in float32."""

    n_layers: int
    """Number of layers."""
    is_thread_safe: bool = False
    """Whether several threads may call ``patched_log_probs`` at once."""

    def residuals(self, ids: Sequence[int]) -> torch.Tensor:
        """Return the residual stream at the *input* of each layer.

        Returns
        -------
        tensor (layers, tokens, width), in the model's dtype
        """
        ...

    def pack_shape(self, row: PatchRow, n_tokens: int, n_answer: int) -> PackShape:
        """Return the shape in which a row of a text of ``n_tokens`` is computed."""
        return PackShape(n_tokens)

    def patched_log_probs(
        self,
        ids: Sequence[int],
        n_answer: int,
        clean_states: torch.Tensor,
        source_states: torch.Tensor,
        rows: Sequence[PatchRow],
    ) -> list[float]:
        """Return log P of the last ``n_answer`` of ``ids`` in nats for each row, in one batch.

        Parameters
        ----------
        ids : token ids of the text and its answer
        n_answer : int, at least 1
        clean_states : tensor (layers, tokens, width)
            ``residuals(ids)``.
        source_states : tensor (layers, columns, width)
            The states that rows take.
        rows : sorted by their first layer
            Fastest if none or all patch through, and then one span.
        """
        ...


BACKENDS = ("auto", "fast", "hooks", "transformer_lens")
"""Names of the backends; auto is fast where the model allows it, else hooks."""


def open_backend(name: str, loaded_model: LoadedModel) -> Backend:
    """Return the backend ``name`` for a model.

    Raises
    ------
    ConfigError
        If it does not support the model.
    """
    from cotlab.providers.local.fast import MODEL_TYPES, FastBackend

    if name not in BACKENDS:
        raise UnknownName("backend", name, BACKENDS)
    if name == "fast" and not FastBackend.supports_model(loaded_model.model):
        raise ConfigError(
            f"The backend fast takes plain models of the kinds {', '.join(MODEL_TYPES)};"
            " --role subject.backend=hooks takes any."
        )
    if name == "fast" or (name == "auto" and FastBackend.supports_model(loaded_model.model)):
        return loaded_model.fast or FastBackend(loaded_model.model)
    if name == "transformer_lens":
        from cotlab.providers.local.hooks import TransformerLensBackend

        return TransformerLensBackend(loaded_model)
    from cotlab.providers.local.hooks import TransformersHookBackend

    return TransformersHookBackend(loaded_model.model)


def with_fast_reading(loaded_model: LoadedModel, name: str) -> LoadedModel:
    """Return the model, with the fast backend to read by where ``name`` and the model allow it."""
    from cotlab.providers.local.fast import FastBackend

    model = loaded_model.model
    if (
        name in ("auto", "fast")
        and FastBackend.supports_model(model)
        and can_share_lengths(loaded_model.device, model.dtype)
    ):
        return replace(loaded_model, fast=FastBackend(model))
    return loaded_model
