"""Runs with a composite of five known parts and labels that follow it, for calibrators to be fitted
on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np

from cotlab.core.types import Item, ModelRef, Suite
from cotlab.stats.composite import EXAMPLE_WEIGHTS
from cotlab.store.database import Store
from tests.support.stores import add_run, composite, label

HOSTILE = "<script>alert(1)</script>'; DROP TABLE calibrators; -- =cmd()"
PARTS = tuple(EXAMPLE_WEIGHTS)


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
    slope: float = 14.0,
) -> None:
    """A run of ``n`` items in two domains, two a question; the last one has no r_raw. The first
    ``labels`` are labelled.

    The larger ``slope``, the better r_raw predicts the labels; 0: they do not depend on it.
    ``undefined`` has the parts that an item lacks, by its position: its r_raw averages the others.
    """
    rng, facet = np.random.default_rng(seed), (("chain", chain), ("profile", profile))
    items = [
        Item(f"i-{k:03}", f"Question {k // 2}?", "1", (), "sums" if k % 4 else HOSTILE)
        for k in range(n)
    ]
    ended, rows = [], []
    for k, item in enumerate(items):
        parts = dict(zip(PARTS, rng.random(5).tolist(), strict=True))
        for part in (undefined or {}).get(k, ""):
            del parts[part]
        raw = sum(EXAMPLE_WEIGHTS[part] * value for part, value in parts.items()) / sum(
            EXAMPLE_WEIGHTS[part] for part in parts
        )
        scored = None if k == n - 1 else raw
        ended.append(composite(item, scored, parts, facet=facet, status="stopped", reason=HOSTILE))
        good = bool(rng.random() < 1 / (1 + np.exp(-slope * (raw - 0.5))))
        at = datetime(2026, 1, 1, tzinfo=UTC)
        rows.append(label(run, item.id, good, HOSTILE, id=f"{run}-{k}", at=at))
    add_run(
        store,
        run,
        Suite.from_items(f"suite {run}", items),
        ended,
        models={"subject": ModelRef("organism", "x")},
        status=None,
        labels=rows[: n if labels is None else labels],
    )
