"""Memory of a run while it goes on: what is in flight, not what was.

``python benchmarks/run_memory.py [--items N …]`` runs ablation of items of one step each with the
model ``echo``, each size in a process of its own, and prints the resident memory above that before
the run: when a tenth of the items has ended, at most from then until nine tenths have, and at most
to the end, where estimates and reports are made. A run that kept what it did would grow with it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from cotlab.core.types import Item, Step, Suite
from cotlab.run.config import read_config
from cotlab.run.launch import start_run
from cotlab.store.database import Store
from cotlab.store.live import RunProgress

SIZES = [10_000, 100_000]


def resident_mb() -> float:
    """Return the resident memory of this process in megabytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def run_items(n: int) -> dict[str, float]:
    """Run ablation of n items, and return what it took."""
    items = [
        Item(f"i{k}", f"What is {k} + 1?", str(k + 1), (Step(0, f"{k} + 1."),)) for k in range(n)
    ]
    suite = Suite.from_items("memory", items)
    config = read_config({"provider": "echo", "model": "echo"})
    samples: list[tuple[float, float]] = []

    def sample(progress: RunProgress) -> None:
        samples.append((progress.replies / (2 * n), resident_mb()))

    with TemporaryDirectory() as folder:
        before, began, cpu = resident_mb(), time.perf_counter(), time.process_time()
        done = start_run(config, Store(Path(folder)), suite=suite, on_progress=sample)
        assert done.status == "done", done
        seconds = time.perf_counter() - began, time.process_time() - cpu
    highest = next(
        int(line.split()[1]) / 1e3
        for line in Path("/proc/self/status").read_text("utf-8").splitlines()
        if line.startswith("VmHWM")
    )
    middle = [mb for share, mb in samples if 0.1 <= share <= 0.9]
    return {
        "items": n,
        "at_tenth": middle[0] - before,
        "until_nine_tenths": max(middle) - before,
        "to_the_end": highest - before,
        "wall_s": seconds[0],
        "cpu_s": seconds[1],
    }


def main() -> None:
    """Print a row a size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=SIZES)
    parser.add_argument("--one", type=int, help="run this many items in this process")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run_items(options.one)))
        return
    print(
        "| items | at a tenth | at most until nine tenths | at most to the end | seconds | CPU |\n"
        "|---|---|---|---|---|---|"
    )
    for n in options.items:
        command = [sys.executable, __file__, "--one", str(n)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        row = json.loads(text.splitlines()[-1])
        print(
            f"| {row['items']:,} | {row['at_tenth']:.0f} MB | {row['until_nine_tenths']:.0f} MB"
            f" | {row['to_the_end']:.0f} MB | {row['wall_s']:.0f} s | {row['cpu_s']:.0f} s |",
            flush=True,
        )


if __name__ == "__main__":
    main()
