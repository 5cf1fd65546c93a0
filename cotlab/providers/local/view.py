"""Which positions of a pack of patched rows are computed or given, and who attends to whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from cotlab.providers.local.backend import PatchRow
from cotlab.providers.local.batching import LENGTH_MULTIPLE, ROW_MULTIPLE, round_up


class TextShape(NamedTuple):
    """Lengths of a text with an answer, in tokens, and of what is computed of it."""

    n_tokens: int
    """Tokens of the text and the answer."""
    n_answer: int
    """Tokens of the answer."""

    @property
    def n_padded(self) -> int:
        """Return the length that the text is padded to, at its end."""
        return round_up(self.n_tokens, LENGTH_MULTIPLE)

    @property
    def n_computed(self) -> int:
        """Return how many of its first positions are computed at most.

        Nothing attends to the answer's last token but itself, and its output is not needed.
        """
        return round_up(self.n_tokens - 1, ROW_MULTIPLE)

    @property
    def first_output(self) -> int:
        """Return the first position that needs an output of the last layer.

        The last ones before the answer are among them, so that products have full rows.
        """
        return max(0, self.n_tokens - self.n_answer - ROW_MULTIPLE)

    @property
    def n_outputs(self) -> int:
        """Return how many of the last computed positions need an output of the last layer."""
        return self.n_computed - self.first_output

    def first_computed(self, first_patched: int) -> int:
        """Return the first position that is computed, where one from ``first_patched`` on is."""
        return min(first_patched, self.first_output) // LENGTH_MULTIPLE * LENGTH_MULTIPLE


class SpanLayout(NamedTuple):
    """How many positions of rows that patch through a span are clean, given and computed."""

    n_clean: int
    """First positions, which are the clean run's in every row."""
    n_given: int
    """Positions that give keys and values only, padding included."""
    n_computed: int
    """Computed positions, padding included."""
    n_keys: int
    """Keys, those of the text's padding included."""

    @property
    def row_cost(self) -> int:
        """Return about the tokens that a row computes; a given one costs a quarter."""
        return self.n_computed + self.n_given // 4

    @classmethod
    def from_rows(cls, rows: Sequence[PatchRow], shape: TextShape) -> SpanLayout:
        """Return the layout of rows; that of one row depends on nothing else."""
        starts = [min(row.positions) for row in rows]
        n_before = [start + len(row.positions) for start, row in zip(starts, rows, strict=True)]
        return _span_layout(min(starts), min(n_before), max(n_before), shape)


