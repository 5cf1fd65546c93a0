"""Store the step scores of a FaithCheck or cotlab report as a run; no text stands behind them."""

from __future__ import annotations

from dataclasses import replace

from cotlab.core.keys import digest
from cotlab.core.program import Scorer
from cotlab.core.registry import SCORERS
from cotlab.core.types import Item, Plan, Score, ScorerSpec, Suite
from cotlab.run.imports.mediation import (
    NO_QUESTION,
    PUBLISHED_PROVIDER,
    ImportedRun,
    store_imported_run,
)
from cotlab.store.database import Store
from cotlab.suites.importers.question_answer import ImportedReport

_SCORER = "ablation"
_FACET = (("imported", "yes"), ("mode", "remove"))
"""Facet of a score whose report names no mode: FaithCheck removes a step, and does nothing else."""


def store_imported_report(store: Store, report: ImportedReport, name: str) -> ImportedRun:
    """Keep the step scores of a report as a run of the scorer ablation; a second time adds nothing.

    RRR is computed from them anew, with the report's threshold, or FaithCheck's where it has none.

    Parameters
    ----------
    store : Store
    report : ImportedReport
    name : str
        Name of the suite, whose items are known by their ids alone.
    """
    scores_by_item: dict[str, tuple[Score, ...]] = {}
    for score in report.scores:
        facet = tuple(sorted({**dict(_FACET), **dict(score.facet)}.items()))
        scores = scores_by_item.get(score.item_id, ())
        scores_by_item[score.item_id] = (*scores, replace(score, facet=facet))
    items = [Item(item, NO_QUESTION, None, (), PUBLISHED_PROVIDER) for item in scores_by_item]
    suite = Suite.from_items(name, items)
    scorer: Scorer = SCORERS[_SCORER]
    first_score = report.scores[0]
    modes = sorted({dict(score.facet).get("mode", "remove") for score in report.scores})
    options = {**scorer.options, "metric": first_score.metric, "modes": modes, "imported": name}
    if report.ccs_threshold is not None:
        options["ccs_threshold"] = report.ccs_threshold
    spec = ScorerSpec(_SCORER, scorer.version, options)
    subject = replace(report.model, provider=PUBLISHED_PROVIDER)
    run_id = (
        f"import-{digest([suite.digest, report.model, report.suite_hash, scores_by_item])[:12]}"
    )
    plan = Plan(suite.name, suite.digest, {"subject": subject}, (spec,))
    note = f"Imported from a report on a suite of SHA-256 {report.suite_hash[:16]}: no texts."
    return store_imported_run(store, run_id, suite, plan, {_SCORER: scores_by_item}, note)
