"""One run as it is stored: typed, and each of its tables read from the store when it is needed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from cotlab.core.requests import Response
from cotlab.core.types import Item, Plan, ScorerSpec
from cotlab.metrics import ablation as redundancy
from cotlab.metrics.cards import with_clusters_as_items
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.responses import ResponseLog

MAX_RUNS = 12
"""Most runs in one figure."""
LoggedExchange = tuple[dict[str, Any] | None, dict[str, Any] | None]
"""A request and its reply, as JSON values; None where the log does not hold it."""


@dataclass(frozen=True, eq=False)
class RunView:
    """One run as it is stored.

    Make one with ``RunView.read``, or with ``RunView.from_row`` from a row of the store; tables are
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
    """Message on how it ended, if any."""
    name: str
    """Name that people gave it; "" for none."""
    user_note: str
    """Note that people gave it; "" for none."""
    is_archived: bool
    """Whether it is left out of lists."""
    estimate_json: str | None
    """The cost estimate before the run; ``estimate`` parses it."""

    @classmethod
    def read(cls, store: Store, run_id: str) -> RunView:
        """Read a run; UnknownName if the store has no such run."""
        return cls.from_row(store, read.get_run(store, run_id))

    @classmethod
    def from_row(cls, store: Store, row: Mapping[str, Any]) -> RunView:
        """Return the view of a row as ``list_runs`` and ``get_run`` give it."""
        values: dict[str, Any] = {}
        for field in fields(cls)[1:]:
            value = row[field.name.removesuffix("_json")]
            if field.type == "int":
                value = int(value)
            values[field.name] = None if pd.isna(value) else value
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
    def partial_note(self) -> str:
        """Return the note on figures of a run with items not scored or scores in error, else ""."""
        n_pairs = self.n_items * len(self.plan.scorers)
        return (
            f"Partial: {self.n_ended} of {n_pairs} items scored, {self.n_errors} scores with an"
            " error."
            if self.n_ended < n_pairs or self.n_errors
            else ""
        )

    def scorer(self, name: str) -> ScorerSpec | None:
        """Return a scorer of the plan with its options; None where the plan does not have it."""
        return next((spec for spec in self.plan.scorers if spec.name == name), None)

    @cached_property
    def tagged_runs(self) -> list[RunView]:
        """Return this run and tagged runs on its suite, the newest first, up to ``MAX_RUNS``."""
        runs = read.list_runs(self.store)
        rows = runs[runs["suite"] == self.suite].to_dict("records")
        tagged_ids = [
            row["id"] for row in rows if row["id"] != self.id and read.plan_from_row(row).tags
        ]
        chosen_ids = {self.id, *tagged_ids[: MAX_RUNS - 1]}
        return [
            self if row["id"] == self.id else RunView.from_row(self.store, row)
            for row in rows
            if row["id"] in chosen_ids
        ]

    @cached_property
    def score_groups(self) -> pd.DataFrame:
        """Return what the run has scores of, with a column for the mode."""
        return with_facet_columns(read.count_score_groups(self.store, self.id), "mode")

    @cached_property
    def metrics(self) -> frozenset[str]:
        """Return the metrics that the run has scores of."""
        return frozenset(self.score_groups["metric"])

    @cached_property
    def step_metrics(self) -> frozenset[str]:
        """Return the metrics that the run has scores of single steps of."""
        groups = self.score_groups
        return frozenset(groups[groups["n_steps"] > 0]["metric"])

    def scores(
        self, *metrics: str, facet: Mapping[str, str] | None = None, with_evidence: bool = True
    ) -> pd.DataFrame:
        """Return the scores of some metrics, with a column for the mode.

        Without the column evidence they are read in half the time.
        """
        return self._read_scores(metrics, tuple(sorted((facet or {}).items())), with_evidence)

    def item_scores(self, item_id: str) -> pd.DataFrame:
        """Return all scores of one item, with a column for the mode."""
        return with_facet_columns(read.select_scores(self.store, self.id, items=[item_id]), "mode")

    @cached_property
    def _read_scores(self) -> Any:
        """Return the reader of scores, with a cache that ends with the view."""

        def read_scores(
            metrics: Sequence[str], facet: Sequence[tuple[str, str]], with_evidence: bool
        ) -> pd.DataFrame:
            rows = read.select_scores(
                self.store,
                self.id,
                metrics=metrics,
                facet=dict(facet),
                with_evidence=with_evidence,
            )
            return with_facet_columns(rows, "mode")

        return lru_cache(maxsize=12)(read_scores)

    @cached_property
    def estimates(self) -> pd.DataFrame:
        """Return all estimates, with columns for the mode and the metric a statistic is of."""
        table = with_facet_columns(read.run_estimates(self.store, self.id), "mode")
        return table.assign(ccs=facet_column(table, "metric"))

    @cached_property
    def items(self) -> list[str]:
        """Return the items that were scored, in the order of the suite."""
        return read.list_scored_items(self.store, self.id)

    def items_with(self, *metrics: str, with_value: bool = False) -> list[str]:
        """Return the items with scores (or with values, where ``with_value``) of some metrics."""
        return read.list_scored_items(self.store, self.id, metrics, only_defined=with_value)

    def item(self, item_id: str) -> Item:
        """Return one item of the run's suite."""
        return read.get_item(self.store, self.suite, item_id)

    def exchanges(self, keys: tuple[str, ...]) -> Mapping[str, LoggedExchange]:
        """Return request and reply behind each key, as far as the log holds them."""
        with closing(ResponseLog(self.store.log_path)) as log:
            return log.load_exchanges(keys) if keys else {}

    def responses(self, keys: tuple[str, ...]) -> dict[str, Response]:
        """Return the reply of each key that the log holds in full."""
        with closing(ResponseLog(self.store.log_path)) as log:
            replies = {key: log.get(key) for key in keys}
        return {key: reply for key, reply in replies.items() if reply is not None}


def run_view(store: Store, run_id: str) -> RunView:
    """Return the view of a run, from the cache where the run has not changed."""
    return _cached_view(store.folder, tuple(read.get_run(store, run_id).items()))


@lru_cache(maxsize=8)
def _cached_view(folder: Path, row: tuple[tuple[str, Any], ...]) -> RunView:
    return RunView.from_row(Store(folder), dict(row))


def position_estimates(
    view: RunView,
    metric: str,
    facet: Mapping[str, str] | None = None,
    flag_metrics: frozenset[str] = redundancy.FLAG_METRICS,
) -> pd.DataFrame:
    """Return the means of a step metric by position, with intervals resampled from the plan's seed.

    The one source of these numbers: for the pages, the report, figures and their files.
    """
    scores = with_clusters_as_items(
        view.scores(metric, facet=facet, with_evidence=False),
        read.get_cluster_by_item(view.store, view.id),
    )
    return redundancy.position_table(scores, view.plan.seed, flag_metrics)


def facet_column(table: pd.DataFrame, name: str) -> pd.Series:
    """Return one part of the facet of each row, "" where a row does not have it."""
    return _facet_columns(table, (name,))[name]


def with_facet_columns(table: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Add a column for each named part of the facets of scores or estimates."""
    return table.assign(**_facet_columns(table, names))


def _facet_columns(table: pd.DataFrame, names: Sequence[str]) -> dict[str, pd.Series]:
    codes, texts = pd.factorize(table["facet"])
    facets = [json.loads(text) for text in texts]
    columns = {}
    for name in names:
        values = pd.array([facet.get(name, "") for facet in facets], dtype="str")
        columns[name] = pd.Series(values.take(codes), table.index)
    return columns
