"""Which positions of a pack of patched rows are computed or given, and who attends to whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from cotlab.providers.local.backend import PatchRow


@dataclass(frozen=True, slots=True)
class View:
    """The positions of each row that a block computes.

    They attend to each other, to given ones, and to the clean run. A row with fewer positions than
    the
    longest is padded at its front: padding repeats the row's first computed position, and no
    position
    attends to it.
    """

    before: int
    """Number of the clean run's first positions, which every computed position attends to."""
    turn: torch.Tensor
    """(rows or 1, computed, 1, size/2) complex: rotation of each computed position."""
    mask: torch.Tensor
    """(rows or 1, 1, computed, before + given + computed): 0 or minus infinity."""
    given: Given | None = None
    """Patched positions that give keys and values only; None where there are none."""

    @classmethod
    def dense(cls, start: int, length: int, turns: torch.Tensor, dtype: torch.dtype) -> View:
        """Return a view with ``length`` positions from ``start`` computed in all rows."""
        turn = turns[None, start : start + length, None]
        visible = torch.ones(length, start + length, dtype=torch.bool, device=turns.device).tril(
            start
        )
        mask = torch.zeros(visible.shape, dtype=dtype, device=turns.device).masked_fill_(
            ~visible, -torch.inf
        )
        return cls(start, turn, mask[None, None])


@dataclass(frozen=True, slots=True)
class Given:
    """Positions that are patched at each of the rows' layers.

    They give keys and values, and nothing is computed there.
    """

    at: torch.Tensor
    """(rows, computed): the computed positions."""
    real: torch.Tensor
    """(rows, computed): False for padding."""
    columns: torch.Tensor
    """(pairs,): column of each pair of a column and a position; clean columns follow the bank's."""
    turn: torch.Tensor
    """(1, pairs, 1, size/2) complex: rotation of the pair's position."""
    positions: torch.Tensor
    """(pairs,): the position itself."""
    pair_indices: torch.Tensor
    """(rows, given): index of the pair; padding repeats the row's first, and no position attends to
    it."""

    def full_states(
        self, x: torch.Tensor, states: torch.Tensor, start: int, tokens: int
    ) -> torch.Tensor:
        """Merge the computed states ``x`` with the given ones, of ``states`` (columns, width).

        Returns
        -------
        tensor (rows, tokens - start, width)
        """
        out = x.new_empty(len(x), tokens - start, x.shape[2])
        every = torch.arange(len(x), device=x.device)[:, None]
        out[every, self.positions[self.pair_indices] - start] = states[
            self.columns[self.pair_indices]
        ]
        row, position = self.real.nonzero(as_tuple=True)
        out[row, self.at[row, position] - start] = x[row, position]
        return out


def partial_view(
    rows: Sequence[PatchRow], tokens: int, bank: int, turns: torch.Tensor, dtype: torch.dtype
) -> View:
    """Return the view of rows that patch through one span, below its last layer.

    Parameters
    ----------
    rows : sequence of PatchRow
        Each leaves the last of the ``tokens`` positions alone.
    tokens : int
    bank : int
        Columns of the bank; a position of the clean run counts as column ``bank`` + position.
    """
    # The column of each position that is not computed.
    columns = np.tile(np.arange(bank, bank + tokens), (len(rows), 1))
    patched = np.zeros((len(rows), tokens), bool)
    for k, row in enumerate(rows):
        patched[k, row.at] = True
        columns[k, row.at] = row.columns
    positions, start = np.arange(tokens), patched.argmax(1)[:, None]
    before = int(start.min())
    at, real = _side_by_side((positions >= start) & ~patched, front=True)
    given, given_real = _side_by_side(
        (positions >= before) & ((positions < start) | patched), front=False
    )
    codes = given * (bank + tokens) + np.take_along_axis(columns, given, 1)
    pairs, pair_indices = np.unique(codes, return_inverse=True)
    pair_at, pair_column = divmod(pairs, bank + tokens)
    visible = (
        np.concatenate([np.where(given_real, given, tokens), np.where(real, at, tokens)], 1)[
            :, None
        ]
        <= at[:, :, None]
    )
    mask = np.zeros((len(rows), 1, at.shape[1], before + visible.shape[2]), np.float32)
    mask[:, 0, :, before:][~visible] = -np.inf

    def to_device(array: Any) -> torch.Tensor:
        return torch.from_numpy(array).to(turns.device)

    here, spots = to_device(at), to_device(pair_at)
    known = Given(
        here,
        to_device(real),
        to_device(pair_column),
        turns[spots][None, :, None],
        spots,
        to_device(pair_indices.reshape(given.shape)),
    )
    return View(before, turns[here][:, :, None], to_device(mask).to(dtype), known)


def _side_by_side(chosen: Any, *, front: bool) -> tuple[Any, Any]:
    """Return the chosen positions of each row in order, and which of them are no padding.

    Padding at the front or the end repeats the row's first position.
    """
    counts = chosen.sum(1)
    longest = int(counts.max())
    real = (
        np.arange(longest)[None] >= longest - counts[:, None]
        if front
        else np.arange(longest)[None] < counts[:, None]
    )
    out = np.repeat(chosen.argmax(1)[:, None], longest, 1)
    out[real] = chosen.nonzero()[1]
    return out, real
