"""A small store to label: runs whose answers are right, wrong, of unknown worth. Run as
``queue_store.py FOLDER QUEUE RATER`` it labels whatever the queue has for a rater, each item twice
with one id, and prints what it labelled.
"""

from __future__ import annotations

import shutil
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from cotlab.core.labels import Label, Verdict
from cotlab.core.types import Item, ModelRef, Plan, Score, ScorerSpec, Step, Suite
from cotlab.review.labelling.queue import next_items
from cotlab.review.labelling.session import apply_actions
from cotlab.store import write
from cotlab.store.database import Store

RIGHT = {"i-0": 1.0, "i-1": 0.0, "i-2": None}
"""``answer_correct`` of the first items; the others have it right."""


def fill(folder: Path, n: int = 8, runs: tuple[str, ...] = ("run-1",)) -> Store:
    """A store in which each run has a composite of ``n`` items; one more item of the suite was
    never measured."""
    shutil.copytree(Path(_made(n, runs).name) / "s", folder)
    return Store(folder)


@cache
def _made(n: int, runs: tuple[str, ...]) -> TemporaryDirectory[str]:
    """One store of a kind, which the tests copy; it goes with the process."""
    made = TemporaryDirectory()
    store = Store(Path(made.name) / "s")
    suite = Suite.of(
        "small",
        [Item(f"i-{k}", f"Question {k % 5}?", "1", (Step(0, "One."),)) for k in range(n + 1)],
    )
    with store.writing() as connection:
        write.add_suite(connection, suite)
        for run in runs:
            plan = Plan(
                suite.name,
                suite.digest,
                {"subject": ModelRef("echo", run)},
                (ScorerSpec("composite", 1, {}),),
            )
            write.add_run(
                connection,
                run,
                plan,
                config={},
                code_version="t",
                output="",
                redacted=False,
                n_items=n,
            )
            write.add_ended(connection, run, [_ended(item) for item in suite.items[:n]])
    return made


def _ended(item: Item) -> write.Ended:
    right = RIGHT.get(item.id, 1.0)
    gone = {"status": "undefined", "reason": "no answer"}
    scores = (
        Score("r_raw", item.id, 0.5),
        Score("answer_correct", item.id, right, **({} if right is not None else gone)),
    )  # type: ignore[arg-type]
    return write.Ended("composite", 1, "p", item.id, scores)


def pairs(n: int = 8, run: str = "run-1") -> list[tuple[str, str, str]]:
    return [(run, f"i-{k}", "") for k in range(n)]


def submit(store: Store, label: Label) -> bool:
    """Give a label as a rater's screen does; whether it is new in the store."""
    assert label.queue is not None
    return apply_actions(store, label.queue, label.rater, [label]).written == 1


def label_all(
    store: Store, queue: str, rater: str, verdict: Verdict = "acceptable", *, twice: bool = False
) -> list[Label]:
    """Label what a queue has for a rater, perhaps pressing each key twice; the labels that landed."""
    done = []
    while found := next_items(store, queue, rater):
        (item,) = found
        label = item.label(verdict, item.prefilled)
        if submit(store, label):
            done.append(label)
        assert not (twice and submit(store, item.label("unsure", None)))
    return done


if __name__ == "__main__":
    for landed in label_all(Store(Path(sys.argv[1])), sys.argv[2], sys.argv[3], twice=True):
        print(landed.item_id)
