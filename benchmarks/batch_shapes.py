"""Speed of the model in this process against an earlier version (``--version``, default the last
commit), for changes in how requests are batched.

Checks out that version's package and organisms beside this one and runs both in processes of their
own, in turns. Prints for each kind and size of batch the median CPU seconds of both, and the median
of earlier ÷ now, where 1 is the same speed.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from cotlab.core.requests import (
    PREFIX_INDEX,
    Complete,
    Embed,
    Locate,
    LogProb,
    Message,
    Patched,
    PatchRow,
    Request,
    Response,
    Source,
    Span,
)
from cotlab.core.types import ModelRef
from cotlab.providers.local.embedder import open_embedder
from cotlab.providers.local.provider import LocalModel, open_organism
from cotlab.run.config import read_config
from cotlab.run.launch import start_run
from cotlab.store.database import Store
from cotlab.suites.wordproblems import make_suite

REPOSITORY = Path(__file__).resolve().parents[1]
REF = ModelRef("organism", "r50", form="continuation")
EMBEDDER = ModelRef("embedder", "all-MiniLM-L6-v2")
ITEMS = make_suite(60, 5).items
N_LAYERS = 4


def completions() -> list[Request]:
    return [
        Complete(REF, (Message("user", item.question),), max_tokens=n, temperature=t)
        for i, item in enumerate(ITEMS)
        for n, t in ((40 if i % 3 else 7, 0.0), (24, 0.8 if i % 2 else 0.0))
    ]


def answers() -> list[Request]:
    return [
        LogProb(REF, (Message("user", item.question),), (" 3", " 12 is the answer", " 7 + 5"))
        for item in ITEMS
    ]


def texts() -> list[Request]:
    steps = [step.text for item in ITEMS for step in item.steps]
    return [
        Embed(EMBEDDER, (text,))
        for text in (*steps, *(" ".join(steps[i : i + 8]) for i in range(40)))
    ]


def patches(model: LocalModel) -> list[Request]:
    rng, requests = random.Random(1), list[Request]()
    messages = [(Message("user", item.question),) for item in ITEMS]
    chains = ["\n".join(step.text for step in item.steps) for item in ITEMS]
    replies = model.send_batch(
        [
            Locate(REF, message, (Span(PREFIX_INDEX, 0, len(chain)),), prefix=chain)
            for message, chain in zip(messages, chains, strict=True)
        ]
    )
    located = [
        reply.located.positions[0]
        for reply in replies
        if isinstance(reply, Response) and reply.located
    ]
    every = tuple(range(N_LAYERS))
    for i, chain in enumerate(located):
        donor = (i + 1) % len(located)
        size = min(len(chain), len(located[donor]))
        rows = [PatchRow(every, chain[:size], located[donor][:size])]
        rows += [PatchRow((layer,), chain[:size], located[donor][:size]) for layer in every]
        for share in (0.4, 0.8):
            at = tuple(sorted(rng.sample(chain[:size], max(1, int(share * size)))))
            rows.append(PatchRow(every, at, tuple(rng.sample(located[donor], len(at)))))
        source = Source("run", messages[donor], chains[donor])
        requests.append(Patched(REF, messages[i], " 12", source, tuple(rows), prefix=chains[i]))
        filler = Source("filler", messages[i], chains[i], chain)
        whole = (PatchRow(every, chain, chain), PatchRow(every[:2], chain[1:], chain[1:]))
        requests.append(Patched(REF, messages[i], " 12", filler, whole, prefix=chains[i]))
    return requests


def make_tasks() -> dict[str, Callable[[], object]]:
    """Return what is timed by name."""
    model, embedder = open_organism(REF), open_embedder(EMBEDDER)
    patch_requests = patches(model)

    def send(provider: LocalModel, requests: Sequence[Request], size: int) -> None:
        for i in range(0, len(requests), size):
            provider.send_batch(requests[i : i + size])

    def run_mediation() -> None:
        options = {"task_suite": "wordproblems", "model": "r50", "scorer": ["mediation"]}
        with tempfile.TemporaryDirectory() as folder:
            start_run(read_config({**options, "limit": 12}), Store(Path(folder)))

    return {
        "prompts, all at once": lambda: send(model, completions(), 1000),
        "prompts, 12 at a time": lambda: send(model, completions(), 12),
        "log-probabilities, all at once": lambda: send(model, answers(), 1000),
        "log-probabilities, 12 at a time": lambda: send(model, answers(), 12),
        "vectors, all at once": lambda: embedder.send_batch(texts()),
        # a model remembers the residuals of its texts, so each time has one of its own
        "patches, all at once": lambda: send(open_organism(REF), patch_requests, 1000),
        "patches, 12 at a time": lambda: send(open_organism(REF), patch_requests, 12),
        "patches, 2 at a time": lambda: send(open_organism(REF), patch_requests, 2),
        "a run of mediation, 12 items": run_mediation,
    }


def answer_times() -> None:
    """Read names of tasks from standard input; print the CPU seconds of each."""
    tasks, out = make_tasks(), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a run prints is no time
    for task in tasks.values():
        task()
    print(*tasks, sep="\t", file=out, flush=True)
    for line in sys.stdin:
        began = time.process_time()
        tasks[line.strip()]()
        print(time.process_time() - began, file=out, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", default="HEAD", help="a commit with these module names")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default="", help="part of the names of what is timed")
    parser.add_argument("--answer-times", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.answer_times:
        answer_times()
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", args.version, "cotlab", "data", "pages"],
            cwd=REPOSITORY,
            check=True,
            capture_output=True,
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        timers = [
            subprocess.Popen(
                [sys.executable, __file__, "--answer-times"],
                cwd=package_folder,
                env={**os.environ, "PYTHONPATH": str(package_folder), "PYTHONSAFEPATH": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for package_folder in (Path(folder), REPOSITORY)
        ]

        def ask(timer: subprocess.Popen[str], line: str = "") -> str:
            assert timer.stdin is not None and timer.stdout is not None
            if line:
                print(line, file=timer.stdin, flush=True)
            return timer.stdout.readline().strip()

        names, current_names = [ask(timer).split("\t") for timer in timers]
        if names != current_names:
            sys.exit(f"{args.version} cannot run this benchmark: its modules have other names.")
        for name in names:
            if args.only not in name:
                continue
            pairs = []
            for i in range(args.repeats):
                order = timers if i % 2 else timers[::-1]
                seconds = {id(timer): float(ask(timer, name)) for timer in order}
                pairs.append([seconds[id(timer)] for timer in timers])
            earlier, now = (statistics.median(column) for column in zip(*pairs, strict=True))
            ratio = statistics.median(a / b for a, b in pairs)
            print(f"{name:32} {earlier:7.3f} s {now:7.3f} s  ratio {ratio:.2f}", flush=True)
        for timer in timers:
            assert timer.stdin is not None
            timer.stdin.close()
            timer.wait()


if __name__ == "__main__":
    main()
