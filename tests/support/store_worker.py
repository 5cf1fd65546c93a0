"""What a second process does to a store in these tests: ``python store_worker.py FOLDER WHAT
NAME``."""

from __future__ import annotations

import resource
import signal
import sys
from itertools import count
from pathlib import Path

from cotlab.core.errors import StoreError
from cotlab.core.requests import Complete, Message, Response, Usage
from cotlab.core.types import ModelRef, Score
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.store.responses import ResponseLog
from cotlab.store.write import EndedItem

SCORES_AN_ITEM = 3
MODEL = ModelRef("openai_compat", "m")


def ended(item: str) -> EndedItem:
    """An item that ended, with three scores."""
    scores = tuple(Score("ccs", item, 0.5, step=i) for i in range(SCORES_AN_ITEM))
    return EndedItem("ablation", 1, "p", item, scores)


def request(text: str) -> Complete:
    return Complete(MODEL, (Message("user", text),))


def reply(asked: Complete) -> Response:
    return Response(asked.key, f"reply to {asked.messages[0].content}", usage=Usage(10, 5))


def main(folder: Path, what: str, name: str) -> None:
    store = Store(folder)
    if what == "share":
        for i in range(10):
            with store.writing() as connection:
                write.add_ended(connection, name, [ended(f"{name}-{i}")])
            print(len(read.run_scores(store, name)), flush=True)
    elif what == "write":
        for i in count():
            with store.writing() as connection:
                write.add_ended(connection, name, [ended(f"{i}")])
            print(i, flush=True)
    elif what == "hold":
        with store.writing():
            print("held", flush=True)
            sys.stdin.read()
    elif what == "full":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        room = store.path.stat().st_size + 200_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        try:
            with store.writing() as connection:
                write.add_ended(connection, name, [ended(f"{i}-{'x' * 3000}") for i in range(3000)])
        except StoreError as error:
            print(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        with store.writing() as connection:
            write.add_ended(connection, "after", [ended("more")])
        print(len(read.run_scores(store, "after")))
    elif what == "log":
        log = ResponseLog(store.log_path)
        for i in count():
            asked = request(f"{name} {i}")
            call = log.reserve(asked, name, 100, 10**9).call_id
            assert call is not None
            print("reserved", i, flush=True)
            log.settle(call, 7, "ok", (asked, reply(asked)))
            print("settled", i, flush=True)
    elif what == "sharelog":
        log = ResponseLog(store.log_path)
        for i in range(200):
            asked = request(f"{name} {i}")
            call = log.reserve(asked, "both", 1, 10**9).call_id
            assert call is not None
            log.settle(call, 1, "ok", (asked, reply(asked)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
