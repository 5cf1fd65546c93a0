"""Keep what is loaded already out of garbage collection, while work makes many objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loaded_objects_frozen() -> Iterator[None]:
    """Let garbage collection leave out the objects that are there now, within the context.

    A full collection looks at every object, and the libraries of a run have a million: .2 s each
    time. Objects that are made within the context are collected as ever. Without effect where
    objects are frozen already.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
