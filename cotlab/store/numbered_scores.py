"""Scores of runs with numbers in place of texts, which are most of a table's cost.

The numbers of items and groups stand in temporary tables: their sizes are known, so that the
database joins millions of scores with them and not the other way round, which takes gigabytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_ITEMS_SQL = """
    CREATE OR REPLACE TEMP TABLE numbered_items AS
    SELECT *, (row_number() OVER (ORDER BY run, item_id))::INTEGER - 1 AS number
    FROM (SELECT DISTINCT run, item_id FROM scores WHERE list_contains($runs, run))
    """
_POSITIONS_SQL = """
    CREATE OR REPLACE TEMP TABLE numbered_items AS
    SELECT r.id AS run, i.id AS item_id, i.position AS number
    FROM runs r JOIN items i ON i.suite = r.suite
    WHERE r.id = $run AND i.id IN (SELECT item_id FROM scores WHERE run = $run)
    """
_GROUPS_SQL = """
    CREATE OR REPLACE TEMP TABLE numbered_groups AS
    SELECT *, (row_number() OVER (ORDER BY run, scorer, metric, facet))::INTEGER - 1 AS number
    FROM (SELECT DISTINCT run, scorer, metric, facet FROM scores
          WHERE list_contains($runs, run) AND ($metrics IS NULL OR list_contains($metrics, metric))
            AND ($scorers IS NULL OR list_contains($scorers, scorer)))
    """


def number_items(connection: duckdb.DuckDBPyConnection, runs: list[str]) -> list[tuple[str, str]]:
    """Give a number to each item that runs have scores of; return (run, item) in this order."""
    connection.execute(_ITEMS_SQL, {"runs": runs})
    items: list[tuple[str, str]] = connection.execute(
        "SELECT run, item_id FROM numbered_items ORDER BY number"
    ).fetchall()
    return items


def number_items_by_position(connection: duckdb.DuckDBPyConnection, run: str) -> None:
    """Give each item that a run has scores of its position in the suite as its number."""
    connection.execute(_POSITIONS_SQL, {"run": run})


def number_groups(
    connection: duckdb.DuckDBPyConnection,
    runs: list[str],
    metrics: list[str] | None = None,
    scorers: list[str] | None = None,
) -> list[tuple[str, str, str, str]]:
    """Give a number to each group of scores; return (run, scorer, metric, facet) in this order.

    Groups of other metrics or scorers have no number; None stands for all.
    """
    connection.execute(_GROUPS_SQL, {"runs": runs, "metrics": metrics, "scorers": scorers})
    groups: list[tuple[str, str, str, str]] = connection.execute(
        "SELECT run, scorer, metric, facet FROM numbered_groups ORDER BY number"
    ).fetchall()
    return groups


def read_numbers(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Mapping[str, Any]
) -> dict[str, NDArray[Any]]:
    """Return the columns of a query of numbers, read in batches.

    Parameters
    ----------
    connection : DuckDBPyConnection
        That has the numbered items and groups that the query joins.
    query : str
    parameters : mapping
        Of the query.

    Returns
    -------
    dict of str to ndarray (n_rows,)
        By name of the column; ``group`` as int16, int32 where there are too many groups, and NaN
        for a float that is NULL. In no order that can be relied on.
    """
    relation = connection.sql(query, params=parameters)
    [(n_groups,)] = connection.execute("SELECT count(*) FROM numbered_groups").fetchall()
    # numpy sorts numbers of 16 bits in linear time
    group_type = np.int16 if n_groups <= np.iinfo(np.int16).max else np.int32
    reader = pa.RecordBatchReader.from_stream(relation)
    arrays_by_name: dict[str, list[NDArray[Any]]] = {
        field.name: [np.array([], field.type.to_pandas_dtype())] for field in reader.schema
    }
    for batch in reader:
        for name, arrays in arrays_by_name.items():
            column = batch.column(name).to_numpy(zero_copy_only=False)
            arrays.append(column.astype(group_type) if name == "group" else column)
    columns = {name: np.concatenate(arrays_by_name.pop(name)) for name in list(arrays_by_name)}
    return columns | {"group": columns["group"].astype(group_type)}
