"""A store whose runs have a composite with hand-made scores, and labels of them."""

from __future__ import annotations

from pathlib import Path

from cotlab.core.labels import Label
from cotlab.core.types import Item, Step, Suite
from cotlab.store.database import Store
from tests.support import stores

HOSTILE = "<script>alert(1)</script> **bold** [x](javascript:alert(1))"
PARTS = ("C", "R", "V", "D", "F")
FACET = (("chain", "reference"), ("profile", "phase3"))


def score_of(k: int) -> float:
    """0.30, 0.37, 0.44 … to 0.86, then from the beginning."""
    return round(0.3 + 0.07 * (k % 9), 2)


def accepted(k: int) -> bool:
    """From a score of 0.58 on five of six chains are accepted, below one of six."""
    return (k // 9) % 6 < (5 if score_of(k) >= 0.58 else 1)


def fill(
    folder: Path, run: str = "run-1", n: int = 54, *, labels: int = 0, undefined: int = 1
) -> Store:
    """Add a run on ``n`` items, the last ``undefined`` of them without r_raw, and labels of its
    first items."""
    store = Store(folder)
    chain = (Step(0, "5 + 7 = 12."),)
    items = [
        Item(f"i-{k:03}", f"{run} question {k}", "12", chain, HOSTILE if k % 2 else "sums")
        for k in range(n)
    ]
    ended = []
    for k, item in enumerate(items):
        gone = k >= n - undefined
        features = {part: None if gone else score_of(k + j) for j, part in enumerate(PARTS)}
        raw, reason = None if gone else score_of(k), "no part is defined"
        ended.append(stores.composite(item, raw, features, facet=FACET, reason=reason, correct=1.0))
    rows = [label(run, k) for k in range(labels)]
    stores.add_run(store, run, Suite.from_items(f"of {run}", items), ended, labels=rows)
    return store


def label(
    run: str, k: int, rater: str = "ana", *, good: bool | None = None, queue: str | None = None
) -> Label:
    """One rater's label of the k-th item; ``accepted`` unless told."""
    said = accepted(k) if good is None else good
    return stores.label(
        run, f"i-{k:03}", said, rater, id=f"{run}-{k}-{rater}-{queue}-{said}", queue=queue
    )
