"""A store with a run of known reliability, people's labels of it, a calibrator, and answers that no
calibrator can speak of."""

from __future__ import annotations

import math
import random
import shutil
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from cotlab.core.labels import Label
from cotlab.core.types import Item, ModelRef, Plan, Score, ScorerSpec, Step, Suite
from cotlab.reliability.calibrator import fit
from cotlab.store import write
from cotlab.store.calibrators import activate_calibrator, add_calibrator
from cotlab.store.database import Store
from cotlab.store.labels import add_labels

RUN = "run-1"
HOSTILE = "<script>alert(1)</script> **bold** [x](javascript:alert(1)) =SUM(A1)"
GAPS = {0: "undefined", 1: "refused", 2: "stopped", 3: "error"}
"""Place in the suite and status of the answers without a composite."""
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
    shutil.copytree(Path(_made(n, labelled, fitted, planned).name) / "s", folder)
    return Store(folder)


@cache
def _made(n: int, labelled: int, fitted: bool, planned: int | None) -> TemporaryDirectory[str]:
    """One store of a kind, which the tests copy; it goes with the process."""
    made = TemporaryDirectory()
    store, draw = Store(Path(made.name) / "s"), random.Random(11)
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
    suite = Suite.of("synthetic", items)
    plan = Plan(
        suite.name,
        suite.digest,
        {"subject": ModelRef("organism", "synthetic", form="continuation")},
        (ScorerSpec("composite", 1, {}),),
    )
    ended, labels = [], []
    for k, item in enumerate(items[:n]):
        raw = ((k * 37) % n + 0.5) / n
        told = [Score("feature", item.id, raw, facet=(("feature", part),)) for part in "CVFRD"]
        if k in GAPS:
            told.append(Score("r_raw", item.id, None, status=GAPS[k], reason=f"why {HOSTILE}"))  # type: ignore[arg-type]
        else:
            told.append(Score("r_raw", item.id, raw))
        ended.append(write.Ended("composite", 1, "p", item.id, tuple(told)))
        if len(GAPS) <= k < labelled:
            good = draw.random() < acceptable(raw)
            said = "acceptable" if good else "not_acceptable"
            labels.append(
                Label(f"l-{k}", RUN, item.id, "Ann", said, True, START + timedelta(minutes=k))
            )  # type: ignore[arg-type]
    with store.writing() as connection:
        write.add_suite(connection, suite)
        write.add_run(
            connection,
            RUN,
            plan,
            config={},
            code_version="test",
            output="",
            redacted=False,
            n_items=len(items),
        )
        write.add_ended(connection, RUN, ended)
        write.set_status(connection, RUN, "done" if len(items) == n else "stopped")
        add_labels(connection, labels)
        if fitted:
            raws = [(k + 0.5) / 400 for k in range(400)]
            params = fit("platt", raws, [draw.random() < acceptable(raw) for raw in raws]).params
            version = add_calibrator(
                connection,
                method="platt",
                params={"all": params, "domains": {}},
                weights=None,
                labels_digest="d",
                n=400,
                n_positive=200,
                report={"defined_parts": [{"parts": list("CRVDF"), "n": 400}]},
                by="Ann",
            )
            activate_calibrator(connection, version, by="Ann", reason="first")
    return made
