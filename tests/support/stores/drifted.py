"""Stores with runs whose feature vectors are drawn from known distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from cotlab.core.labels import Decision
from cotlab.core.types import Item, Step, Suite
from cotlab.reliability.maps import fit
from cotlab.store import decisions
from cotlab.store.database import Store
from cotlab.store.labels import add_labels
from tests.support import stores


def vectors(n: int, seed: int, shift: float = 0.0) -> dict[str, list[float | None]]:
    """r_raw, C, V in [0, 1] and a discrete D; with a shift V lies lower, and r_raw with it. One V
    in ten is undefined."""
    rng = np.random.default_rng(seed)
    c, v = rng.beta(8, 2, n), np.clip(rng.beta(8, 2, n) - shift, 0, 1)
    gone = rng.random(n) < 0.1
    return {
        "r_raw": list((c + v) / 2),
        "C": list(c),
        "V": [None if g else float(x) for g, x in zip(gone, v, strict=True)],
        "D": list(rng.choice([0.2, 0.4], n)),
    }


def add_run(
    store: Store,
    run: str,
    table: Mapping[str, Sequence[float | None]],
    *,
    first: int = 0,
    tags: Mapping[str, str] | None = None,
) -> str:
    """A finished run with a composite on questions numbered from ``first``; returns its id."""
    n = len(table["r_raw"])
    chain = (Step(0, "One."),)
    suite = Suite.from_items(
        "drawn", [Item(f"i-{first + k:03}", f"Question {first + k}?", "1", chain) for k in range(n)]
    )
    ended = []
    for k, item in enumerate(suite.items):
        row = {name: _plain(values[k]) for name, values in table.items()}
        ended.append(stores.composite(item, row.pop("r_raw"), row))
    return stores.add_run(store, run, suite, ended, tags=tags)


def _plain(value: float | None) -> float | None:
    return None if value is None else float(value)


def label(store: Store, run: str, accepted: Mapping[str, bool], rater: str = "ann") -> None:
    """One label of each of these items, given now."""
    rows = [
        stores.label(run, item, good, rater, id=f"{run}-{item}-{rater}")
        for item, good in accepted.items()
    ]
    with store.writing() as connection:
        add_labels(connection, rows)


def calibrated(
    store: Store, scores: Sequence[float], accepted: Sequence[bool], fitted: float
) -> None:
    """A calibrator in use, of Platt's map of these labels, whose report says ``fitted`` of its
    Brier score."""
    made = fit("platt", np.asarray(scores), np.asarray(accepted))
    sets = [{"parts": ["C", "V", "D"], "n": len(scores) - 1}, {"parts": ["C", "D"], "n": 1}]
    report = {
        "chosen": "platt",
        "methods": [{"method": "platt", "brier": {"point": fitted}}],
        "runs": ["ref"],
        "defined_parts": sets,
    }
    stores.use_calibrator(
        store, made.params, n=len(scores), n_positive=int(np.sum(accepted)), report=report
    )


def decide(store: Store, run: str, actions: Mapping[str, str]) -> None:
    """The decision on each of these items, as it stands in the store."""
    reason, at = "r_cal is at least high", datetime.now(UTC)
    rows = [
        Decision(f"{run}-{item}", run, item, "", 0.9, 0.9, action, reason, 0.3, 0.8, 1, 1, at, "bo")  # type: ignore[arg-type]
        for item, action in actions.items()
    ]
    with store.writing() as connection:
        decisions.add_decisions(connection, rows)
