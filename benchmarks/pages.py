"""Server CPU of every page, first view and repeated one, on a store with runs of 1,000 items.

``python benchmarks/pages.py [--store FOLDER] [--chains FOLDER] [--page NAME …]`` makes the store
where the folder has none (some minutes), serves it, opens each page in Chromium, and reads the
processor time of the server's process from /proc: from the navigation until it stands still. The
browser is another process. Afterwards it counts what the page sends over its connection in
``QUIET_S`` seconds: a finished run is not polled.

The server has imported what its pages import: each was opened on a small store before. Before each
first view every cache of the process is dropped, so a first view is that of a new process, less its
imports, and the order of the pages does not matter. What the store keeps, it keeps. A first view
also has the server send Streamlit's files (107 for a page with a figure) to a browser without any.

``--big FOLDER`` opens them on the two stores of ``big_store.py`` instead, one after the other: ten
million scores, and the same runs of 300 items. The time that a page's queries take inside the
store's connection stands beside it: what no page can be faster than. Memory is what the process
had at most while the page was made, above what it had before.

Runs: two of 1,000 generated items with the model ``echo`` (ablation in three modes; robustness and
unfaithfulness), the labelled chains of ProcessBench (``--chains``, files gsm8k.json and math.json),
100 items with the composite score, mediation of 20 items by an organism, and 12 small runs beside
them, which Home and Runs list.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
N_ITEMS, N_COMPOSED, N_WARM_ITEMS, N_MEDIATED, N_SMALL_RUNS = 1_000, 100, 12, 20, 12
CHAIN_FILES = ("gsm8k", "math")
SETTLED_S, QUIET_S, LONGEST_S = 1.2, 4.0, 240.0
PAGES: dict[str, str] = {
    "home": "",
    "run": "run=big",
    "runs": "",
    "item": "run=big&item={item}",
    "steps": "run=big",
    "compare": "base=big&other=other",
    "robustness": "run=other",
    "unfaithfulness": "run=other",
    "mediation": "run=inner",
    "reliability": "run=chains",
    "evaluation": "runs=chains",
    "calibration": "",
    "decisions": "run=chains",
    "drift": "reference=chains&current=composed",
    "agreement": "",
    "label": "",
    "validation": "",
    "figures": "run=big",
    "new_run": "",
    "suites": "",
    "settings": "",
}
"""The pages and the query of each."""
ADDRESSES = {"home": "", "new_run": "new"}
"""The addresses of the pages that have another one than their name."""
BIG_PAGES = PAGES | {
    "run": "run=ablation",
    "item": "run=ablation&item=wp-0-0003-0",
    "steps": "run=ablation",
    "compare": "base=ablation&other=other",
    "robustness": "run=everything",
    "unfaithfulness": "run=everything",
    "mediation": "run=everything",
    "reliability": "run=everything",
    "evaluation": "runs=everything",
    "decisions": "run=everything",
    "drift": "reference=ablation&current=other",
    "figures": "run=ablation",
}
"""The same for the stores of ``big_store.py``."""
SERVER = """
import ctypes, functools, gc, os, signal, sys, time
from contextlib import contextmanager
from streamlit.testing.v1 import AppTest
warm, store, port, root, pages = sys.argv[1:6]
os.environ["COTLAB_STORE"] = warm
for entry in pages.split(" "):
    name, _, query = entry.partition("?")
    app = AppTest.from_file(root + "/cotlab/ui/main.py", default_timeout=120)
    for pair in filter(None, query.split("&")):
        key, _, value = pair.partition("=")
        app.query_params[key] = value
    app.run()
    app.switch_page(f"{root}/pages/{name}.py").run()
os.environ["COTLAB_STORE"] = store
import streamlit as st
def forget(*_):
    st.cache_data.clear()
    st.cache_resource.clear()
    for known in gc.get_objects():
        if isinstance(known, functools._lru_cache_wrapper):
            if known.__module__.startswith("cotlab."):
                known.cache_clear()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
from cotlab.store.database import Store
reading, seconds, depth = Store.reading, [0.0], [0]
@contextmanager
def timed_reading(self):
    began, depth[0] = time.process_time(), depth[0] + 1
    try:
        with reading(self) as connection:
            yield connection
    finally:
        depth[0] -= 1
        if depth[0] == 0:
            seconds[0] += time.process_time() - began
            with open(store + "/query_seconds", "w") as file:
                file.write(str(seconds[0]))
