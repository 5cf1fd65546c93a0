"""Calibrators, which of them is in use, and drift checks that say whether they still hold.

Rows are only added, so that each decision can be traced to its calibrator. A calibrator is of a
kind: it predicts a chain, or its steps; one of each kind is in use.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from cotlab.core.errors import UnknownName
from cotlab.core.keys import canonical_json
from cotlab.store.database import Connection, Store, Writer
from cotlab.store.decisions import add_audit

CHAIN_KIND, STEP_KIND = "chain", "steps"
"""Kinds of calibrators: of the probability that a chain is acceptable, and of the probability of
each step of being the first wrong one."""


def add_calibrator(
    connection: Writer,
    *,
    method: str,
    params: Mapping[str, Any],
    weights: Mapping[str, float] | None,
    labels_digest: str,
    n: int,
    n_positive: int,
    report: Mapping[str, Any],
    author: str,
    note: str = "",
    kind: str = CHAIN_KIND,
) -> int:
    """Store a fitted calibrator and return its version, from 1; all kinds are counted together.

    It is used only after ``activate_calibrator``.

    Parameters
    ----------
    connection : Writer
        From ``Store.writing()``.
    method : str
    params : mapping of JSON values
        ``{"all": …, "domains": {name: …}}``, each ``Calibrator.params``; of steps, the models by
        name.
    weights : mapping of part to weight, or None
        Weights by which r_raw is recomputed before calibration; None where each run's own r_raw is
        used.
    labels_digest : str
        Digest of the labels that it was fitted on.
    n, n_positive : int
        Labels, and acceptable ones among them.
    report : mapping of JSON values
        What ``cotlab.review.release.calibrate`` measured.
    author, note : str
        Who fitted it, and a remark.
    kind : str
        ``CHAIN_KIND`` or ``STEP_KIND``.
    """
    version = connection.next_number("calibrators", "version")
    connection.insert(
        "calibrators",
        {
            "version": version,
            "method": method,
            "params": canonical_json(params),
            "weights": None if weights is None else canonical_json(weights),
            "labels_digest": labels_digest,
            "n": n,
            "n_positive": n_positive,
            "report": canonical_json(report),
            "made_at": datetime.now(UTC),
            "made_by": _without_surrogates(author),
            "note": _without_surrogates(note),
            "kind": kind,
        },
    )
    return version


def activate_calibrator(connection: Writer, version: int, *, author: str, reason: str) -> None:
    """Put a version into use from now on, for its kind, with an entry in the audit.

    Raises
    ------
    UnknownName
        If there is no such version.
    ValueError
        Without a name.
    """
    kind = _get_calibrator(connection, version)["kind"]
    previous_version = _current_version(connection, kind)
    author, reason = _without_surrogates(author), _without_surrogates(reason)
    add_audit(
        connection, author, "choose calibrator", "calibrator", previous_version, version, reason
    )
    connection.insert(
        "calibrator_choices",
        {
            "version": version,
            "at_": datetime.now(UTC),
            "by_": author,
            "reason": reason,
            "seq": connection.next_number("calibrator_choices"),
        },
    )


def list_calibrators(store: Store, kind: str = CHAIN_KIND) -> pd.DataFrame:
    """Return all versions of a kind, newest first: the table's columns and ``current`` (bool)."""
    with store.reading() as connection:
        table = connection.execute(
            "SELECT * FROM calibrators WHERE kind = ? ORDER BY version DESC", [kind]
        ).df()
        current_version = _current_version(connection, kind)
    return table.assign(
        current=table["version"] == current_version if current_version is not None else False
    )


def list_calibrator_choices(store: Store, kind: str = CHAIN_KIND) -> pd.DataFrame:
    """Return which version of a kind was put into use when, by whom and why, newest first."""
    return store.query_frame(
        "SELECT version, at_, by_, reason, seq FROM calibrator_choices JOIN calibrators"
        " USING (version) WHERE kind = $kind ORDER BY seq DESC",
        {"kind": kind},
    )


def current_calibrator(store: Store, kind: str = CHAIN_KIND) -> dict[str, Any] | None:
    """Return the version in use of a kind with its JSON parsed; None without one."""
    with store.reading() as connection:
        version = _current_version(connection, kind)
        return None if version is None else _get_calibrator(connection, version)


def get_calibrator(store: Store, version: int) -> dict[str, Any]:
    """Return one version as ``current_calibrator`` does; UnknownName where there is none."""
    with store.reading() as connection:
        return _get_calibrator(connection, version)


def _get_calibrator(connection: Connection, version: int) -> dict[str, Any]:
    table = connection.execute("SELECT * FROM calibrators ORDER BY version").df()
    rows = table[table["version"] == version].to_dict("records")
    if not rows:
        raise UnknownName("calibrator version", str(version), [str(n) for n in table["version"]])
    record = {str(name): value for name, value in rows[0].items()}
    for name in ("params", "weights", "report"):
        record[name] = json.loads(record[name]) if isinstance(record[name], str) else None
    return record


def _without_surrogates(value: str) -> str:
    """Replace lone surrogates, which the store cannot hold, by question marks."""
    return value.encode("utf-8", "replace").decode()


def _current_version(connection: Connection, kind: str) -> int | None:
    rows = connection.execute(
        "SELECT version FROM calibrator_choices JOIN calibrators USING (version) WHERE kind = ?"
        " ORDER BY seq DESC LIMIT 1",
        [kind],
    ).fetchall()
    return int(rows[0][0]) if rows else None


def add_drift_check(
    connection: Writer,
    check_id: str,
    *,
    reference_runs: Sequence[str],
    current_runs: Sequence[str],
    checked_at: datetime,
    author: str,
    alert: bool,
    reason: str,
    result: Mapping[str, Any],
) -> bool:
    """Store a check once; return whether it was new.

    ``result`` is JSON; a number that does not exist is None.
    """
    if connection.execute("SELECT 1 FROM drift_checks WHERE id = ?", [check_id]).fetchall():
        return False
    connection.insert(
        "drift_checks",
        {
            "id": check_id,
            "reference": json.dumps(list(reference_runs)),
            "current": json.dumps(list(current_runs)),
            "at_": checked_at,
            "by_": author,
            "alert": alert,
            "reason": reason,
            "result": json.dumps(dict(result), allow_nan=False),
        },
    )
    return True


def count_drift_checks(store: Store) -> int:
    """Return how many checks are stored; rows are only added."""
    ((n_checks,),) = store.query_rows("SELECT count(*) FROM drift_checks")
    return int(n_checks)


def list_drift_checks(
    store: Store,
    *,
    run_id: str | None = None,
    reference: Collection[str] | None = None,
    limit: int | None = None,
) -> pd.DataFrame:
    """Return the checks, newest first, with lists of run ids and ``result`` as JSON text.

    Parameters
    ----------
    store : Store
    run_id : str or None
        Only checks that look at this run.
    reference : collection of str or None
        Only checks against these runs, in any order.
    limit : int or None
        At most so many, the newest.

    Returns
    -------
    DataFrame
        ``id, reference, current, at_, by_, alert, reason, result``.
    """
    table = store.query_frame("SELECT * FROM drift_checks ORDER BY at_ DESC, rowid DESC")
    for column in ("reference", "current"):
        table[column] = [json.loads(text) for text in table[column]]
    if run_id is not None:
        table = table[[run_id in runs for runs in table["current"]]]
    if reference is not None:
        table = table[[set(runs) == set(reference) for runs in table["reference"]]]
    return table.head(len(table) if limit is None else limit).reset_index(drop=True)
