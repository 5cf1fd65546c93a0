"""Metadata of the scored items of runs: what a suite's file says of each item beside its texts."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from cotlab.store import read
from cotlab.store.database import Store

ITEM_COLUMNS = ("run", "suite", "suite_name", "item_id", "question", "category", "n_steps")


def load_item_metadata(store: Store, runs: Sequence[str], keys: Sequence[str]) -> pd.DataFrame:
    """Return one row for each item that a run has scores of, with fields of its metadata.

    Parameters
    ----------
    store : Store
    runs : sequence of str
        Run ids.
    keys : sequence of str
        Names of fields of ``Item.meta``.

    Returns
    -------
    DataFrame
        ``ITEM_COLUMNS`` (``n_steps`` is the length of the suite's chain, from 0) and a column for
        each key: the JSON text of the field, ``"null"`` where the field is null, None where the
        item has no such field. Ordered as the runs are given and by the items' position.

    Raises
    ------
    UnknownName
        If the store has no such run.
    """
    run_ids = list(dict.fromkeys(runs))
    for run_id in run_ids:
        read.get_run(store, run_id)
    rows = store.query_rows(
        """
        WITH scored AS (SELECT DISTINCT run, item_id FROM scores WHERE list_contains($runs, run))
        SELECT r.id, r.suite, r.suite_name, i.id, i.question, coalesce(i.category, ''),
               coalesce(len(i.steps), 0),
               list_transform($paths, lambda path: json_extract(i.meta, path)::VARCHAR)
        FROM runs r JOIN items i ON i.suite = r.suite
        JOIN scored s ON s.run = r.id AND s.item_id = i.id
        WHERE list_contains($runs, r.id)
        ORDER BY list_position($runs, r.id), i.position
        """,
        {"runs": run_ids, "paths": [f'$."{key}"' for key in keys]},
    )
    return pd.DataFrame(
        [(*row[:-1], *row[-1]) for row in rows], columns=[*ITEM_COLUMNS, *keys], dtype=object
    )


def list_chain_sources(store: Store, run: str) -> set[tuple[str, str]]:
    """Return (scorer, whose chain it measured) of a run's scores that name it: reference, own."""
    rows = store.query_rows(
        "SELECT DISTINCT scorer, json_extract_string(facet, '$.chain') AS source FROM (SELECT"
        " DISTINCT scorer, facet FROM scores WHERE run = ?) WHERE source IS NOT NULL",
        [run],
    )
    return {(scorer, source) for scorer, source in rows}


def load_item_steps(
    store: Store, run_item_pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return (run, item id) → texts of the steps of the suite's chain."""
    runs, items = ([pair[index] for pair in run_item_pairs] for index in (0, 1))
    rows = store.query_rows(
        "SELECT p.run, i.id, i.steps FROM (SELECT unnest(?::VARCHAR[]) AS run,"
        " unnest(?::VARCHAR[]) AS item_id) p JOIN runs r ON r.id = p.run JOIN items i ON i.suite ="
        " r.suite AND i.id = p.item_id",
        [runs, items],
    )
    return {(run, item): tuple(steps or ()) for run, item, steps in rows}


def list_runs_with_metadata(store: Store, keys: Sequence[str], run: str | None = None) -> set[str]:
    """Return the runs, or this one, whose suite has one of these fields in some item's metadata."""
    rows = store.query_rows(
        "SELECT DISTINCT r.id FROM runs r JOIN items i ON i.suite = r.suite WHERE"
        " ($run IS NULL OR r.id = $run) AND list_has_any(json_keys(i.meta), $keys)",
        {"run": run, "keys": list(keys)},
    )
    return {str(row[0]) for row in rows}


def has_item_metadata(store: Store, run: str, keys: Sequence[str]) -> bool:
    """Return whether some item of a run's suite has one of these fields of metadata."""
    return bool(list_runs_with_metadata(store, keys, run))
