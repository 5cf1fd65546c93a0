"""Runs with a composite of five known parts and labels that follow it, for calibrators to be fitted
on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np

from cotlab.core.labels import Label
from cotlab.core.types import Item, ModelRef, Plan, Score, ScorerSpec, Suite
from cotlab.stats.composite import WEIGHTS
from cotlab.store import write
from cotlab.store.database import Store
from cotlab.store.labels import add_labels

HOSTILE = "<script>alert(1)</script>'; DROP TABLE calibrators; -- =cmd()"
PARTS = tuple(WEIGHTS)


def fill(
    store: Store,
    run: str = "run-1",
    n: int = 60,
    *,
    seed: int = 0,
    labels: int | None = None,
    profile: str = "phase3",
    chain: str = "reference",
    undefined: Mapping[int, str] | None = None,
) -> None:
    """A run of ``n`` items in two domains, two a question; the last one has no r_raw. The first
    ``labels`` are labelled.

    ``undefined`` has the parts that an item lacks, by its place: its r_raw averages the others.
    """
    rng, at = np.random.default_rng(seed), (("chain", chain), ("profile", profile))
    items = [
        Item(f"i-{k:03}", f"Question {k // 2}?", "1", (), "sums" if k % 4 else HOSTILE)
        for k in range(n)
    ]
    suite, ended, said = Suite.of(f"suite {run}", items), [], []
    for k, item in enumerate(items):
        parts = dict(zip(PARTS, rng.random(5).tolist(), strict=True))
        parts = {
            part: value for part, value in parts.items() if part not in (undefined or {}).get(k, "")
        }
        raw = sum(WEIGHTS[part] * value for part, value in parts.items()) / sum(
            WEIGHTS[part] for part in parts
        )
        lost = k == n - 1
        scores = [
            Score(
                "r_raw",
                item.id,
                None if lost else raw,
                facet=at,
                status="stopped" if lost else "ok",
                reason=HOSTILE if lost else None,
            ),
            *(
                Score("feature", item.id, value, facet=(*at, ("feature", part)))
                for part, value in parts.items()
            ),
        ]
        ended.append(write.Ended("composite", 1, "p", item.id, tuple(scores)))
        good = bool(rng.random() < 1 / (1 + np.exp(-14 * (raw - 0.5))))
        said.append(
            Label(
                f"{run}-{k}",
                run,
                item.id,
                HOSTILE,
                "acceptable" if good else "not_acceptable",
                True,
                datetime(2026, 1, 1, tzinfo=UTC),
            )
        )
    plan = Plan(
        suite.name,
        suite.digest,
        {"subject": ModelRef("organism", "x")},
        (ScorerSpec("composite", 1, {}),),
    )
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
        add_labels(connection, said[: n if labels is None else labels])
