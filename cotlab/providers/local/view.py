"""Which positions of a pack of patched rows are computed, which are given, and who attends to whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from cotlab.providers.local.backend import PatchRow


@dataclass(frozen=True, slots=True)
class View:
    """What a block computes: some positions of each row. They attend to each other, to given ones, and to the clean run.

    A row with fewer positions than the longest is padded at its front: a padded place repeats the row's first computed
    position, and no one attends to it.
    """

    before: int
    """The clean run's first positions, which every row shares and every computed position sees."""
    turn: torch.Tensor
    """(rows or 1, computed, 1, size/2) complex: the rotation of each computed position."""
    mask: torch.Tensor
    """(rows or 1, 1, computed, before + given + computed): 0 or minus infinity."""
    given: Given | None = None

    @classmethod
    def dense(cls, start: int, length: int, turns: torch.Tensor, dtype: torch.dtype) -> View:
        """``length`` positions from ``start`` on are computed, alike in all rows."""
        turn = turns[None, start : start + length, None]
        seen = torch.ones(length, start + length, dtype=torch.bool, device=turns.device).tril(start)
        mask = torch.zeros(seen.shape, dtype=dtype, device=turns.device).masked_fill_(~seen, -torch.inf)
        return cls(start, turn, mask[None, None])


@dataclass(frozen=True, slots=True)
class Given:
    """Positions that are patched at each of the rows' layers: they give keys and values, and nothing is computed there."""

    at: torch.Tensor
    """(rows, computed): the computed positions."""
    real: torch.Tensor
    """(rows, computed): False where padded."""
    columns: torch.Tensor
    """(pairs,): the column of each pair of a column and a position where its state is put; clean columns follow the bank's."""
    turn: torch.Tensor
    """(1, pairs, 1, size/2) complex: the rotation of the pair's position."""
    places: torch.Tensor
    """(pairs,): the position itself."""
    take: torch.Tensor
    """(rows, given): which pair; a padded place repeats the row's first, and no one attends to it."""

    def whole(self, x: torch.Tensor, states: torch.Tensor, start: int, tokens: int) -> torch.Tensor:
        """Tensor (rows, tokens − start, width) of the computed states ``x`` and the given ones, of (columns, width)."""
        out = x.new_empty(len(x), tokens - start, x.shape[2])
        every = torch.arange(len(x), device=x.device)[:, None]
        out[every, self.places[self.take] - start] = states[self.columns[self.take]]
        row, place = self.real.nonzero(as_tuple=True)
        out[row, self.at[row, place] - start] = x[row, place]
        return out


def partial_view(rows: Sequence[PatchRow], tokens: int, bank: int, turns: torch.Tensor, dtype: torch.dtype) -> View:
    """The view of rows that patch through one span, below its last layer.

    Parameters
    ----------
    rows : each leaves the last of the ``tokens`` positions alone
    bank : int, how many columns the bank has; a position of the clean run counts as column ``bank`` + position
    """
    starts = [min(row.at) for row in rows]
    before = min(starts)
    live = [sorted(set(range(start, tokens)).difference(row.at)) for start, row in zip(starts, rows, strict=True)]
    told = [
        [(p, bank + p) for p in range(before, start)] + list(zip(row.at, row.take, strict=True))
        for start, row in zip(starts, rows, strict=True)
    ]
    pairs = {pair: k for k, pair in enumerate(sorted({pair for own in told for pair in own}))}
    most, widest = max(map(len, live)), max(map(len, told))
    at = torch.tensor([[own[0]] * (most - len(own)) + own for own in live])
    real = torch.tensor([[False] * (most - len(own)) + [True] * len(own) for own in live])
    taken = [[pairs[pair] for pair in own] for own in told]
    take = torch.tensor([own + own[:1] * (widest - len(own)) for own in taken])
    absent = torch.tensor([[False] * len(own) + [True] * (widest - len(own)) for own in told])
    places = torch.tensor([p for p, _ in pairs])
    keys = torch.cat([places[take].masked_fill(absent, tokens), at.masked_fill(~real, tokens)], 1)
    mask = torch.zeros(len(rows), 1, most, before + keys.shape[1], dtype=dtype)
    mask[..., before:].masked_fill_((keys[:, None] > at[:, :, None])[:, None], -torch.inf)
    device = turns.device
    at, places, columns = at.to(device), places.to(device), torch.tensor([c for _, c in pairs], device=device)
    given = Given(at, real.to(device), columns, turns[places][None, :, None], places, take.to(device))
    return View(before, turns[at][:, :, None], mask.to(device), given)
