"""What patches activations: the residuals of a text, and the log-probability of its answer under patched rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch

if TYPE_CHECKING:
    from cotlab.providers.local.load import Loaded

from cotlab.core.errors import ConfigError, UnknownName


class PatchRow(NamedTuple):
    """One patched forward: at the input of each of ``layers`` (ascending), ``at[i]`` takes the bank's column ``take[i]``.

    Without layers or positions it is the clean run.
    """

    layers: tuple[int, ...]
    at: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def first(self) -> int:
        """The first layer that this row changes: what lies before it is the clean run's."""
        return self.layers[0] if self.layers else 0

    @property
    def through(self) -> bool:
        """Whether it patches the same positions at layer after layer, so that nothing there is computed in between."""
        return (
            bool(self.at)
            and len(self.layers) > 1
            and self.layers[-1] - self.layers[0] == len(self.layers) - 1
        )


def wide(x: torch.Tensor) -> torch.Tensor:
    """``x`` in float32, or in float64 where it is: what log-probabilities are taken in."""
    return x if x.dtype == torch.float64 else x.float()


class Backend(Protocol):
    """One way to run a model with patched states. The ways agree to 1e-4 nats in float32."""

    layers: int
    at_once: bool
    """Whether ``patched`` may run in several threads at once."""

    def residuals(self, ids: Sequence[int]) -> torch.Tensor:
        """The residual stream at the *input* of each layer: tensor (layers, tokens, width) in the model's dtype."""
        ...

    def weight(self, row: PatchRow, tokens: int) -> int:
        """How many tokens of a text of ``tokens`` a row costs."""
        ...

    def patched(
        self,
        ids: Sequence[int],
        n_answer: int,
        clean: torch.Tensor,
        bank: torch.Tensor,
        rows: Sequence[PatchRow],
    ) -> list[float]:
        """log P of the last ``n_answer`` of ``ids`` in nats, at least float32, one number a row, in one batch.

        Parameters
        ----------
        ids : token ids of the text and its answer
        n_answer : int, at least 1
        clean : tensor (layers, tokens, width)
            ``residuals(ids)``.
        bank : tensor (layers, columns, width)
            The states that rows take.
        rows : sorted by their first layer; fastest if none or all patch through, and then one span
        """
        ...


BACKENDS = ("auto", "fast", "hooks", "transformer_lens")


def open_backend(name: str, loaded: Loaded) -> Backend:
    """The backend ``name`` of ``BACKENDS`` for a model; ConfigError where it does not take it."""
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
