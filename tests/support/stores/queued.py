"""A small store to label: runs whose answers are right, wrong, of unknown worth.

Run as ``python -m tests.support.stores.queued FOLDER QUEUE RATER`` it labels whatever the queue has
for a rater, each item twice with one id, and prints what it labelled.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cotlab.core.labels import Label, Verdict
from cotlab.core.types import Item, ModelRef, Step, Suite
from cotlab.review.labelling.queue import LeasedItem, lease_next_items
from cotlab.review.labelling.session import apply_actions
from cotlab.store.database import Store
from tests.support.stores import add_run, composite, copy_of

RIGHT = {"i-0": 1.0, "i-1": 0.0, "i-2": None}
"""``answer_correct`` of the first items; the others have it right."""


def fill(folder: Path, n: int = 8, runs: tuple[str, ...] = ("run-1",)) -> Store:
    """A store in which each run has a composite of ``n`` items; one more item of the suite was
    never measured."""
    return copy_of(folder, _fill, n, runs)


def _fill(store: Store, n: int, runs: tuple[str, ...]) -> None:
    suite = Suite.from_items(
        "small",
        [Item(f"i-{k}", f"Question {k % 5}?", "1", (Step(0, "One."),)) for k in range(n + 1)],
    )
    ended = [
        composite(item, 0.5, {}, reason="no answer", correct=RIGHT.get(item.id, 1.0))
        for item in suite.items[:n]
    ]
    for run in runs:
        models = {"subject": ModelRef("echo", run)}
        add_run(store, run, suite, ended, models=models, n_items=n, status=None)


def pairs(n: int = 8, run: str = "run-1") -> list[tuple[str, str, str]]:
    return [(run, f"i-{k}", "") for k in range(n)]


def made_label(
    leased: LeasedItem, reasoning: Verdict, answer_correct: bool | None, **more: Any
) -> Label:
    """Return the rater's label of a leased item, given now."""
    key = leased.label_id, leased.run, leased.item_id, leased.rater
    at = datetime.now(UTC)
    return Label(*key, reasoning, answer_correct, at, queue=leased.queue, **more)


def submit(store: Store, label: Label) -> bool:
    """Give a label as a rater's screen does; whether it is new in the store."""
    assert label.queue is not None
    return apply_actions(store, label.queue, label.rater, [label]).n_written == 1


def label_all(
    store: Store, queue: str, rater: str, verdict: Verdict = "acceptable", *, twice: bool = False
) -> list[Label]:
    """Label what a queue has for a rater, perhaps pressing each key twice; returns the labels."""
    done = []
    while found := lease_next_items(store, queue, rater):
        (item,) = found
        label = made_label(item, verdict, item.prefilled_correct)
        if submit(store, label):
            done.append(label)
        assert not (twice and submit(store, made_label(item, "unsure", None)))
    return done


if __name__ == "__main__":
    for landed in label_all(Store(Path(sys.argv[1])), sys.argv[2], sys.argv[3], twice=True):
        print(landed.item_id)