Store.reading = timed_reading
signal.signal(signal.SIGUSR1, forget)
from streamlit.web import cli
sys.argv = ["streamlit", "run", root + "/app.py", "--server.port", port]
cli.main()
"""


class PageCost(NamedTuple):
    """What it costs to open one page."""

    first_s: float
    """Processor seconds of the server for a first view."""
    repeated_s: float
    """Processor seconds of the server for a repeated view, the middle of three."""
    n_messages: int
    """Messages in both directions after the page has settled."""
    query_s: float
    """Processor seconds of the first view inside the store's connection."""
    megabytes: float
    """Most memory of the server during the first view, above what it had before."""


def run_command(store: Path, *words: str) -> None:
    """Run cotlab on the store."""
    env = {**os.environ, "COTLAB_STORE": str(store)}
    done = subprocess.run(
        [sys.executable, "-m", "cotlab", *words], env=env, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout[-1000:]}{done.stderr[-2000:]}")


def write_suites(folder: Path, chains: Path) -> tuple[Path, Path]:
    """Write the generated items and the labelled chains, and return both files."""
    folder.mkdir(parents=True, exist_ok=True)
    problems, labelled = folder / "problems.jsonl", folder / "chains.jsonl"
    run_command(
        folder, "suites", "make", "wordproblems", "--items", str(N_ITEMS), "--output", str(problems)
    )
    lines: list[str] = []
    for name in CHAIN_FILES:
        path = folder / f"{name}.jsonl"
        source = chains / f"{name}.json"
        run_command(folder, "suites", "import", "processbench", str(source), "--output", str(path))
        lines += path.read_text("utf-8").splitlines(keepends=True)
    labelled.write_text("".join(lines[:N_ITEMS]), "utf-8")
    return problems, labelled


def make_store(store: Path, suites: tuple[Path, Path], n_items: int, n_small_runs: int) -> None:
    """Make a store with the runs of the benchmark, of ``n_items`` items each."""
    problems, labelled = suites
    echo = ("--provider=echo", "--model=echo")
    all_items = f"--limit={n_items}"
    ablation = ("--scorer=ablation", "--mode=corrupt", "--mode=paraphrase", "--mode=remove")
    composed = ("--scorer=composite", "--embedder=none")
    read = ("--scorer=flags", "--scorer=text_features", "--chain=reference", *composed)
    both = ("--scorer=unfaithfulness", "--scorer=robustness")
    run_command(
        store, "run", f"--task-suite={problems}", *echo, *ablation, all_items, "--run-id=big"
    )
    run_command(store, "run", f"--task-suite={problems}", *echo, *both, all_items, "--run-id=other")
    run_command(
        store, "run", f"--task-suite={labelled}", *echo, *read, all_items, "--run-id=chains"
    )
    few = f"--limit={min(n_items, N_COMPOSED)}"
    run_command(
        store, "run", f"--task-suite={problems}", *echo, *composed, few, "--run-id=composed"
    )
    limit = f"--limit={min(n_items, N_MEDIATED)}"
    organism = ("--model=faithful-a", "--scorer=mediation", limit, "--run-id=inner")
    run_command(store, "run", "--task-suite=wordproblems", *organism)
    small = (*echo, "--limit=30", *ablation)
    for k in range(n_small_runs):
        run_command(store, "run", "--task-suite=math", *small, f"--run-id=small-{k}")


def process_seconds(pid: int) -> float:
    """Return the processor seconds of a process, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serve(store: Path, warm_store: Path, pages: list[str]) -> Iterator[tuple[int, str]]:
    """Serve a store by a process that has opened the pages on the small one before."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(warm_store), str(store), str(port), str(ROOT), " ".join(pages)]
    with (store / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, *words], cwd=ROOT, stdout=log, stderr=log
        )
    try:
        base = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{base}/_stcore/health", timeout=1).read()
                break
            except OSError:
                time.sleep(0.5)
        yield process.pid, base
    finally:
        process.kill()
        process.wait(20)


def memory(pid: int, name: str) -> float:
    """Return VmRSS (now) or VmHWM (the most since it was reset) of a process in megabytes."""
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith(name))


def query_seconds(store: Path) -> float:
    """Return the processor seconds that the server has spent inside the store's connection."""
    path = store / "query_seconds"
    return float(path.read_text("utf-8") or 0) if path.exists() else 0.0