@lru_cache(maxsize=4096)
def _span_layout(start: int, min_before: int, max_before: int, shape: TextShape) -> SpanLayout:
    """Return the layout of rows by their first patch and their positions before computed ones."""
    n_padded, n_padding = shape.n_padded, shape.n_padded - shape.n_computed
    n_clean = shape.first_computed(start)
    n_computed = round_up(max(shape.n_computed - min_before, shape.n_outputs), ROW_MULTIPLE)
    n_given = round_up(max_before - n_clean, LENGTH_MULTIPLE // 2)
    n_after = max(n_padded - min(min_before, shape.first_output), n_computed + n_padding)
    n_keys = round_up(n_clean + n_given + n_after, LENGTH_MULTIPLE)
    return SpanLayout(n_clean, n_keys - n_clean - n_computed - n_padding, n_computed, n_keys)


@dataclass(frozen=True, slots=True)
class AttentionView:
    """The positions of each row that a block computes.

    They attend to each other, to given ones, and to the clean run. A row with fewer positions than
    the longest is padded at its front: padding repeats the row's first computed position, and no
    position attends to it.
    """

    n_clean_positions: int
    """Number of the clean run's first positions, which every computed position attends to."""
    uncomputed_rotation: torch.Tensor
    """(1, pairs or clean, 1, size/2) complex: rotation of each position that is not computed."""
    rotation: torch.Tensor
    """(rows or 1, computed, 1, size/2) complex: rotation of each computed position."""
    mask: torch.Tensor
    """(rows or 1, 1, computed, keys): 0 or minus infinity. Keys beyond those of clean, given and
    computed positions are padding."""
    patched_positions: PatchedPositions | None = None
    """Patched positions that give keys and values only; None where there are none."""

    @classmethod
    def build_dense(
        cls, first_position: int, end: int, n_keys: int, rotations: torch.Tensor, dtype: torch.dtype
    ) -> AttentionView:
        """Return a view with positions from ``first_position`` to ``end`` computed in all rows."""
        return cls(
            first_position,
            rotations[None, :first_position, None],
            rotations[None, first_position:end, None],
            causal_mask(first_position, end, n_keys, dtype, rotations.device)[None, None],
        )


@lru_cache(maxsize=64)
def causal_mask(
    first_position: int, end: int, n_keys: int, dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    """Return 0 where a position from the first to the end sees another, else minus infinity."""
    is_visible = torch.ones(end - first_position, n_keys, dtype=torch.bool, device=device).tril(
        first_position
    )
    mask = torch.zeros(is_visible.shape, dtype=dtype, device=device)
    return mask.masked_fill_(~is_visible, -torch.inf)


@dataclass(frozen=True, slots=True)
class PatchedPositions:
    """Positions that are patched at each of the rows' layers.

    They give keys and values, and nothing is computed there.
    """

    computed_positions: torch.Tensor
    """(rows, computed): the computed positions."""
    is_computed: torch.Tensor
    """(rows, computed): False for padding."""
    columns: torch.Tensor
    """(pairs,): column of each pair of a column and a position; clean columns follow the bank's.
    The clean run's first positions come first."""
    positions: torch.Tensor
    """(pairs,): the position itself."""
    pair_indices: torch.Tensor
    """(rows, clean + given): index of the pair; padding repeats the row's first, and no position
    attends to it."""

    def full_states(
        self, x: torch.Tensor, states: torch.Tensor, first_position: int, n_tokens: int
    ) -> torch.Tensor:
        """Merge the computed states ``x`` with the given ones, of ``states`` (columns, width).

        Returns
        -------
        tensor (rows, tokens - start, width)
        """
        merged_states = x.new_empty(len(x), n_tokens - first_position, x.shape[2])
        row_indices = torch.arange(len(x), device=x.device)[:, None]
        given_indices = self.pair_indices[:, first_position:]
        merged_states[row_indices, self.positions[given_indices] - first_position] = states[
            self.columns[given_indices]
        ]
        row, position = self.is_computed.nonzero(as_tuple=True)
        merged_states[row, self.computed_positions[row, position] - first_position] = x[
            row, position
        ]
        return merged_states


def partial_view(
    rows: Sequence[PatchRow],
    n_tokens: int,
    layout: SpanLayout,
    n_source_columns: int,
    rotations: torch.Tensor,
    dtype: torch.dtype,
) -> AttentionView:
    """Return the view of rows that patch through one span, below its last layer.

    Parameters
    ----------
    rows : sequence of PatchRow
        Each leaves the last of the ``n_tokens`` positions alone.
    n_tokens : int
        Padding included.
    layout : SpanLayout
        ``SpanLayout.from_rows(rows, …)``.
    n_source_columns : int
        Columns of the bank; a position of the clean run counts as column ``n_source_columns`` +
        position.
    """
    # The column of each position that is not computed.
    columns = np.tile(np.arange(n_source_columns, n_source_columns + n_tokens), (len(rows), 1))
    is_patched = np.zeros((len(rows), n_tokens), bool)
    for k, row in enumerate(rows):
        is_patched[k, row.positions] = True
        columns[k, row.positions] = row.columns
    positions, row_starts = np.arange(n_tokens), is_patched.argmax(1)[:, None]
    computed_positions, is_computed = _packed_positions(
        (positions >= row_starts) & ~is_patched, layout.n_computed, pad_front=True
    )
    given_positions, is_given = _packed_positions(
        (positions >= layout.n_clean) & ((positions < row_starts) | is_patched),
        layout.n_given,
        pad_front=False,
    )
    pair_codes = given_positions * (n_source_columns + n_tokens) + np.take_along_axis(
        columns, given_positions, 1
    )
    unique_codes, pair_indices = np.unique(pair_codes, return_inverse=True)
    unique_codes = np.pad(unique_codes, (0, max(0, ROW_MULTIPLE - len(unique_codes))), mode="edge")
    pair_positions, pair_columns = divmod(unique_codes, n_source_columns + n_tokens)
    clean_positions = positions[: layout.n_clean]
    pair_positions = np.concatenate([clean_positions, pair_positions])
    pair_columns = np.concatenate([n_source_columns + clean_positions, pair_columns])
    pair_indices = np.concatenate(
        [
            np.tile(clean_positions, (len(rows), 1)),
            layout.n_clean + pair_indices.reshape(given_positions.shape),
        ],
        1,
    )
    is_visible = (
        np.concatenate(
            [
                np.where(is_given, given_positions, n_tokens),
                np.where(is_computed, computed_positions, n_tokens),
            ],
            1,
        )[:, None]
        <= computed_positions[:, :, None]
    )
    mask = np.zeros((len(rows), 1, layout.n_computed, layout.n_keys), np.float32)
    n_real_keys = layout.n_clean + is_visible.shape[2]
    mask[:, 0, :, layout.n_clean : n_real_keys][~is_visible] = -np.inf
    mask[..., n_real_keys:] = -np.inf

    def to_device(array: Any) -> torch.Tensor:
        return torch.from_numpy(array).to(rotations.device)

    computed_tensor, pair_position_tensor = to_device(computed_positions), to_device(pair_positions)
    patched_positions = PatchedPositions(
        computed_tensor,
        to_device(is_computed),
        to_device(pair_columns),
        pair_position_tensor,
        to_device(pair_indices),
    )
    return AttentionView(
        layout.n_clean,
        rotations[pair_position_tensor][None, :, None],
        rotations[computed_tensor][:, :, None],
        to_device(mask).to(dtype),
        patched_positions,
    )


def _packed_positions(is_chosen: Any, length: int, *, pad_front: bool) -> tuple[Any, Any]:
    """Return ``length`` positions of each row, the chosen in order, and which are no padding.

    Padding at the front or the end repeats the row's first position.
    """
    n_chosen_by_row = is_chosen.sum(1)
    is_real = (
        np.arange(length)[None] >= length - n_chosen_by_row[:, None]
        if pad_front
        else np.arange(length)[None] < n_chosen_by_row[:, None]
    )
    packed_positions = np.repeat(is_chosen.argmax(1)[:, None], length, 1)
    packed_positions[is_real] = is_chosen.nonzero()[1]
    return packed_positions, is_real


PatchIndex = dict[int, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]
"""Layer → (rows, positions, columns) that are patched there."""


def patches_by_layer(
    rows: Sequence[PatchRow], first_position: int, device: torch.device
) -> PatchIndex:
    """Return for each patched layer the rows, positions from ``first_position`` and columns."""

    @cache
    def make_indices(
        row_indices: tuple[int, ...],
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        numbered_rows = [(row_index, rows[row_index]) for row_index in row_indices]
        return (
            torch.tensor(
                [row_index for row_index, row in numbered_rows for _ in row.positions],
                device=device,
            ),
            torch.tensor(
                [
                    position - first_position
                    for _, row in numbered_rows
                    for position in row.positions
                ],
                device=device,
            ),
            torch.tensor(
                [column for _, row in numbered_rows for column in row.columns], device=device
            ),
        )

    row_numbers_by_layer: dict[int, list[int]] = {}
    for row_number, row in enumerate(rows):
        for layer in row.layers if row.positions else ():
            row_numbers_by_layer.setdefault(layer, []).append(row_number)
    return {
        layer: make_indices(tuple(row_numbers))
        for layer, row_numbers in row_numbers_by_layer.items()
    }
