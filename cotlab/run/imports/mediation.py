"""Store published mediation scores as runs: nothing is asked, and no reply stands behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cotlab.core.errors import SuiteError
from cotlab.core.keys import digest
from cotlab.core.types import Item, ModelRef, Plan, Score, ScorerSpec, Suite
from cotlab.metrics.mediation.published import (
    MIN_TOTAL_DROP,
    PublishedFile,
    content_digest,
    published_scores,
)
from cotlab.run.plan import code_version, params_digest
from cotlab.run.summary import summarise
from cotlab.store import read, write
from cotlab.store.database import Store

PUBLISHED_PROVIDER = "published"
NO_QUESTION = "n/a: the published rows hold no question"
COUNTED_QUESTION = "n/a: one response of a published count, in no order"
"""Stands for the question of an item that only a count knows of: it is the same item as none of
another run."""
ImportedScores = Mapping[str, Mapping[str, tuple[Score, ...]]]
"""Scorer → item id → scores."""
_FORM_PATTERN = re.compile(
    r"(?:^|_)(?:cmi|layers?|per|all|suite|cot|bypass|results?|records?|single|test|example)(?=_|$)",
    re.IGNORECASE,
)
"""Parts of a file's name that say its form, and nothing of its model."""
_GENERIC_FOLDERS = {"data", "results", "causal_module", "modelsrun", "good", "bad"}
"""Folders that are named after no model."""


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """An imported run of the store."""

    run_id: str
    """Name of the run."""
    suite: str
    """Name of its suite."""
    model: str
    """Name of its model."""
    is_new: bool
    """Whether it was not there before."""


def store_published_file(
    store: Store,
    published_file: PublishedFile,
    *,
    model: str | None = None,
    least_drop: float = MIN_TOTAL_DROP,
) -> ImportedRun:
    """Keep the rows of a published file as one run of the scorer mediation.

    The run's id follows from what the rows say and from the threshold, so that the same rows are
    kept once, whatever their file is called.

    Parameters
    ----------
    store : Store
    published_file : PublishedFile
        As `published_cmi` read it with the same ``least_drop``.
    model : str, optional
        Whose rows they are; by default what the file's name says beside the form of its content,
        else the name of its folder.
    least_drop : float, nats

    Returns
    -------
    ImportedRun

    Raises
    ------
    SuiteError
        If the file holds no item, or an item's id is no line of printable text.
    """
    suite = _published_suite(published_file)
    run_id = f"import-{digest([content_digest(published_file), least_drop])[:12]}"
    name = (model or "").strip() or _model_name(published_file.name)
    spec = ScorerSpec("mediation", 1, {"imported": published_file.name, "least_drop": least_drop})
    subject = ModelRef(PUBLISHED_PROVIDER, name)
    plan = Plan(suite.name, suite.digest, {"subject": subject}, (spec,))
    return store_imported_run(
        store, run_id, suite, plan, {spec.name: published_scores(published_file)}
    )


def store_imported_run(
    store: Store, run_id: str, suite: Suite, plan: Plan, scores: ImportedScores, note: str = ""
) -> ImportedRun:
    """Store scores as a run that has ended, unless it is there already."""
    with store.writing() as connection:
        is_new = not write.has_run(connection, run_id)
        if is_new:
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
            ended_items = [
                write.EndedItem(
                    spec.name, spec.version, params_digest(plan, spec, {}), item, item_scores
                )
                for spec in plan.scorers
                for item, item_scores in scores[spec.name].items()
            ]
            write.add_ended(connection, run_id, ended_items)
            write.set_status(connection, run_id, "done", note or None)
    if not is_new:
        plan = read.plan_from_row(read.get_run(store, run_id))
    if is_new or read.run_estimates(store, run_id).empty:
        summarise(store, run_id, plan)
    return ImportedRun(run_id, plan.suite, plan.subject.name, is_new)


def is_imported(plan: Plan) -> bool:
    """Whether a run holds published measurements, and no request of ours."""
    return plan.subject.provider == PUBLISHED_PROVIDER


def stated_model_name(file_name: str) -> str:
    """Return the model that a file's name says beside the form of its content; "" for none."""
    model_name = _FORM_PATTERN.sub("", Path(file_name).stem).strip("_")
    return model_name if model_name.strip(" ()0123456789") else ""  # "(1)" is a second download


def _model_name(file_name: str) -> str:
    """Return the model that a file's name says, else its folder's, else the file's own name."""
    if model_name := stated_model_name(file_name):
        return model_name
    path = Path(file_name)
    folders = (folder.name for folder in path.absolute().parents)
    return next((name for name in folders if name and name not in _GENERIC_FOLDERS), path.stem)


def _published_suite(published_file: PublishedFile) -> Suite:
    """Return the items of a file, of which only the ids are known."""
    if not published_file.n_rows_by_item:
        raise SuiteError(published_file.name, None, "", "holds no item: there is nothing to store")
    for item in published_file.n_rows_by_item:
        if not item.strip() or not item.isprintable():
            message = "must be a line of printable text to be stored"
            raise SuiteError(published_file.name, None, f"item {ascii(item[:60])}", message)
    items = (
        Item(item, NO_QUESTION, None, (), PUBLISHED_PROVIDER)
        for item in published_file.n_rows_by_item
    )
    return Suite.from_items(Path(published_file.name).stem, items)
