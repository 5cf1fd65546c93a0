"""Policies, decisions and the audit. Rows are only added, never changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from cotlab.core.labels import Decision
from cotlab.store.database import Connection, Store, Writer

RESCORED = "run scored again"
"""Action in the audit of a run that was scored again by newer scorers."""


def add_policy(
    connection: Writer,
    *,
    thresholds: Mapping[str, tuple[float, float]],
    capacity: int | None,
    params: Mapping[str, Any],
    author: str,
    reason: str,
) -> int:
    """Store a policy that applies from now on, with an entry in the audit.

    Parameters
    ----------
    connection : Writer
        From ``Store.writing()``.
    thresholds : mapping of domain to (low, high)
        Validated by whoever makes them (``cotlab.reliability.policy``).
    capacity : int or None
        Reviews a day.
    params : mapping
        Minutes a review, and how the thresholds came about; JSON.
    by, reason : str
        Who, and why; neither may be empty.

    Returns
    -------
    int
        Its version, one more than the last.

    Raises
    ------
    ValueError
        Without a name or a reason.
    """
    if not author.strip() or not reason.strip():
        raise ValueError("A policy needs who changed it and the reason why")
    rows = connection.execute(
        "SELECT version, thresholds, capacity FROM policies ORDER BY version DESC LIMIT 1"
    ).fetchall()
    previous_policy = None
    for number, text, previous_capacity in rows:
        texts = json.loads(text)
        previous_policy = {"version": number, "thresholds": texts, "capacity": previous_capacity}
    version = connection.next_number("policies", "version")
    pairs = {name: list(pair) for name, pair in thresholds.items()}
    connection.insert(
        "policies",
        {
            "version": version,
            "thresholds": json.dumps(pairs),
            "capacity": capacity,
            "params": json.dumps(dict(params)),
            "made_at": datetime.now(UTC),
            "made_by": author,
            "reason": reason,
        },
    )
    new_policy = {"version": version, "thresholds": pairs, "capacity": capacity}
    subject = f"policy {version}"
    add_audit(connection, author, "policy", subject, previous_policy, new_policy, reason)
    return version


def list_policies(store: Store) -> pd.DataFrame:
    """Return all policies, newest first.

    Returns
    -------
    DataFrame
            ``version, thresholds, capacity, params, made_at, made_by, reason``; thresholds and
        params are JSON.
    """
    table = store.query_frame("SELECT * FROM policies ORDER BY version DESC")
    return table.astype({"version": "Int64", "capacity": "Int64"})


def current_policy(store: Store) -> dict[str, Any] | None:
    """Return the row of the current policy, or None where there is none."""
    rows = list_policies(store).head(1).to_dict("records")
    return (
        {str(name): None if pd.isna(value) else value for name, value in rows[0].items()}
        if rows
        else None
    )


def current_versions(connection: Connection) -> tuple[int | None, int | None]:
    """Return the versions of the current policy and calibrator in this transaction."""
    [(policy, calibrator)] = connection.execute(
        "SELECT (SELECT max(version) FROM policies), (SELECT version FROM calibrator_choices ORDER"
        " BY seq DESC LIMIT 1)"
    ).fetchall()
    return policy, calibrator


def add_decisions(connection: Writer, decisions: Iterable[Decision]) -> int:
    """Append the decisions that are new.

    A decision whose id is stored, or that equals the newest one on its (run, item) in all but who
    and when, is not written again.

    Returns
    -------
    int
        How many rows were written.
    """
    all_decisions = list(decisions)
    runs = sorted({decision.run_id for decision in all_decisions})
    newest_by_item = {
        (decision.run_id, decision.item_id): decision
        for decision in newest_decisions(connection, runs)
    }
    stored_ids = {
        row[0]
        for row in connection.execute(
            "SELECT id FROM decisions WHERE list_contains(?, run)", [runs]
        ).fetchall()
    }
    new_decisions = []
    for decision in all_decisions:
        newest = newest_by_item.get((decision.run_id, decision.item_id))
        is_known = newest is not None and is_same_decision(newest, decision)
        if decision.id not in stored_ids and not is_known:
            new_decisions.append(decision)
            stored_ids.add(decision.id)
            newest_by_item[decision.run_id, decision.item_id] = decision
    connection.insert(
        "decisions",
        *(
            {**asdict(decision), "run": decision.run_id, "at_": decision.at, "by_": decision.by}
            for decision in new_decisions
        ),
    )
    return len(new_decisions)


def newest_decisions(connection: Connection, run_ids: Sequence[str]) -> list[Decision]:
    """Return the newest decision on each item of some runs, as the transaction sees it.

    Newest is what was written last: rows are only ever added, and a clock may have been set back in
    between.
    """
    rows = connection.execute(
        """
        SELECT * REPLACE (epoch_us(at_) AS at_) FROM decisions WHERE list_contains(?, run)
          AND rowid IN (SELECT max(rowid) FROM decisions GROUP BY run, item_id)
        """,
        [list(run_ids)],
    ).fetchall()
    return [
        Decision(*(*row[:12], datetime.fromtimestamp(row[12] / 1e6, UTC), row[13])) for row in rows
    ]


def is_same_decision(decision: Decision, other_decision: Decision) -> bool:
    """Return whether two decisions are equal in all but id, who and when."""
    return replace(other_decision, id=decision.id, at=decision.at, by=decision.by) == decision


def list_decisions(
    store: Store, run_id: str | None = None, *, history: bool = False
) -> pd.DataFrame:
    """Return the newest decision on each item of a run, or of all runs.

    Parameters
    ----------
    store : Store
    run_id : str, optional
    history : bool
        Return every decision that was ever made.

    Returns
    -------
    DataFrame
        ``id, run, item_id, domain, r_raw, r_cal, action, reason, low, high, calibrator, policy,
        at_, by_``: numbers are NaN or <NA> where NULL. In the order in which they were made, items
        as their run has them.
    """
    newest_clause = (
        "" if history else "AND rowid IN (SELECT max(rowid) FROM decisions GROUP BY run, item_id)"
    )
    table = store.query_frame(
        f"SELECT * FROM decisions WHERE ($run IS NULL OR run = $run) {newest_clause} ORDER BY"
        " rowid",
        {"run": run_id},
    )
    return table.astype({"calibrator": "Int64", "policy": "Int64"})


def add_audit(
    connection: Writer,
    author: str,
    action: str,
    subject: str,
    old_value: Any,
    new_value: Any,
    reason: str,
) -> None:
    """Record who changed what and why, with the JSON values before and after; None is NULL.

    Raises
    ------
    ValueError
        Without a name.
    """
    if not author.strip():
        raise ValueError("The audit needs the name of whoever changed something")
    before, after = (
        None if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)
        for value in (old_value, new_value)
    )
    connection.insert(
        "audit",
        {
            "at_": datetime.now(UTC),
            "who": author,
            "what": action,
            "subject": subject,
            "before": before,
            "after": after,
            "reason": reason,
            "seq": connection.next_number("audit"),
        },
    )


def list_audit(store: Store, *, action: str | None = None) -> pd.DataFrame:
    """Return the audit, newest first.

    Returns
    -------
    DataFrame
        ``at_, who, what, subject, before, after, reason, seq``; before and after are JSON or None.
    """
    table = store.query_frame(
        "SELECT * FROM audit WHERE ($what IS NULL OR what = $what) ORDER BY seq DESC",
        {"what": action},
    )
    columns = {
        name: table[name].astype(object).where(table[name].notna(), None)
        for name in ("before", "after")
    }
    return table.assign(**columns)


def rescored_lines(store: Store, run: str) -> list[str]:
    """Return a sentence for each time that a run was scored again."""
    return [
        f"Scored again from stored replies on {row['at_']:%Y-%m-%d}; before, the scores were by"
        f" {', '.join(json.loads(row['after']))}."
        for row in list_audit(store, action=RESCORED).to_dict("records")
        if row["subject"] == run
    ]


def runs_with_metrics(store: Store, metrics: Sequence[str], facet: str = "") -> pd.DataFrame:
    """Return which of ``metrics`` each run has defined scores of.

    Returns
    -------
    DataFrame
        ``run, metric`` and ``facet``, the value of the scores' facet named ``facet``.
    """
    return store.query_frame(
        "SELECT DISTINCT run, metric, coalesce(json_extract_string(facet, $path), '') AS facet"
        " FROM scores WHERE status = 'ok' AND list_contains($metrics, metric) ORDER BY ALL",
        {"metrics": list(metrics), "path": f"$.{facet}"},
    )


def review_counts(store: Store) -> dict[str, int]:
    """Return the counts of rows that show the progress of the review.

    Returns
    -------
    dict
        ``labels`` that are current, ``labels_after`` the calibrator in use was put into use,
        ``calibrated`` (0 or 1), ``policies``, ``decided`` items, those by the calibrator in use
        (``decided_now``), drift ``checks`` and those since then (``checks_after``); and label rows
        (``said``) and calibrator choices (``chosen``) ever made, which change with every change.
    """
    counts = store.query_frame("""
        WITH since AS (SELECT at_, version FROM calibrator_choices ORDER BY seq DESC LIMIT 1)
        SELECT (SELECT count(*) FROM current_labels) AS labels,
               (SELECT count(*) FROM current_labels l, since s WHERE l.at_ > s.at_) AS labels_after,
               (SELECT count(*) FROM since) AS calibrated,
               (SELECT count(*) FROM policies) AS policies,
               (SELECT count(DISTINCT (run, item_id)) FROM decisions) AS decided,
               (SELECT count(DISTINCT (run, item_id)) FROM decisions d, since s
                WHERE d.calibrator = s.version) AS decided_now,
               (SELECT count(*) FROM drift_checks) AS checks,
               (SELECT count(*) FROM drift_checks c, since s WHERE c.at_ > s.at_) AS checks_after,
               (SELECT count(*) FROM labels) AS said,
               (SELECT count(*) FROM calibrator_choices) AS chosen
        """)
    return {str(name): int(value) for name, value in counts.iloc[0].to_dict().items()}
