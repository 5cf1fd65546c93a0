"""Ways to read rows of tokens on, each row from its first token, one token a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from cotlab.providers.local.batching import (
    LENGTH_MULTIPLE,
    ROW_MULTIPLE,
    padded_length,
    round_up,
)
from cotlab.providers.local.fast import FastBackend
from cotlab.providers.local.load import LoadedModel
from cotlab.providers.local.view import causal_mask

CHUNK = LENGTH_MULTIPLE // 2
"""Beginnings of texts are read once for all of them in multiples of so many tokens."""


class FastReader:
    """Rows of a model that ``FastBackend`` computes, each at the start of its own buffer.

    What stands behind a row's text adds exact zeros to its numbers, so that rows of any length are
    read together, come and go. Beginnings that neighbours share are read once.
    """

    def __init__(self, backend: FastBackend, max_rows: int) -> None:
        self._backend = backend
        self.max_rows = round_up(max_rows, ROW_MULTIPLE)
        self._lengths: list[int] = []
        self._buffers = torch.empty(
            backend.n_layers, 2, self.max_rows, backend.n_key_heads, 0, backend.head_size
        )
        """Keys and values: tensor (layers, 2, rows, heads, tokens, size)."""

    def add(self, id_rows: Sequence[Sequence[int]]) -> None:
        """Read texts into the next rows; fastest if sorted."""
        backend, rows = self._backend, slice(len(self._lengths), len(self._lengths) + len(id_rows))
        self._lengths += map(len, id_rows)
        n_keys = round_up(max(map(len, id_rows)), LENGTH_MULTIPLE)
        self._extend(n_keys)
        ids, positions, indices, groups = _shared_beginnings(id_rows, n_keys)
        if not groups:
            return
        x = backend.embedded(torch.from_numpy(ids))[None]
        rotation = backend.rotations(n_keys)[positions][None, :, None]
        heads = np.arange(backend.n_key_heads)
        head_indices = torch.from_numpy(indices[:, None] * len(heads) + heads[:, None])
        for layer in range(backend.n_layers):
            is_last = layer == backend.n_layers - 1
            q, *keys_values = (
                (x, *backend.keys_values(layer, backend.rms_norm(x), rotation))
                if is_last  # which gives nothing more before the next token is read
                else backend.projections(layer, x, rotation)
            )
            for buffer, new in zip(self._buffers[layer], keys_values, strict=True):
                row_heads = new.reshape(-1, backend.head_size)[head_indices]
                buffer[rows, :, :n_keys] = row_heads
            if is_last:
                return
            outputs, n_read = [], 0
            for (start, end), members in groups.items():
                size, n_seen = end - start, round_up(end, LENGTH_MULTIPLE)
                queries = q[0, n_read : n_read + len(members) * size].view(
                    len(members), size, *q.shape[2:]
                )
                n_read += len(members) * size
                keys, values = self._buffers[layer, :, rows][:, members, :, :n_seen].transpose(2, 3)
                mask = causal_mask(start, end, n_seen, x.dtype, x.device)[None, None]
                outputs.append(backend.attention(queries, keys, values, mask).flatten(0, 1))
            x = backend.block_output(layer, x, torch.cat(outputs)[None])

    def read(self, next_ids: Sequence[int]) -> torch.Tensor:
        """Read one more token of each row; return the logits of the tokens after them."""
        backend, n_padding = self._backend, -len(next_ids) % ROW_MULTIPLE
        n_keys = round_up(max(self._lengths) + 1, LENGTH_MULTIPLE)
        self._extend(n_keys)
        positions = torch.tensor([*self._lengths, *[0] * n_padding])
        x = backend.embedded(torch.tensor([*next_ids, *[0] * n_padding]))[:, None]
        n_rows, rotation = len(x), backend.rotations(n_keys)[positions][:, None, None]
        mask = torch.zeros(n_rows, 1, 1, n_keys).masked_fill_(
            torch.arange(n_keys) > positions[:, None, None, None], -torch.inf
        )
        row_heads = torch.arange(n_rows * backend.n_key_heads).view(n_rows, -1)
        places = (row_heads * self._buffers.shape[4] + positions[:, None]).flatten()
        for layer, buffers in enumerate(self._buffers):
            q, *keys_values = backend.projections(layer, x, rotation)
            for buffer, new in zip(buffers, keys_values, strict=True):
                size = backend.head_size
                buffer.view(-1, size).index_copy_(0, places, new.reshape(-1, size))
            keys, values = buffers[:, :n_rows, :, :n_keys].transpose(2, 3)
            x = backend.block_output(layer, x, backend.attention(q, keys, values, mask))
        self._lengths = [length + 1 for length in self._lengths]
        return backend.logits(x[:, 0])[: len(next_ids)]

    def remove(self, index: int) -> None:
        """Forget a row; the last one takes its place."""
        n_keys = last_length = self._lengths.pop()
        if index < len(self._lengths):
            self._buffers[:, :, index, :, :n_keys] = self._buffers[
                :, :, len(self._lengths), :, :n_keys
            ]
            self._lengths[index] = last_length

    def _extend(self, n_keys: int) -> None:
        """Make room for ``n_keys`` tokens of each row."""
        if (n_more := n_keys - self._buffers.shape[4]) > 0:
            shape = list(self._buffers.shape)
            shape[4] = round_up(n_more, 4 * LENGTH_MULTIPLE)
            self._buffers = torch.cat([self._buffers, self._buffers.new_zeros(shape)], 4)


def _shared_beginnings(
    id_rows: Sequence[Sequence[int]], n_keys: int
) -> tuple[Any, Any, Any, dict[tuple[int, int], list[int]]]:
    """Return what is to be read so that a beginning that two neighbours share is read once.

    Returns
    -------
    ids, positions : arrays (read,)
        Tokens and their positions in their rows.
    indices : array (rows, n_keys)
        Where each token of a row is among those; anything behind its text.
    groups : dict of (start, end) to rows
        Positions that these rows read, in the order of ``ids``.
    """
    padded = np.zeros((len(id_rows), n_keys), np.int64)
    starts, groups = [0] * len(id_rows), dict[tuple[int, int], list[int]]()
    for row, ids in enumerate(id_rows):
        padded[row, : len(ids)] = ids
        if row:
            previous = id_rows[row - 1]
            n = min(len(ids), len(previous))
            is_other = padded[row, :n] != padded[row - 1, :n]
            starts[row] = (int(is_other.argmax()) if is_other.any() else n) // CHUNK * CHUNK
        if (end := round_up(len(ids), CHUNK)) > starts[row]:
            groups.setdefault((starts[row], end), []).append(row)
    indices, n_read = np.zeros_like(padded), 0
    read_ids, positions = [padded[0, :0]], [padded[0, :0]]
    for (start, end), members in groups.items():
        n_new = len(members) * (end - start)
        indices[members, start:end] = np.arange(n_read, n_read + n_new).reshape(len(members), -1)
        read_ids.append(padded[members, start:end].ravel())
        positions.append(np.tile(np.arange(start, end), len(members)))
        n_read += n_new
    for row, start in enumerate(starts):
        indices[row, :start] = indices[row - 1, :start]
    return np.concatenate(read_ids), np.concatenate(positions), indices, groups


class _ListedRows:
    """Rows of which a list keeps what there is of each."""

    _rows: list[Any]

    def remove(self, index: int) -> None:
        """Forget a row; the last one takes its place."""
        self._rows[index] = self._rows[-1]
        self._rows.pop()


class PaddedReader(_ListedRows):
    """Rows that transformers reads, padded at their front to one length; all are added at once."""

    def __init__(self, loaded_model: LoadedModel, max_rows: int) -> None:
        self._loaded_model, self.max_rows = loaded_model, max_rows
        self._cache, self._mask = DynamicCache(), torch.empty(0)
        self._rows: list[int] = []
        """Each row's place in the cache."""

    def add(self, id_rows: Sequence[Sequence[int]]) -> None:
        """Read the texts of all rows, which have one ``prompt_length``."""
        self._rows = list(range(len(id_rows)))
        full_rows = [*id_rows, *[id_rows[0]] * (self.max_rows - len(id_rows))]
        ids, self._mask = pad_left(
            full_rows, prompt_length(len(id_rows[0])), self._loaded_model.device
        )
        self._read(ids)

    def read(self, next_ids: Sequence[int]) -> torch.Tensor:
        """Read one more token of each row; return the logits of the tokens after them."""
        is_cpu = self._loaded_model.device == "cpu"
        n_rows = round_up(len(self._rows), ROW_MULTIPLE if is_cpu else self.max_rows)
        if n_rows <= len(self._mask) // 2:
            places = self._rows + self._rows[:1] * (n_rows - len(self._rows))
            kept = torch.tensor(places, device=self._mask.device)
            self._cache.batch_select_indices(kept)
            self._mask = self._mask[kept]
            self._rows = list(range(len(self._rows)))
        ids = self._mask.new_zeros(len(self._mask), 1)
        ids[self._rows, 0] = ids.new_tensor(next_ids)
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(ids), 1)], 1)
        return self._read(ids)[self._rows]

    def _read(self, ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self._loaded_model.model(
            input_ids=ids,
            attention_mask=self._mask,
            position_ids=position_ids(self._mask)[:, -ids.shape[1] :],
            past_key_values=self._cache,
            logits_to_keep=1,
        ).logits[:, -1]
        return logits


class WholeReader(_ListedRows):
    """Rows of a model whose numbers padding or a cache would change: each text is read anew."""

    max_rows = 1 << 20

    def __init__(self, loaded_model: LoadedModel) -> None:
        self._loaded_model, self._rows = loaded_model, []

    def add(self, id_rows: Sequence[Sequence[int]]) -> None:
        """Take further rows."""
        self._rows += map(list, id_rows)

    def read(self, next_ids: Sequence[int]) -> torch.Tensor:
        """Read one more token of each row; return the logits of the tokens after them."""
        for ids, next_id in zip(self._rows, next_ids, strict=True):
            ids.append(next_id)
        return torch.cat([whole_logits(self._loaded_model, ids, 1) for ids in self._rows])


Reader = FastReader | PaddedReader | WholeReader
"""What a model has read of each of its rows, which have the same bits beside any others."""


def open_reader(loaded_model: LoadedModel, max_rows: int) -> Reader:
    """Return the fastest reader that a model has."""
    if loaded_model.reads_whole:
        return WholeReader(loaded_model)
    if loaded_model.fast is not None:
        return FastReader(loaded_model.fast, max_rows)
    return PaddedReader(loaded_model, max_rows)


def whole_logits(loaded_model: LoadedModel, ids: Sequence[int], n_logits: int) -> torch.Tensor:
    """Return the logits of a text's last positions, read in one pass without padding.

    Returns
    -------
    tensor (n_logits, vocabulary), float32
    """
    logits: torch.Tensor = loaded_model.model(
        input_ids=torch.tensor([list(ids)], device=loaded_model.device),
        logits_to_keep=n_logits,
        use_cache=False if loaded_model.reads_whole else None,
    ).logits
    return logits[0, -n_logits:].float()


def prompt_length(n_tokens: int) -> int:
    """Return the length that ``PaddedReader`` pads a prompt of ``n_tokens`` to.

    The multiple is larger than that of other texts: fewer groups are faster.
    """
    return padded_length(n_tokens, 2 * LENGTH_MULTIPLE)


def pad_left(
    id_rows: Sequence[Sequence[int]], max_length: int, device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the ids of rows padded at their front, and which of them are no padding."""
    ids = torch.zeros(len(id_rows), max_length, dtype=torch.long)
    mask = torch.zeros(len(id_rows), max_length, dtype=torch.long)
    for i, row_ids in enumerate(id_rows):
        ids[i, max_length - len(row_ids) :] = torch.tensor(row_ids)
        mask[i, max_length - len(row_ids) :] = 1
    return ids.to(device), mask.to(device)


def position_ids(mask: torch.Tensor) -> torch.Tensor:
    """Return the position of each token in its text."""
    return (mask.cumsum(1) - 1).clamp_min(0)
