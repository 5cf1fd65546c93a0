"""Scores of runs summed up by item in the database, so that only one row an item is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from cotlab.store.database import Store


class ItemScoreSummary(NamedTuple):
    """The scores of runs by item, scorer, metric and facet, with numbers in place of texts."""

    items: list[tuple[str, str]]
    """(run, item) of each item that a run has scores of."""
    groups: list[tuple[str, str, str, str]]
    """(run, scorer, metric, facet) of each group of scores, in this order."""
    rows: pd.DataFrame
    """A row for each item of each group, in the order of the groups: ``group`` (index of
    ``groups``), ``item`` (index of ``items``), ``mean, lowest, highest`` (float, NaN where no score
    of the item is defined) and ``reason``: index from 1 of the first reason given for a score
    without a value in the reasons that were asked for, 0 where it is none of them."""

    def rows_of(self, group: int) -> pd.DataFrame:
        """Return the rows of a group."""
        start, stop = np.searchsorted(self.rows["group"].to_numpy(), (group, group + 1))
        return self.rows.iloc[start:stop]


def item_score_summary(
    store: Store, runs: Sequence[str], reasons: Sequence[str] = ()
) -> ItemScoreSummary:
    """Return the scores of runs, one row for each item, scorer, metric and facet.

    Texts are most of such a table: each item and each group of scores is read once.

    Parameters
    ----------
    store : Store
    runs : sequence of str
        Run ids.
    reasons : sequence of str
        Reasons of a missing value that are told apart.
    """
    parameters = {"runs": list(dict.fromkeys(runs))}
    with store.reading() as connection:
        items = connection.execute(
            """
            SELECT run, item_id FROM scores WHERE list_contains($runs, run)
            GROUP BY ALL ORDER BY run, item_id
            """,
            parameters,
        ).fetchall()
        groups = connection.execute(
            """
            SELECT DISTINCT run, scorer, metric, facet FROM scores
            WHERE list_contains($runs, run) ORDER BY run, scorer, metric, facet
            """,
            parameters,
        ).fetchall()
        table = connection.sql(
            """
            WITH numbered_items AS (
                SELECT *, (row_number() OVER (ORDER BY run, item_id))::INTEGER - 1 AS item
                FROM (SELECT DISTINCT run, item_id FROM scores WHERE list_contains($runs, run))),
            numbered_groups AS (
                SELECT *, (row_number() OVER (ORDER BY run, scorer, metric, facet))::INTEGER - 1
                       AS "group"
                FROM (SELECT DISTINCT run, scorer, metric, facet FROM scores
                      WHERE list_contains($runs, run)))
            SELECT g."group", i.item,
                   avg(s.value) AS mean, min(s.value) AS lowest, max(s.value) AS highest,
                   coalesce(list_position($reasons, min(s.reason) FILTER (s.value IS NULL)), 0)
                   ::SMALLINT AS reason
            FROM scores s JOIN numbered_items i ON (i.run, i.item_id) = (s.run, s.item_id)
            JOIN numbered_groups g
              ON (g.run, g.scorer, g.metric, g.facet) = (s.run, s.scorer, s.metric, s.facet)
            WHERE list_contains($runs, s.run) GROUP BY g."group", i.item
            """,
            params={**parameters, "reasons": list(reasons)},
        ).to_arrow_table()
    frame = table.to_pandas()
    order = np.argsort(frame["group"].to_numpy(), kind="stable")
    return ItemScoreSummary(items, groups, frame.take(order))


def load_chain_characters(store: Store, runs: Sequence[str]) -> dict[tuple[str, str], int]:
    """Return (run, item) → characters of the suite's chain, for scored items that have one.

    An item of a redacted suite has none: its steps are hashes.
    """
    rows = store.query_rows(
        """
        WITH scored AS (SELECT DISTINCT run, item_id FROM scores WHERE list_contains($runs, run))
        SELECT r.id, i.id, len(array_to_string(i.steps, ''))
        FROM runs r JOIN items i ON i.suite = r.suite
        JOIN scored s ON s.run = r.id AND s.item_id = i.id
        WHERE list_contains($runs, r.id) AND len(i.steps) > 0 AND i.meta IS NOT NULL
        """,
        {"runs": list(dict.fromkeys(runs))},
    )
    return {(run, item): int(n_characters) for run, item, n_characters in rows}


def count_missing_values(
    store: Store, run: str, metric: str, facets: Sequence[str]
) -> pd.DataFrame:
    """Return why scores of a metric have no value, the most frequent reason first.

    Parameters
    ----------
    store : Store
    run : str
        Id of the run.
    metric : str
        Name of the metric.
    facets : sequence of str
        Facets of the scores that count, as the store writes them.

    Returns
    -------
    DataFrame
        ``reason`` (str), ``n_scores`` and ``n_items`` (int), of the items that have no value of
        the metric at all; an item counts with its first reason.
    """
    return store.query_frame(
        """
        WITH empty AS (
            SELECT item_id, count(*) AS n, min(reason) AS reason FROM scores
            WHERE run = $run AND metric = $metric AND list_contains($facets, facet)
            GROUP BY item_id HAVING count(value) = 0
        )
        SELECT coalesce(reason, 'no reason given') AS reason, sum(n)::BIGINT AS n_scores,
               count(*) AS n_items
        FROM empty GROUP BY ALL ORDER BY n_items DESC, reason
        """,
        {"run": run, "metric": metric, "facets": list(facets)},
    )


NOTHING_MEASURED = "nothing measured"
"""What the status "done" is called of a run of ``list_unmeasured_runs``."""


def list_unmeasured_runs(
    store: Store, metrics: Sequence[str], run: str | None = None
) -> frozenset[str]:
    """Return the runs that have scores and measured nothing of their model.

    None of their scores has a value; or none of those of ``metrics``, which were tried, and no
    value of another metric rests on a reply: the length of a suite's chain says nothing of a model.

    Parameters
    ----------
    store : Store
    metrics : sequence of str
        Metrics of what a model does, as verdicts are made from.
    run : str or None
        Look at this run only.
    """
    # most runs have such a value: of millions of scores, only those of the other runs are grouped
    rows = store.query_rows(
        """
        SELECT run, count(value) = 0 FROM scores
        WHERE ($run IS NULL OR run = $run) AND run NOT IN (
            SELECT DISTINCT run FROM scores
            WHERE value IS NOT NULL AND ($run IS NULL OR run = $run)
              AND metric IN (SELECT unnest($metrics))
        )
        GROUP BY run
        HAVING count(value) = 0 OR count(*) FILTER (list_contains($metrics, metric)) > 0
        """,
        {"run": run, "metrics": list(metrics)},
    )
    doubtful = [name for name, is_empty in rows if not is_empty]
    replied = store.query_rows(
        "SELECT DISTINCT run FROM scores WHERE list_contains($runs, run) AND value IS NOT NULL AND"
        " len(evidence) > 0",
        {"runs": doubtful},
    )
    return frozenset(name for name, _ in rows) - {name for (name,) in replied}
