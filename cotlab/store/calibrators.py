"""Calibrators, which of them is in use, and drift checks that say whether they still hold.

Rows are only added, so that each decision can be traced to its calibrator.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb
import pandas as pd

from cotlab.core.errors import UnknownName
from cotlab.core.keys import canonical_json
from cotlab.store.database import Store
from cotlab.store.decisions import add_audit


def add_calibrator(
    connection: duckdb.DuckDBPyConnection,
    *,
    method: str,
    params: Mapping[str, Any],
    weights: Mapping[str, float] | None,
    labels_digest: str,
    n: int,
    n_positive: int,
    report: Mapping[str, Any],
    by: str,
    note: str = "",
) -> int:
    """Store a fitted calibrator and return its version, from 1.

    It is used only after ``activate_calibrator``.

    Parameters
    ----------
    connection : DuckDBPyConnection
        From ``Store.writing()``.
    method : str
    params : mapping of JSON values
        ``{"all": …, "domains": {name: …}}``, each ``Calibrator.params``.
    weights : mapping of part to weight, or None
        Weights by which r_raw is recomputed before calibration; None where each run's own r_raw is
        used.
    labels_digest : str
        Digest of the labels that it was fitted on.
    n, n_positive : int
        Labels, and acceptable ones among them.
    report : mapping of JSON values
        What ``cotlab.review.release.calibrate`` measured.
    by, note : str
        Who fitted it, and a remark.
    """
    row = connection.execute("SELECT coalesce(max(version), 0) + 1 FROM calibrators").fetchone()
    version = int(row[0]) if row else 1
    connection.execute(
        "INSERT INTO calibrators (version, method, params, weights, labels_digest, n, n_positive,"
        " report, made_at, made_by, note) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            version,
            method,
            canonical_json(params),
            None if weights is None else canonical_json(weights),
            labels_digest,
            n,
            n_positive,
            canonical_json(report),
            datetime.now(UTC),
            _text(by),
            _text(note),
        ],
    )
    return version


def activate_calibrator(
    connection: duckdb.DuckDBPyConnection, version: int, *, by: str, reason: str
) -> None:
    """Put a version into use from now on, with an entry in the audit.

    Raises
    ------
    UnknownName
        If there is no such version.
    ValueError
        Without a name.
    """
    if not by.strip():
        raise ValueError("The audit needs the name of whoever chooses a calibrator")
    known = [
        int(row[0])
        for row in connection.execute("SELECT version FROM calibrators ORDER BY version").fetchall()
    ]
    if version not in known:
        raise UnknownName("calibrator version", str(version), [str(number) for number in known])
    before, now, by, reason = (
        _current_version(connection),
        datetime.now(UTC),
        _text(by),
        _text(reason),
    )
    connection.execute(
        "INSERT INTO calibrator_choices (version, at_, by_, reason) VALUES (?, ?, ?, ?)",
        [version, now, by, reason],
    )
    add_audit(connection, by, "choose calibrator", "calibrator", before, version, reason)


def calibrators(store: Store) -> pd.DataFrame:
    """Return all versions, newest first: the table's columns and ``current`` (bool)."""
    with store.reading() as connection:
        table = connection.execute("SELECT * FROM calibrators ORDER BY version DESC").df()
        now = _current_version(connection)
    return table.assign(current=table["version"] == now if now is not None else False)


def calibrator_choices(store: Store) -> pd.DataFrame:
    """Return which version was put into use when, by whom and why, newest first."""
    with store.reading() as connection:
        return connection.execute(
            "SELECT version, at_, by_, reason, seq FROM calibrator_choices ORDER BY seq DESC"
        ).df()


def current_calibrator(store: Store) -> dict[str, Any] | None:
    """Return the version in use with its JSON parsed; None without one."""
    with store.reading() as connection:
        version = _current_version(connection)
        return None if version is None else _row(connection, version)


def calibrator(store: Store, version: int) -> dict[str, Any]:
    """Return one version as ``current_calibrator`` does; UnknownName where there is none."""
    with store.reading() as connection:
        record = _row(connection, version)
        known = connection.execute("SELECT version FROM calibrators ORDER BY version").fetchall()
    if record is None:
        raise UnknownName("calibrator version", str(version), [str(row[0]) for row in known])
    return record


def _text(value: str) -> str:
    """Replace lone surrogates, which the store cannot hold, by question marks."""
    return value.encode("utf-8", "replace").decode()


def _current_version(connection: duckdb.DuckDBPyConnection) -> int | None:
    row = connection.execute(
        "SELECT version FROM calibrator_choices ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    return int(row[0]) if row else None


def _row(connection: duckdb.DuckDBPyConnection, version: int) -> dict[str, Any] | None:
    rows = (
        connection.execute("SELECT * FROM calibrators WHERE version = ?", [version])
        .df()
        .to_dict("records")
    )
    if not rows:
        return None
    record = {str(name): value for name, value in rows[0].items()}
    for name in ("params", "weights", "report"):
        record[name] = json.loads(record[name]) if isinstance(record[name], str) else None
    return record


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
    """Store a check once; return whether it was new.

    ``result`` is JSON; a number that does not exist is None.
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
    """Return all checks, newest first, with lists of run ids and ``result`` as JSON text.

    Parameters
    ----------
    store : Store
    current : str or None
        Only checks of this run.

    Returns
    -------
    DataFrame
        ``id, reference, current, at_, by_, alert, reason, result``.
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
