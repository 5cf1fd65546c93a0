"""A store whose runs have a composite with hand-made scores, and labels of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from cotlab.core.labels import Label
from cotlab.core.types import Item, ModelRef, Plan, Score, ScorerSpec, Step, Suite
from cotlab.store import write
from cotlab.store.database import Store
from cotlab.store.labels import add_labels

HOSTILE = "<script>alert(1)</script> **bold** [x](javascript:alert(1))"
PARTS = ("C", "R", "V", "D", "F")


def score_of(k: int) -> float:
    """0.30, 0.37, 0.44 … to 0.86, then from the beginning."""
    return round(0.3 + 0.07 * (k % 9), 2)


def accepted(k: int) -> bool:
    """From a score of 0.58 on two of three chains are accepted, below one of three."""
    return (k // 9) % 3 < (2 if score_of(k) >= 0.58 else 1)


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
    suite = Suite.of(f"of {run}", items)
    plan = Plan(
        suite.name,
        suite.digest,
        {"subject": ModelRef("organism", "synthetic", form="continuation")},
        (ScorerSpec("composite", 1, {}),),
    )
    at = (("chain", "reference"), ("profile", "phase3"))
    ended = []
    for k, item in enumerate(suite.items):
        gone = k >= n - undefined
        scores = [
            Score(
                "r_raw",
                item.id,
                None if gone else score_of(k),
                facet=at,
                status="undefined" if gone else "ok",
                reason="no part is defined" if gone else None,
            ),
            Score("answer_correct", item.id, 1.0, facet=at),
            *(
                Score(
                    "feature",
                    item.id,
                    None if gone else score_of(k + j),
                    facet=(*at, ("feature", part)),
                    status="undefined" if gone else "ok",
                    reason="no part is defined" if gone else None,
                )
                for j, part in enumerate(PARTS)
            ),
        ]
        ended.append(write.Ended("composite", 1, "p", item.id, tuple(scores)))
    with store.writing() as connection:
        write.add_suite(connection, suite)
        write.add_run(
            connection,
            run,
            plan,
            config={},
            code_version="test",
            output="",
            redacted=False,
            n_items=n,
        )
        write.add_ended(connection, run, ended)
        write.set_status(connection, run, "done")
        add_labels(connection, [label(run, k) for k in range(labels)])
    return store


def label(
    run: str, k: int, rater: str = "ana", *, good: bool | None = None, queue: str | None = None
) -> Label:
    """One rater's label of the k-th item; ``accepted`` unless told."""
    said = accepted(k) if good is None else good
    return Label(
        f"{run}-{k}-{rater}-{queue}-{said}",
        run,
        f"i-{k:03}",
        rater,
        "acceptable" if said else "not_acceptable",
        True,
        datetime.now(UTC),
        queue=queue,
    )
