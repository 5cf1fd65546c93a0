"""How many threads torch works in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def single_torch_thread() -> Iterator[None]:
    """One thread of torch while the block runs: on shared cores the threads of a small model wait longer than they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
