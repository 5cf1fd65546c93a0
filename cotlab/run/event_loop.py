"""A coroutine in this process: from a script, inside a running event loop, and until a signal asks for its end."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any


def run_anywhere(go: Callable[[], Any]) -> Any:
    """Run a coroutine function to its end, also where this thread has a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(go())
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(go())).result()


@contextmanager
def stopping_on_signals(stop: asyncio.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM set ``stop`` once; a second one ends the process the usual way."""
    loop = asyncio.get_running_loop()
    numbers = (
        (signal.SIGINT, signal.SIGTERM)
        if threading.current_thread() is threading.main_thread()
        else ()
    )

    def give_back() -> None:
        for number in numbers:
            loop.remove_signal_handler(number)

    def once() -> None:
        print(
            "Stopping: what was sent is waited for, for it is paid for. Once more ends at once.",
            file=sys.stderr,
        )
        stop.set()
        give_back()

    for number in numbers:
        loop.add_signal_handler(number, once)
    try:
        yield
    finally:
        give_back()
