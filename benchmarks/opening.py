"""What it costs to open the store for one query or one write, beside a DuckDB connection made anew
each time.

Processor time and wall-clock time an opening, the two ways in turn on one file: ``python
benchmarks/opening.py``.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from cotlab.store.database import Store

ROUNDS, TIMES = 5, 20
ASKED = "SELECT count(*) FROM scores"


def measured(opening: Callable[[], None]) -> tuple[float, float]:
    """Milliseconds of processor and of wall-clock time an opening."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(TIMES):
        opening()
    return 1000 * (time.process_time() - cpu) / TIMES, 1000 * (time.perf_counter() - wall) / TIMES


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))

        def anew(read_only: bool) -> None:
            with duckdb.connect(store.path, read_only=read_only) as connection:
                connection.execute(ASKED).fetchone()

        def reading() -> None:
            with store.reading() as connection:
                connection.execute(ASKED).fetchone()

        def writing() -> None:
            with store.writing() as connection:
                connection.execute(ASKED).fetchone()

        ways: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
            "to read": (lambda: anew(True), reading),
            "to write": (lambda: anew(False), writing),
        }
        reading()
        print(
            "| opened | anew: CPU, wall | attached: CPU, wall | ratio: CPU, wall"
            " |\n|---|---|---|---|"
        )
        for name, (old, new) in ways.items():
            rounds = [(*measured(old), *measured(new)) for _ in range(ROUNDS)]
            a, b, c, d = (sorted(column)[ROUNDS // 2] for column in zip(*rounds, strict=True))
            print(
                f"| {name} | {a:.1f}, {b:.1f} ms | {c:.1f}, {d:.1f} ms | {a / c:.1f}, {b / d:.1f} |"
            )


if __name__ == "__main__":
    main()
