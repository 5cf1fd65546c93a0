"""Batches whose shape depends on each request alone, so that a number has no neighbours.

A matrix product rounds differently in another shape. Texts are therefore padded to a multiple of
``LENGTH_MULTIPLE`` tokens and batched with texts of equal padded length only, and batches are
padded to full rows: on a CPU to a multiple of ``ROW_MULTIPLE``, from which on MKL's products give
each row the same bits whatever the number of rows; elsewhere to a constant number.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

LENGTH_MULTIPLE = 16
"""Padded lengths are multiples of it: the widest vector of floats that CPUs have."""
ROW_MULTIPLE = 4
"""Batches on a CPU have a multiple of it as rows; fewer rows take other kernels."""
ACCELERATOR_ROWS = 32
"""Rows of each batch elsewhere, where kernels are chosen by the number of rows."""

MAX_TEXT_TOKENS = 4096
"""Most tokens of a batch of texts that are read but not continued."""

Entry = TypeVar("Entry")
Shape = TypeVar("Shape", bound=Hashable)


def round_up(n: int, multiple: int) -> int:
    """Return the smallest multiple of ``multiple`` that is at least ``n``."""
    return -(-n // multiple) * multiple


def padded_length(n_tokens: int, multiple: int = LENGTH_MULTIPLE) -> int:
    """Return the length that a text is padded to: one token of padding at least.

    Libraries take another path where a batch has no padding at all.
    """
    return round_up(n_tokens + 1, multiple)


def row_multiple(device: str, n_tokens: int, max_tokens: int) -> int:
    """Return the number whose multiples batches of ``n_tokens`` have as rows on ``device``."""
    if device == "cpu":
        return ROW_MULTIPLE
    return min(ACCELERATOR_ROWS, max(1, max_tokens // n_tokens))


def can_share_lengths(device: str, dtype: torch.dtype) -> bool:
    """Return whether a row's bits do not depend on how much padding stands beside its text."""
    return device == "cpu" and dtype == torch.float32 and torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]


def equal_shape_batches(
    entries: Iterable[tuple[Shape, int, Entry]], max_tokens: int, device: str = "cpu"
) -> Iterator[tuple[Shape, list[Entry], int]]:
    """Yield a shape, a batch of its entries, and the number of rows to pad the batch to.

    Parameters
    ----------
    entries : iterable of (shape, n_tokens, entry)
        ``n_tokens`` follows from the shape. Order within a shape is kept.
    max_tokens : int
        Most tokens of a batch, where one has more rows than ``row_multiple``.
    device : str
    """
    entries_by_shape: dict[Shape, list[Entry]] = {}
    n_tokens_by_shape: dict[Shape, int] = {}
    for shape, n_tokens, entry in entries:
        entries_by_shape.setdefault(shape, []).append(entry)
        n_tokens_by_shape[shape] = n_tokens
    for shape, shape_entries in entries_by_shape.items():
        n_tokens = n_tokens_by_shape[shape]
        multiple = row_multiple(device, n_tokens, max_tokens)
        max_rows = (
            max(multiple, max_tokens // n_tokens // multiple * multiple)
            if device == "cpu"
            else multiple
        )
        for start in range(0, len(shape_entries), max_rows):
            batch = shape_entries[start : start + max_rows]
            yield shape, batch, round_up(len(batch), multiple)


def text_batches(
    entries: Iterable[tuple[int, Entry]], max_length: int, device: str = "cpu"
) -> Iterator[tuple[int, list[Entry], int]]:
    """Yield a padded length, a batch of texts, and the number of rows to pad the batch to.

    Parameters
    ----------
    entries : iterable of (n_tokens, entry)
    max_length : int
        Most tokens that the model takes.
    device : str
    """
    lengths = [(n, min(padded_length(n), max_length), entry) for n, entry in entries]
    shapes = [((length, length == n), length, entry) for n, length, entry in lengths]
    for (length, _), batch, n_rows in equal_shape_batches(shapes, MAX_TEXT_TOKENS, device):
        yield length, batch, n_rows


def use_reproducible_products() -> None:
    """Let MKL give each row the same bits in any thread; no effect after its first product.

    A ``MKL_CBWR`` that is set stays. On other libraries it changes nothing.
    """
    os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")


@contextmanager
def single_torch_thread() -> Iterator[None]:
    """Limit torch to one thread within the context.

    On shared cores the threads of a small model wait longer than they work.
    """
    n_threads_before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads_before)
