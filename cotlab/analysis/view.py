"""One run as it is stored: typed, and each of its tables read from the store when it is needed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from cotlab.core.requests import Response
from cotlab.core.types import Item, Plan, ScorerSpec
from cotlab.metrics.ablation import redundancy
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.responses import ResponseLog

MAX_RUNS = 12
"""Most runs in one figure."""
Exchange = tuple[dict[str, Any] | None, dict[str, Any] | None]
"""A request and its reply, as JSON values; None where the log does not hold it."""


@dataclass(frozen=True, eq=False)
class RunView:
    """One run as it is stored.

    Make one with ``RunView.read``, or with ``RunView.of_row`` where the row is at hand; tables are
    read when they are first needed. ``run_view`` keeps the views of runs that have not changed.
    """

    store: Store
    """The store that holds the run."""
    id: str
    """Id of the run."""
    suite: str
    """Digest of its suite."""
    suite_name: str
    """Name of its suite."""
    model: str
    """The subject, as provider/name."""
    plan_json: str
    """Its plan as canonical JSON; ``plan`` parses it."""
    plan_digest: str
    """Digest of the plan."""
    config_json: str
    """The configuration it was started with; ``config`` parses it."""
    code_version: str
    """Version of the code that started it."""
    output: str
    """The folder of its reports."""
    redacted: bool
    """Whether texts are stored as their SHA-256."""
    status: str
    """planned, running, stopped, budget, failed or done, as stored."""
    planned_at: datetime
    """When it was started."""
    ended_at: datetime | None
    """When it ended last; None before that."""
    n_items: int
    """Items that it is to score."""
    n_ended: int
    """Pairs of an item and a scorer that ended without an error."""
    n_errors: int
    """Scores with the status error."""
    revision: int
    """Grows whenever scores of the run are written."""
    asked: int
    """Requests sent."""
    hits: int
    """Requests answered from the response log."""
    failed: int
    """Requests that failed for good."""
    spent_micro: int
    """Micro-dollars spent."""
    saved_micro: int
    """Micro-dollars that replies from the log would have cost."""
    note: str | None
    """Why it ended as it did, where there is something to say."""
    estimate_json: str | None
    """What it was expected to cost; ``estimate`` parses it."""

    @classmethod
    def read(cls, store: Store, run_id: str) -> RunView:
        """Read a run; UnknownName if the store has no such run."""
        return cls.of_row(store, read.get_run(store, run_id))

    @classmethod
    def of_row(cls, store: Store, row: Mapping[str, Any]) -> RunView:
        """Return the view of a row as ``list_runs`` and ``get_run`` give it."""
        values = {
            field.name: row[field.name.removesuffix("_json")]
            for field in fields(cls)
            if field.name != "store"
        }
        values = {name: None if pd.isna(value) else value for name, value in values.items()}
        for field in fields(cls):
            if field.type == "int":
                values[field.name] = int(values[field.name])
        return cls(store, **values)

    @property
    def run_id(self) -> str:
        """Return the id of the run."""
        return self.id

    @cached_property
    def plan(self) -> Plan:
        """Return the plan of the run."""
        return read.plan_from_json(self.plan_json)

    @cached_property
    def config(self) -> dict[str, Any]:
        """Return the configuration that the run was started with, as JSON values."""
        return dict(json.loads(self.config_json))

    @cached_property
    def estimate(self) -> dict[str, Any]:
        """Return what the run was expected to cost; empty where nothing was estimated."""
        return dict(json.loads(self.estimate_json)) if self.estimate_json else {}

    @property
    def partial(self) -> str:
        """Return the note on figures of a run with items not scored or scores in error, else ""."""
        total = self.n_items * len(self.plan.scorers)
        return (
            f"Partial: {self.n_ended} of {total} items scored, {self.n_errors} scores with an"
            " error."
            if self.n_ended < total or self.n_errors
            else ""
        )

    def scorer(self, name: str) -> ScorerSpec | None:
        """Return a scorer of the plan with its options; None where the plan does not have it."""
        return next((spec for spec in self.plan.scorers if spec.name == name), None)

    @cached_property
    def tagged_runs(self) -> list[RunView]:
        """Return this run and tagged runs on its suite, the newest first, up to ``MAX_RUNS``."""
        rows = [
            r for r in read.list_runs(self.store).to_dict("records") if r["suite"] == self.suite
        ]
        alike = [str(r["id"]) for r in rows if read.stored_plan(r).tags]
        chosen = [run for run in alike if run != self.id][: MAX_RUNS - 1] + [self.id]
        return [
            self if r["id"] == self.id else RunView.of_row(self.store, r)
            for r in rows
            if r["id"] in chosen
        ]

    @cached_property
    def score_groups(self) -> pd.DataFrame:
        """Return what the run has scores of, with a column for the mode."""
        return with_mode(read.score_groups(self.store, self.id))

    @cached_property
    def metrics(self) -> frozenset[str]:
        """Return the metrics that the run has scores of."""
        return frozenset(self.score_groups["metric"])

    @cached_property
    def step_metrics(self) -> frozenset[str]:
        """Return the metrics that the run has scores of single steps of."""
        groups = self.score_groups
        return frozenset(groups[groups["n_steps"] > 0]["metric"])

    def scores(self, *metrics: str, facet: Mapping[str, str] | None = None) -> pd.DataFrame:
        """Return the scores of some metrics, with a column for the mode."""
        return self._scores(metrics, tuple(sorted((facet or {}).items())))

    def item_scores(self, item_id: str) -> pd.DataFrame:
        """Return all scores of one item, with a column for the mode."""
        return with_mode(read.select_scores(self.store, self.id, items=[item_id]))

    @cached_property
    def _scores(self) -> Any:
        """Return the reader of scores, with a cache that ends with the view."""

        def scores(metrics: Sequence[str], facet: Sequence[tuple[str, str]]) -> pd.DataFrame:
            return with_mode(
                read.select_scores(self.store, self.id, metrics=metrics, facet=dict(facet))
            )

        return lru_cache(maxsize=4)(scores)

    @cached_property
    def estimates(self) -> pd.DataFrame:
        """Return all estimates, with columns for the mode and the metric a statistic is of."""
        table = read.run_estimates(self.store, self.id)
        facets = [json.loads(text) for text in table["facet"]]
        return table.assign(
            mode=[f.get("mode", "") for f in facets], ccs=[f.get("metric", "") for f in facets]
        )

    @cached_property
    def items(self) -> list[str]:
        """Return the items that were scored, in the order of the suite."""
        return read.scored_items(self.store, self.id)

    def items_with(self, *metrics: str, defined: bool = False) -> list[str]:
        """Return the items with scores (or with values, where ``defined``) of some metrics."""
        return read.scored_items(self.store, self.id, metrics, defined=defined)

    def item(self, item_id: str) -> Item:
        """Return one item of the run's suite."""
        return read.get_item(self.store, self.suite, item_id)

    def exchanges(self, keys: tuple[str, ...]) -> Mapping[str, Exchange]:
        """Return request and reply behind each key, as far as the log holds them."""
        log = ResponseLog(self.store.log_path)
        try:
            return log.requests(keys) if keys else {}
        finally:
            log.close()

    def responses(self, keys: tuple[str, ...]) -> dict[str, Response]:
        """Return the reply of each key that the log holds in full."""
        log = ResponseLog(self.store.log_path)
        try:
            replies = {key: log.get(key) for key in keys}
        finally:
            log.close()
        return {key: reply for key, reply in replies.items() if reply is not None}


def run_view(store: Store, run_id: str) -> RunView:
    """Return the view of a run, the one from before where the run has not changed since."""
    return _view(store.folder, tuple(read.get_run(store, run_id).items()))


@lru_cache(maxsize=8)
def _view(folder: Path, row: tuple[tuple[str, Any], ...]) -> RunView:
    return RunView.of_row(Store(folder), dict(row))


def with_mode(table: pd.DataFrame) -> pd.DataFrame:
    """Return scores with a column mode, "" where they have none."""
    modes = {text: json.loads(text).get("mode", "") for text in table["facet"].unique()}
    return table.assign(mode=table["facet"].map(modes))


def position_estimates(
    view: RunView,
    metric: str,
    facet: Mapping[str, str] | None = None,
    flags: frozenset[str] = redundancy.FLAGS,
) -> pd.DataFrame:
    """Return the means of a step metric by position, with intervals drawn from the plan's seed.

    The one source of these numbers: for the pages, the report, figures and their files.
    """
    return redundancy.position_table(view.scores(metric, facet=facet), view.plan.seed, flags)
