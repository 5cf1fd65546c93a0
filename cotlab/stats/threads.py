"""Small fits on one thread: two threads that wait for each other at each product of small matrices cost ten times as much."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """The linear algebra of numpy and scipy keeps to one thread in the block, or in a function that this decorates.

    Notes
    -----
    For fits of some hundred rows: what they compute is the same to the last bit. The limit holds
    for the whole process.
    """
    import scipy.optimize  # noqa: F401 - what is not loaded yet cannot be limited
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield
