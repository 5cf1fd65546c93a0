"""Scores of runs read as numbers, and summed up by item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from cotlab.store.database import Store

_NO_RANK = 2**15
"""Rank of the reason of an item that has none."""
# Temporary tables have known sizes, so that the database joins millions of scores with them and
# not the other way round, which takes gigabytes.
_ITEMS_SQL = """
    CREATE OR REPLACE TEMP TABLE numbered_items AS
    SELECT *, (row_number() OVER (ORDER BY run, item_id))::INTEGER - 1 AS number
    FROM (SELECT DISTINCT run, item_id FROM scores WHERE list_contains($runs, run))
    """
_GROUPS_SQL = """
    CREATE OR REPLACE TEMP TABLE numbered_groups AS
    SELECT *, (row_number() OVER (ORDER BY run, scorer, metric, facet))::INTEGER - 1 AS number
    FROM (SELECT DISTINCT run, scorer, metric, facet FROM scores
          WHERE list_contains($runs, run) AND ($metrics IS NULL OR list_contains($metrics, metric)))
    """
_SCORES_SQL = """
    SELECT g.number AS "group", i.number AS item, s.value, coalesce(s.step, 2147483647) AS step,
           coalesce(s.sample, 2147483647) AS sample,
           CASE WHEN s.value IS NULL AND s.reason IS NOT NULL
                THEN 2 * len(list_filter($reasons, lambda text: text < s.reason))
                     + list_contains($reasons, s.reason)::INTEGER
                ELSE -1 END::SMALLINT AS rank
    FROM scores s
    JOIN numbered_groups g
      ON (g.run, g.scorer, g.metric, g.facet) = (s.run, s.scorer, s.metric, s.facet)
    JOIN numbered_items i ON (i.run, i.item_id) = (s.run, s.item_id)
    WHERE list_contains($runs, s.run)
    """


class NumberedScores(NamedTuple):
    """Scores with numbers in place of texts, which are most of a table's cost."""

    items: list[tuple[str, str]]
    """(run, item) of each item that a run has scores of, in this order."""
    groups: list[tuple[str, str, str, str]]
    """(run, scorer, metric, facet) of each group of scores, in this order."""
    columns: dict[str, NDArray[Any]]
    """Of each score its ``group`` and ``item`` (indices of these), ``value`` (NaN without),
    ``step`` and ``sample`` (2147483647 without) and ``rank``, as in ``ItemScores``; in no order."""


def read_numbered_scores(
    connection: duckdb.DuckDBPyConnection,
    runs: list[str],
    metrics: list[str] | None = None,
    reasons: Sequence[str] = (),
) -> NumberedScores:
    """Return the scores of runs, or those of some metrics; ``reasons`` are sorted."""
    connection.execute(_ITEMS_SQL, {"runs": runs})
    connection.execute(_GROUPS_SQL, {"runs": runs, "metrics": metrics})
    items, groups = (
        connection.execute(f"SELECT * EXCLUDE (number) FROM {table} ORDER BY number").fetchall()
        for table in ("numbered_items", "numbered_groups")
    )
    # numpy sorts numbers of 16 bits in linear time
    group_type = np.int16 if len(groups) <= np.iinfo(np.int16).max else np.int32
    relation = connection.sql(_SCORES_SQL, params={"runs": runs, "reasons": list(reasons)})
    batches = pa.RecordBatchReader.from_stream(relation)
    arrays = [[np.array([], field.type.to_pandas_dtype())] for field in batches.schema]
    for batch in batches:
        for array, column in zip(arrays, batch.columns, strict=True):
            array.append(column.to_numpy(zero_copy_only=False))
    columns = dict(zip(batches.schema.names, map(np.concatenate, arrays), strict=True))
    return NumberedScores(items, groups, columns | {"group": columns["group"].astype(group_type)})


class ItemValues(NamedTuple):
    """One group of scores, summed up by item: an entry for each item of ``ItemScores.items``."""

    is_scored: NDArray[np.bool_]
    """Whether the item has scores of the group."""
    mean: NDArray[np.float64]
    """Mean of its defined values, NaN without."""
    lowest: NDArray[np.float64]
    """Smallest of them, NaN without."""
    highest: NDArray[np.float64]
    """Largest of them, NaN without."""
    reason: NDArray[np.int64]
    """Index, in the reasons that were asked for, of the first one given for a score without a
    value; -1 where it is none of them."""


@dataclass(frozen=True, slots=True)
class ItemScores:
    """The scores of runs, with numbers in place of texts."""

    items: list[tuple[str, str]]
    """(run, item) of each item that a run has scores of."""
    groups: list[tuple[str, str, str, str]]
    """(run, scorer, metric, facet) of each group of scores, in this order."""
    _starts: NDArray[np.int64]
    """Index of each group's first score, and their number."""
    _item_index: NDArray[np.int32]
    _values: NDArray[np.float64]
    _reason_ranks: NDArray[np.int16]
    """Rank of the reason of a score without a value: odd for one that was asked for, even for
    those between them; -1 where there is none."""

    def sum_up(self, group: int) -> ItemValues:
        """Return what the items have of one group."""
        rows = slice(self._starts[group], self._starts[group + 1])
        items, values, ranks = self._item_index[rows], self._values[rows], self._reason_ranks[rows]
        n = len(self.items)
        is_defined, lowest, highest = ~np.isnan(values), np.full(n, np.inf), np.full(n, -np.inf)
        items_of_values, values = items[is_defined], values[is_defined]
        counts = np.bincount(items_of_values, minlength=n)
        sums = np.bincount(items_of_values, values, minlength=n)
        np.minimum.at(lowest, items_of_values, values)
        np.maximum.at(highest, items_of_values, values)
        has_no_value = counts == 0
        lowest[has_no_value] = highest[has_no_value] = np.nan
        first_ranks = np.full(n, _NO_RANK, dtype=np.int64)
        np.minimum.at(first_ranks, items[ranks >= 0], ranks[ranks >= 0])
        is_listed = (first_ranks % 2 == 1) & (first_ranks < _NO_RANK)
        return ItemValues(
            np.bincount(items, minlength=n) > 0,
            np.divide(sums, counts, out=np.full(n, np.nan), where=~has_no_value),
            lowest,
            highest,
            np.where(is_listed, first_ranks // 2, -1),
        )


def load_item_scores(store: Store, runs: Sequence[str], reasons: Sequence[str] = ()) -> ItemScores:
    """Return the scores of runs, to be summed up by item, scorer, metric and facet.

    Texts are most of such a table: each item and each group of scores is read once.

    Parameters
    ----------
    store : Store
    runs : sequence of str
        Run ids.
    reasons : sequence of str
        Reasons of a missing value that are told apart, sorted.
    """
    with store.reading() as connection:
        items, groups, columns = read_numbered_scores(
            connection, list(dict.fromkeys(runs)), reasons=reasons
        )
    order = np.argsort(columns["group"], kind="stable")
    starts = np.searchsorted(columns["group"][order], np.arange(len(groups) + 1))
    return ItemScores(
        items, groups, starts, *(columns[n][order] for n in ("item", "value", "rank"))
    )


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
        the metric at all; an item counts with its most frequent reason.
    """
    return store.query_frame(
        """
        WITH empty AS (
            SELECT item_id, count(*) AS n, mode(reason ORDER BY reason) AS reason FROM scores
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
