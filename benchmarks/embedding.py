"""Sentences a second that the embedder turns into vectors, batched across items, against one at a
time.

The texts are the distinct steps of fresh word problems and of the shipped suites. Everything runs
in one thread of torch, in turns; a rate is by the processor's own seconds, so that other work
counts less, and the median over the rounds, with the least and the largest ratio of a round beside
it. ``float32`` is the same with the processor's half-precision left out; ``apart`` is the largest
difference of any two texts' cosine between the two.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from statistics import median
from unittest import mock

import torch

from cotlab.core.requests import Embed, Response
from cotlab.core.types import ModelRef
from cotlab.providers.local import embedder
from cotlab.providers.local.embedder import Embedder, open_embedder
from cotlab.suites.jsonl import load_suite
from cotlab.suites.shipped import find_suite
from cotlab.suites.wordproblems import make_suite


def texts(items: int) -> list[str]:
    suites = [
        make_suite(items, 5),
        *(load_suite(find_suite(name)) for name in ("math", "commonsense", "evaluation")),
    ]
    return list(
        dict.fromkeys(step.text for suite in suites for item in suite.items for step in item.steps)
    )


def timed(model: Embedder, said: Sequence[str], batch: int) -> tuple[float, torch.Tensor]:
    """Sentences a second of the processor and their vectors, ``batch`` requests handed over at
    once."""
    asks = [Embed(model.ref, (text,)) for text in said]
    begun = time.process_time()
    replies = [
        reply
        for at in range(0, len(asks), batch)
        for reply in model.send_batch(asks[at : at + batch])
    ]
    rate = len(said) / (time.process_time() - begun)
    return rate, torch.tensor(
        [reply.vectors[0] for reply in replies if isinstance(reply, Response) and reply.vectors]
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=120)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--embedder", default="all-MiniLM-L6-v2")
    told = parser.parse_args()
    said = texts(told.items)
    ref = ModelRef("embedder", told.embedder)
    fast = open_embedder(ref)
    with mock.patch.object(embedder, "_multiplies_bfloat16", return_value=False):
        exact = open_embedder(ref)
    found: dict[str, list[float]] = {"batched": [], "one": [], "float32": []}
    for _ in range(told.rounds):
        found["batched"].append(timed(fast, said, 384)[0])
        found["one"].append(timed(fast, said[::8], 1)[0])
        found["float32"].append(timed(exact, said, 384)[0])
    ratios = [a / b for a, b in zip(found["batched"], found["one"], strict=True)]
    one, other = timed(fast, said, 384)[1], timed(exact, said, 384)[1]
    apart = float(((one @ one.T) - (other @ other.T)).abs().max())
    size = sum(map(len, said)) / len(said)
    print(
        f"{len(said)} sentences of {size:.0f} characters, {told.rounds} rounds, one thread,"
        f" {fast.dtype}\n"
    )
    print(
        "| model | batched | one at a time | ratio | batched in float32 | cosines apart"
        " |\n|---|---|---|---|---|---|"
    )
    print(
        f"| {told.embedder} | {median(found['batched']):.0f}/s | {median(found['one']):.0f}/s |"
        f" {median(ratios):.1f} [{min(ratios):.1f}, {max(ratios):.1f}] |"
        f" {median(found['float32']):.0f}/s | {apart:.4f} |"
    )


if __name__ == "__main__":
    main()
