"""A store with a run of known reliability, people's labels of it, a calibrator, and answers that no
calibrator can speak of."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cotlab.core.types import Item, ScoreStatus, Step, Suite
from cotlab.reliability.maps import fit
from cotlab.store.database import Store
from tests.support.stores import add_run, composite, copy_of, label, use_calibrator

RUN = "run-1"
HOSTILE = "<script>alert(1)</script> **bold** [x](javascript:alert(1)) =SUM(A1)"
GAPS: dict[int, ScoreStatus] = {0: "undefined", 1: "refused", 2: "stopped", 3: "error"}
"""Position in the suite and status of the answers without a composite."""
START = datetime(2026, 1, 1, tzinfo=UTC)


def acceptable(r_raw: float) -> float:
    """The true probability that an answer of this r_raw is acceptable."""
    return 1 / (1 + math.exp(-8 * (r_raw - 0.5)))


def fill(
    folder: Path,
    n: int = 120,
    *,
    labelled: int = 100,
    fitted: bool = True,
    planned: int | None = None,
) -> Store:
    """A store whose run has ``n`` scored items of ``planned``; all but the first four have an r_raw
    from 0 to 1."""
    return copy_of(folder, _fill, n, labelled, fitted, planned)


def _fill(store: Store, n: int, labelled: int, fitted: bool, planned: int | None) -> None:
    draw = random.Random(11)
    items = [
        Item(
            f"i-{k:03} {HOSTILE}" if k == 5 else f"i-{k:03}",
            f"{HOSTILE} {k}",
            "1",
            (Step(0, HOSTILE),),
            ("maths", "law", "")[k % 3],
        )
        for k in range(planned or n)
    ]
    ended, labels = [], []
    for k, item in enumerate(items[:n]):
        raw = ((k * 37) % n + 0.5) / n
        features = dict.fromkeys("CVFRD", raw)
        if k in GAPS:
            lost = composite(item, None, features, status=GAPS[k], reason=f"why {HOSTILE}")
            ended.append(lost)
        else:
            ended.append(composite(item, raw, features))
        if len(GAPS) <= k < labelled:
            good = draw.random() < acceptable(raw)
            at = START + timedelta(minutes=k)
            labels.append(label(RUN, item.id, good, "Ann", id=f"l-{k}", at=at))
    status = "done" if len(items) == n else "stopped"
    add_run(store, RUN, Suite.from_items("synthetic", items), ended, status=status, labels=labels)
    if fitted:
        raws = [(k + 0.5) / 400 for k in range(400)]
        params = fit("platt", raws, [draw.random() < acceptable(raw) for raw in raws]).params
        report = {"defined_parts": [{"parts": list("CRVDF"), "n": 400}]}
        use_calibrator(store, params, n=400, n_positive=200, report=report)
