"""Checks of drift as they are kept: what was held against what, when and by whom, and all that was found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import duckdb
import pandas as pd

from cotlab.store.database import Store


def add_drift_check(
    connection: duckdb.DuckDBPyConnection,
    id: str,
    *,
    reference: Sequence[str],
    current: Sequence[str],
    at: datetime,
    by: str,
    alert: bool,
    reason: str,
    result: Mapping[str, Any],
) -> bool:
    """Keep a check once; whether it was new.

    ``result`` is all that was found, as what JSON can hold; a number that does not exist is None.
    """
    if connection.execute("SELECT 1 FROM drift_checks WHERE id = ?", [id]).fetchone() is not None:
        return False
    connection.execute(
        "INSERT INTO drift_checks VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            id,
            json.dumps(list(reference)),
            json.dumps(list(current)),
            at,
            by,
            alert,
            reason,
            json.dumps(dict(result), allow_nan=False),
        ],
    )
    return True


def drift_checks(store: Store, *, current: str | None = None) -> pd.DataFrame:
    """All checks, the newest first: id, reference and current (lists of run ids), at_, by_, alert, reason, result (JSON).

    Parameters
    ----------
    store : Store
    current : str or None
        Only those that looked at this run.
    """
    with store.reading() as connection:
        table = connection.execute("SELECT * FROM drift_checks ORDER BY at_ DESC, rowid DESC").df()
    for side in ("reference", "current"):
        table[side] = [json.loads(text) for text in table[side]]
    if current is not None:
        table = table.iloc[
            [k for k, runs in enumerate(table["current"]) if current in runs]
        ].reset_index(drop=True)
    return table
