"""A limit of one thread for small fits: threads that wait for each other cost ten times as much."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Keep the linear algebra of numpy and scipy to one thread, in a block or as a decorator.

    Notes
    -----
    For fits of some hundred rows; results are the same to the last bit. The limit holds for the
    whole process.
    """
    import scipy.optimize  # noqa: F401 - what is not loaded yet cannot be limited
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield
