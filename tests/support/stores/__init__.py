"""Stores for tests: one builder of runs, labels and calibrators. Each module here is a kind of
store that it builds."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import EllipsisType
from typing import Any

from cotlab.core.labels import Label
from cotlab.core.types import Item, ModelRef, Plan, Score, ScorerSpec, ScoreStatus, Suite
from cotlab.store import calibrators, write
from cotlab.store.database import Store
from cotlab.store.labels import add_labels

MODEL = ModelRef("organism", "synthetic", form="continuation")


def add_run(
    store: Store,
    run: str,
    suite: Suite,
    ended: Sequence[write.EndedItem],
    *,
    models: Mapping[str, ModelRef] | None = None,
    scorers: Iterable[str] = ("composite",),
    tags: Mapping[str, str] | None = None,
    n_items: int | None = None,
    status: str | None = "done",
    note: str | None = None,
    labels: Iterable[Label] = (),
    params: Mapping[str, Mapping[str, Any]] | None = None,
) -> str:
    """Add a run with its suite, scores and labels; returns its id. With ``status`` None it stays
    planned. ``params`` are the parameters of scorers by name."""
    plan = Plan(
        suite.name,
        suite.digest,
        dict(models or {"subject": MODEL}),
        tuple(ScorerSpec(name, 1, dict((params or {}).get(name, {}))) for name in scorers),
        tags=dict(tags or {}),
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
            n_items=len(suite.items) if n_items is None else n_items,
        )
        write.add_ended(connection, run, ended)
        if status is not None:
            write.set_status(connection, run, status, note)
        add_labels(connection, labels)
    return run


def composite(
    item: Item,
    r_raw: float | None,
    features: Mapping[str, float | None],
    *,
    facet: tuple[tuple[str, str], ...] = (),
    status: ScoreStatus = "undefined",
    reason: str = "not measured",
    correct: float | None | EllipsisType = ...,
) -> write.EndedItem:
    """The composite of one item: r_raw, its features and perhaps whether the answer is right.

    ``status`` and ``reason`` are those of a value that is missing.
    """

    def score(metric: str, value: float | None, *more: tuple[str, str]) -> Score:
        lost: dict[str, Any] = {} if value is not None else {"status": status, "reason": reason}
        return Score(metric, item.id, value, facet=(*facet, *more), **lost)

    scores = [score("r_raw", r_raw)]
    if correct is not ...:
        scores.append(score("answer_correct", correct))
    scores += [score("feature", value, ("feature", name)) for name, value in features.items()]
    return write.EndedItem("composite", 1, "p", item.id, tuple(scores))


def label(
    run: str,
    item: str,
    good: bool,
    rater: str = "ana",
    *,
    id: str | None = None,
    at: datetime | None = None,
    queue: str | None = None,
) -> Label:
    """A rater's label of an item whose answer is right, given now unless ``at`` is told."""
    return Label(
        id or f"{run}-{item}-{rater}-{queue}-{good}",
        run,
        item,
        rater,
        "acceptable" if good else "not_acceptable",
        True,
        at or datetime.now(UTC),
        queue=queue,
    )


def use_calibrator(
    store: Store, params: Mapping[str, Any], *, n: int, n_positive: int, report: Mapping[str, Any]
) -> None:
    """Put a Platt map into use for all domains."""
    with store.writing() as connection:
        version = calibrators.add_calibrator(
            connection,
            method="platt",
            params={"all": params, "domains": {}},
            weights=None,
            labels_digest="d",
            n=n,
            n_positive=n_positive,
            report=report,
            author="bo",
        )
        calibrators.activate_calibrator(connection, version, author="bo", reason="the first")


def copy_of(folder: Path, fill: Callable[..., None], *arguments: Any) -> Store:
    """A copy in ``folder`` of the store that ``fill(store, *arguments)`` makes once a process."""
    shutil.copytree(Path(_template(fill, *arguments).name) / "s", folder)
    return Store(folder)


@cache
def _template(fill: Callable[..., None], *arguments: Any) -> TemporaryDirectory[str]:
    made = TemporaryDirectory()
    fill(Store(Path(made.name) / "s"), *arguments)
    return made