def settle(page: Any, pid: int) -> float:
    """Wait until the server's processor time stands still, and return it."""
    began, last_change = time.monotonic(), time.monotonic()
    seconds = process_seconds(pid)
    while time.monotonic() - last_change < SETTLED_S and time.monotonic() - began < LONGEST_S:
        page.wait_for_timeout(100)
        if (now := process_seconds(pid)) - seconds >= 0.02:
            seconds, last_change = now, time.monotonic()
    return process_seconds(pid)


def view_seconds(page: Any, pid: int, address: str) -> float:
    """Open a page and return the processor seconds of the server."""
    page.goto("about:blank")
    before = settle(page, pid)
    page.goto(address, timeout=1000 * LONGEST_S)
    page.locator("h1").first.wait_for(timeout=1000 * LONGEST_S)
    return settle(page, pid) - before


def page_cost(browser: Any, pid: int, address: str, store: Path, n_repeats: int = 3) -> PageCost:
    """Measure a page: its first view, the repeated ones, and what it sends when settled."""
    messages: list[int] = []
    page = browser.new_page(viewport={"width": 1440, "height": 1000})

    def listen(connection: Any) -> None:
        connection.on("framesent", lambda _: messages.append(1))
        connection.on("framereceived", lambda _: messages.append(0))

    page.on("websocket", listen)
    os.kill(pid, signal.SIGUSR1)
    page.wait_for_timeout(300)
    settle(page, pid)
    Path(f"/proc/{pid}/clear_refs").write_text("5", "utf-8")
    megabytes, seconds_before = memory(pid, "VmRSS"), query_seconds(store)
    first_s = view_seconds(page, pid, address)
    query_s, megabytes = query_seconds(store) - seconds_before, memory(pid, "VmHWM") - megabytes
    repeated = sorted(view_seconds(page, pid, address) for _ in range(n_repeats))
    messages.clear()
    page.wait_for_timeout(1000 * QUIET_S)
    page.close()
    return PageCost(first_s, repeated[n_repeats // 2], len(messages), query_s, megabytes)


def print_pages(
    store: Path, warm_store: Path, queries: dict[str, str], names: list[str], n_repeats: int = 3
) -> None:
    """Serve a store and print what each page costs."""
    from playwright.sync_api import Error as PlaywrightError
    from playwright.sync_api import sync_playwright

    warm_pages = [f"{name}?{query}" for name, query in queries.items()]
    print(
        f"\n{store}\n| page | first view | of that queries | memory | repeated | messages when"
        " settled |\n|---|---|---|---|---|---|"
    )
    (store / "query_seconds").unlink(missing_ok=True)
    with serve(store, warm_store, warm_pages) as (pid, base), sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.goto(base)
        page.locator("h1").first.wait_for(timeout=1000 * LONGEST_S)
        settle(page, pid)
        page.close()
        for name in names:
            path = ADDRESSES.get(name, name)
            try:
                cost = page_cost(browser, pid, f"{base}/{path}?{queries[name]}", store, n_repeats)
            except PlaywrightError as error:  # one page that takes too long does not end the others
                print(f"| {name} | {str(error).splitlines()[0]} |", flush=True)
                continue
            print(
                f"| {name} | {cost.first_s:.2f} s | {cost.query_s:.2f} s | {cost.megabytes:.0f} MB"
                f" | {cost.repeated_s:.2f} s | {cost.n_messages} |",
                flush=True,
            )
        browser.close()


def main() -> None:
    """Make the store where there is none, and print the table of pages."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", type=Path, default=Path("benchmark-store"))
    parser.add_argument("--chains", type=Path, default=ROOT.parent / "shared/data/processbench")
    parser.add_argument("--page", action="append", choices=list(PAGES))
    parser.add_argument("--big", type=Path, help="folder that big_store.py filled")
    options = parser.parse_args()
    names = options.page or list(PAGES)
    if options.big is not None:
        for name in ("small", "big"):
            folder = options.big.resolve()
            print_pages(folder / name, folder / "small", BIG_PAGES, names, n_repeats=1)
        return
    store, warm_store = options.store / "big", options.store / "warm"
    suites_folder = options.store / "suites"
    if not (store / "cotlab.duckdb").exists():
        suites = write_suites(suites_folder, options.chains)
        make_store(warm_store, suites, N_WARM_ITEMS, 1)
        make_store(store, suites, N_ITEMS, N_SMALL_RUNS)
    queries = {name: query.format(item="wp-0-0003") for name, query in PAGES.items()}
    print_pages(store, warm_store, queries, names)


if __name__ == "__main__":
    main()
