"""What the tables of figures are made from: one run as it is stored, read once, and what of it is wanted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import pandas as pd

from cotlab.core.errors import ConfigError
from cotlab.core.requests import Response
from cotlab.core.types import Item, Plan, ScorerSpec
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.responses import ResponseLog

MAX_RUNS = 12
"""So many runs stand in one figure at most."""
Exchange = tuple[dict[str, Any] | None, dict[str, Any] | None]
Scope = Literal["run", "item", "suite", "store"]


class Choice(NamedTuple):
    """Which of several tables a figure is drawn from; None takes the first, as the page of the figure does.

    ``setting`` is mediation's: chain, given, source and control, joined by "~".
    """

    item: str | None = None
    metric: str | None = None
    mode: str | None = None
    setting: str | None = None
    perturbation: str | None = None
    span: str | None = None
    classifier: str | None = None

    def chosen(self) -> dict[str, str]:
        """What was chosen, by name."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    def select(self, name: str, known: list[str]) -> str:
        """The chosen one of ``known``, else its first; ConfigError where what was chosen is not among them."""
        value = getattr(self, name)
        if value is not None and value not in known:
            raise ConfigError(
                f"{name} {value!r} is not in this run; there are: {', '.join(known[:20])}"
            )
        return str(value) if value is not None else known[0]


DEFAULT_CHOICE = Choice()


class FigureData(NamedTuple):
    """The table that a figure is drawn from, what its subtitle says beside it, and what was chosen."""

    table: pd.DataFrame
    note: str = ""
    choice: Choice = DEFAULT_CHOICE


class NoFigure(NamedTuple):
    """Why a run does not have a figure."""

    reason: str


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A figure's way from the store.

    ``figure`` is the name of its builder, ``of`` what one table is of, ``make`` a function of a
    run. Of ``metrics`` a run has at least one where it can have the figure; without any named it
    always can. ``runs`` is how many it takes: this one, and others with tags on its suite.
    """

    figure: str
    of: Scope
    make: Callable[[Source, Choice], FigureData | NoFigure]
    metrics: tuple[str, ...] = ()
    runs: int = 1

    def can_be_in(self, source: Source) -> bool:
        """Whether a run may have the figure, told without making its table."""
        if self.metrics and not source.scores["metric"].isin(self.metrics).any():
            return False
        return self.runs < 2 or len(source.tagged_runs) >= self.runs

    def __call__(self, source: Source, choice: Choice = DEFAULT_CHOICE) -> FigureData | NoFigure:
        return self.make(source, choice)


class Source:
    """One run; each of its tables is read when it is first wanted.

    Raises
    ------
    UnknownName
        If the store has no such run.
    """

    def __init__(self, store: Store, run_id: str) -> None:
        self.store, self.run_id = store, run_id
        self.row = read.get_run(store, run_id)

    @cached_property
    def plan(self) -> Plan:
        return read.stored_plan(self.row)

    @cached_property
    def tagged_runs(self) -> list[Source]:
        """This run and the others with tags on its suite, the newest first; at most ``MOST_RUNS``."""
        rows = read.list_runs(self.store).to_dict("records")
        alike = [
            str(r["id"])
            for r in rows
            if r["suite"] == self.row["suite"] and read.stored_plan(r).tags
        ]
        others = [run for run in alike if run != self.run_id][: MAX_RUNS - 1]
        order = [str(r["id"]) for r in rows if str(r["id"]) in (self.run_id, *others)]
        return [self if run == self.run_id else Source(self.store, run) for run in order]

    @cached_property
    def scores(self) -> pd.DataFrame:
        """All scores, with a column for the mode."""
        return with_mode(read.run_scores(self.store, self.run_id))

    @cached_property
    def estimates(self) -> pd.DataFrame:
        """All estimates, with columns for the mode and the metric that a statistic is of."""
        table = read.run_estimates(self.store, self.run_id)
        facets = [json.loads(text) for text in table["facet"]]
        return table.assign(
            mode=[f.get("mode", "") for f in facets], ccs=[f.get("metric", "") for f in facets]
        )

    @cached_property
    def items(self) -> list[str]:
        """The items that were scored, in the order of the suite."""
        rows = read.items_of_run(self.store, self.run_id)
        return [str(item_id) for item_id in rows["id"]]

    def item(self, choice: Choice, known: list[str] | None = None) -> Item:
        """The chosen item, or the first (of ``known``)."""
        item_id = choice.select("item", [i for i in self.items if known is None or i in known])
        return read.get_item(self.store, self.row["suite"], item_id)

    def scorer(self, name: str) -> ScorerSpec | None:
        return next((spec for spec in self.plan.scorers if spec.name == name), None)

    def exchanges(self, keys: tuple[str, ...]) -> Mapping[str, Exchange]:
        """Request and reply behind each key, as far as the log holds them."""
        log = ResponseLog(self.store.log_path)
        try:
            return log.requests(keys) if keys else {}
        finally:
            log.close()

    def responses(self, keys: tuple[str, ...]) -> dict[str, Response]:
        """The whole reply of each key that the log holds in full."""
        log = ResponseLog(self.store.log_path)
        try:
            replies = {key: log.get(key) for key in keys}
        finally:
            log.close()
        return {key: reply for key, reply in replies.items() if reply is not None}

    @property
    def partial(self) -> str:
        """What is said on every figure of a run that has not scored all of its items, or some with errors; else ""."""
        ended, errors = int(self.row["n_ended"]), int(self.row["n_errors"])
        total = int(self.row["n_items"]) * len(self.plan.scorers)
        return (
            f"Partial: {ended} of {total} items scored, {errors} scores with an error."
            if ended < total or errors
            else ""
        )


def with_mode(table: pd.DataFrame) -> pd.DataFrame:
    """Scores with a column mode, "" where they have none."""
    modes = {text: json.loads(text).get("mode", "") for text in table["facet"].unique()}
    return table.assign(mode=table["facet"].map(modes))
