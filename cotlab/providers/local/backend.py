"""Activation patching: rows to run, and the protocol of the backends that run them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch

if TYPE_CHECKING:
    from cotlab.providers.local.load import Loaded

from cotlab.core.errors import ConfigError, UnknownName


class PatchRow(NamedTuple):
    """One forward pass with patched states.

    At the input of each of ``layers`` (ascending), position ``at[i]`` gets the bank's column
    ``columns[i]``. Without layers or positions it is the clean run.
    """

    layers: tuple[int, ...]
    """Layers whose input is patched, ascending."""
    at: tuple[int, ...]
    """Patched positions."""
    columns: tuple[int, ...]
    """Column of the bank that each position gets."""

    @property
    def first(self) -> int:
        """Return the first layer that this row changes; earlier ones equal the clean run."""
        return self.layers[0] if self.layers else 0

    @property
    def through(self) -> bool:
        """Return whether it patches the same positions at consecutive layers.

        Nothing is computed at these positions in between.
        """
        return (
            bool(self.at)
            and len(self.layers) > 1
            and self.layers[-1] - self.layers[0] == len(self.layers) - 1
        )


def wide(x: torch.Tensor) -> torch.Tensor:
    """Return ``x`` in float32, or in float64 where it is: the precision of log-probabilities."""
    return x if x.dtype == torch.float64 else x.float()


class Backend(Protocol):
    """A way to run a model with patched states; all agree to 1e-4 nats in float32."""

    layers: int
    """Number of layers."""
    at_once: bool
    """Whether several threads may call ``patched`` at once."""

    def residuals(self, ids: Sequence[int]) -> torch.Tensor:
        """Return the residual stream at the *input* of each layer.

        Returns
        -------
        tensor (layers, tokens, width), in the model's dtype
        """
        ...

    def weight(self, row: PatchRow, tokens: int) -> int:
        """Return the cost of a row, in tokens, for a text of ``tokens``."""
        ...

    def patched(
        self,
        ids: Sequence[int],
        n_answer: int,
        clean: torch.Tensor,
        bank: torch.Tensor,
        rows: Sequence[PatchRow],
    ) -> list[float]:
        """Return log P of the last ``n_answer`` of ``ids`` in nats for each row, in one batch.

        Parameters
        ----------
        ids : token ids of the text and its answer
        n_answer : int, at least 1
        clean : tensor (layers, tokens, width)
            ``residuals(ids)``.
        bank : tensor (layers, columns, width)
            The states that rows take.
        rows : sorted by their first layer
            Fastest if none or all patch through, and then one span.
        """
        ...


BACKENDS = ("auto", "fast", "hooks", "transformer_lens")
"""Names of the backends; auto is fast where the model allows it, else hooks."""


def open_backend(name: str, loaded: Loaded) -> Backend:
    """Return the backend ``name`` for a model.

    Raises
    ------
    ConfigError
        If it does not support the model.
    """
    from cotlab.providers.local.fast import KINDS, Fast

    if name not in BACKENDS:
        raise UnknownName("backend", name, BACKENDS)
    if name == "fast" and not Fast.takes(loaded.model):
        raise ConfigError(
            f"--backend fast takes plain models of the kinds {', '.join(KINDS)}; --backend hooks"
            " takes any."
        )
    if name == "fast" or (name == "auto" and Fast.takes(loaded.model)):
        return Fast(loaded.model)
    if name == "transformer_lens":
        from cotlab.providers.local.hooks import Bridge

        return Bridge(loaded)
    from cotlab.providers.local.hooks import Hooks

    return Hooks(loaded.model)
