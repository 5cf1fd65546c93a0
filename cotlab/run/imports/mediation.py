"""Store published mediation scores as runs: nothing is asked, and no reply stands behind them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cotlab.core.errors import SuiteError
from cotlab.core.keys import digest
from cotlab.core.types import Item, ModelRef, Plan, ScorerSpec, Suite
from cotlab.metrics.mediation.published import (
    LEAST_DROP,
    PublishedFile,
    content_digest,
    published_scores,
)
from cotlab.run.plan import code_version, params_digest
from cotlab.run.summary import summarise
from cotlab.store import read, write
from cotlab.store.database import Store

PROVIDER = "published"
NO_QUESTION = "n/a: the published rows hold no question"
COUNTED = "n/a: one response of a published count, in no order"
"""Stands for the question of an item that only a count knows of: it is the same item as none of
another run."""
_FORM = re.compile(r"(?:^|_)(?:cmi|layers?|per|all)(?=_|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """An imported run of the store."""

    run_id: str
    """Name of the run."""
    suite: str
    """Name of its suite."""
    model: str
    """Name of its model."""
    new: bool
    """Whether it was not there before."""


def store_published(
    store: Store, file: PublishedFile, *, model: str | None = None, least_drop: float = LEAST_DROP
) -> ImportedRun:
    """Keep the rows of a published file as one run of the scorer mediation.

    The run's id follows from what the rows say and from the threshold, so that the same rows are
    kept once, whatever their file is called.

    Parameters
    ----------
    store : Store
    file : PublishedFile
        As `published_cmi` read it with the same ``least_drop``.
    model : str, optional
        Whose rows they are; by default what the file's name says beside the form of its content.
    least_drop : float, nats

    Returns
    -------
    Kept

    Raises
    ------
    SuiteError
        If the file holds no item, or an item's id is no line of printable text.
    """
    suite = _suite(file)
    run_id = f"import-{digest([content_digest(file), least_drop])[:12]}"
    name = (model or "").strip() or _FORM.sub("", suite.name).strip("_") or suite.name
    spec = ScorerSpec("mediation", 1, {"imported": file.name, "least_drop": least_drop})
    subject = ModelRef(PROVIDER, name)
    plan = Plan(suite.name, suite.digest, {"subject": subject}, (spec,))
    params = params_digest(plan, spec, {})
    with store.writing() as connection:
        new = not write.has_run(connection, run_id)
        if new:
            write.add_suite(connection, suite)
            write.add_run(
                connection,
                run_id,
                plan,
                config={},
                code_version=code_version(),
                output="",
                redacted=False,
                n_items=len(suite.items),
            )
            ended = [
                write.Ended(spec.name, spec.version, params, i, s)
                for i, s in published_scores(file).items()
            ]
            write.add_ended(connection, run_id, ended)
            write.set_status(connection, run_id, "done")
    if not new:
        row = read.get_run(store, run_id)
        plan = read.stored_plan(row)
    if new or read.run_estimates(store, run_id).empty:
        summarise(store, run_id, plan)
    return ImportedRun(run_id, plan.suite, plan.subject.name, new)


def is_imported(plan: Plan) -> bool:
    """Whether a run holds published measurements, and no request of ours."""
    return plan.subject.provider == PROVIDER


def _suite(file: PublishedFile) -> Suite:
    """Return the items of a file, of which only the ids are known."""
    if not file.counts:
        raise SuiteError(file.name, None, "", "holds no item: there is nothing to store")
    for item in file.counts:
        if not item.strip() or not item.isprintable():
            raise SuiteError(
                file.name,
                None,
                f"item {ascii(item[:60])}",
                "must be a line of printable text to be stored",
            )
    return Suite.of(
        Path(file.name).stem, (Item(item, NO_QUESTION, None, (), PROVIDER) for item in file.counts)
    )
