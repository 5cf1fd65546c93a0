"""Decisions on runs: items, calibrated, under the current policy, each stored with its grounds."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches

import pandas as pd

from cotlab.core.errors import UnknownName
from cotlab.core.labels import ACTIONS, Decision
from cotlab.reliability.policy import DEFAULT, UNCALIBRATED, Policy, PolicyError
from cotlab.reliability.volumes import apply_policy
from cotlab.review.labelling.targets import targets
from cotlab.review.release.apply import r_cal
from cotlab.review.release.features import feature_table
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.decisions import (
    add_audit,
    add_decisions,
    add_policy,
    current_policy,
    current_versions,
    newest_decisions,
    same_decision,
)

EMPTY_POLICY = Policy({})
"""The policy where none was ever set: everything is escalated."""
ONCE = "thresholds given for this time"
"""Reason in the audit of decisions under thresholds that are not the stored policy's."""


def scored(store: Store, runs: Sequence[str]) -> pd.DataFrame:
    """Return the feature vectors of runs with what decisions need.

    Returns
    -------
    DataFrame
            The columns of ``feature_table``, r_raw as the calibrator in use weighs it, and
        ``r_cal`` (NaN
            where there is none), ``told`` (why there is none, or what a reader must know),
        ``calibrator``
            (its version or None) and ``target`` (True, False, or None where raters gave no clear
        label).
    """
    table = feature_table(store, runs)
    calibrated = r_cal(store, table)
    target_of = {
        (row["run"], row["item_id"]): row["target"]
        for row in targets(store, runs).to_dict("records")
    }
    keys = zip(table["run"], table["item_id"], strict=True)
    target = pd.Series([target_of.get(key) for key in keys], index=table.index, dtype=object)
    return table.assign(
        r_raw=calibrated["r_raw"],
        r_cal=calibrated["r_cal"],
        told=calibrated["why"],
        calibrator=calibrated["calibrator"],
        target=target,
    )


def unscored(store: Store, run: str, decided: int) -> int:
    """Return the number of items of a run without scores; a run that has not ended has some."""
    return max(0, int(read.get_run(store, run)["n_items"] or 0) - decided)


def policy_of(store: Store) -> Policy:
    """Return the current policy; ``EMPTY_POLICY`` where none was ever set."""
    row = current_policy(store)
    return EMPTY_POLICY if row is None else Policy.from_row(row)


def decide_run(store: Store, run: str, *, by: str, policy: Policy | None = None) -> list[Decision]:
    """Decide on every item of a run that has scores, and store the decisions that are new.

    Parameters
    ----------
    store : Store
    run : str
        Its id.
    by : str
        Who decides; stored with each decision and in the audit.
    policy : Policy, optional
        Thresholds for this time only; by default the stored ones.

    Returns
    -------
    list of Decision
        One for each item, in the order of the run's suite. Where the newest stored one is equal
        (same scores, calibrator and policy), it is that one, and nothing is written.

    Raises
    ------
    UnknownName
        If there is no such run.
    PolicyError
        If the run has no scores yet.
    """
    while True:
        current = policy or policy_of(store)
        table = scored(store, [run])
        if table.empty:
            raise PolicyError(
                f"Run {run} has no scores yet: there is nothing to decide. Finish it with cotlab"
                f" run --resume {run}"
            )
        written = _write_decisions(
            store, run, _decisions(table, current, by), current, by, once=policy is not None
        )
        if written is not None:
            return written


def domain_for(store: Store, name: str, *, unseen: bool = False) -> str:
    """Return the domain to set thresholds for; ``DEFAULT``, all others, without a name.

    Parameters
    ----------
    store : Store
    name : str
        A category of items.
    unseen : bool
        Accept it although no suite in the store has such items yet.

    Raises
    ------
    UnknownName
        If no item of the store is of this category: thresholds under a mistyped name would apply to
        nothing.
    PolicyError
        If it is ``DEFAULT``. A category of that name cannot have thresholds of its own, because
        those under this name apply to every domain without its own.
    """
    if not name:
        return DEFAULT
    if name == DEFAULT:
        raise PolicyError(
            f"{DEFAULT!r} names the thresholds of all items whose category has none of its own, so"
            " no category of this name can have its own. To set those, leave --domain out; for a"
            " category of this name, give it another in the suite"
        )
    known = read.list_domains(store)
    if name not in known and not unseen:
        raise UnknownName(
            "domain",
            name,
            list(dict.fromkeys([*get_close_matches(name, known, 3, 0.5), *known[:20]])),
        )
    return name


def set_policy(store: Store, policy: Policy, *, by: str, reason: str) -> Policy:
    """Put a policy into use; who, why and what it was before are stored in the audit.

    Raises
    ------
    PolicyError
        Without a reason, or without thresholds.
    """
    if not reason.strip():
        raise PolicyError("A change of the policy needs its reason: it is kept in the audit")
    if not policy.thresholds:
        raise PolicyError("A policy needs thresholds: --low and --high")
    with store.writing() as connection:
        version = add_policy(connection, **policy.stored(), by=by, reason=reason.strip())
    return Policy(policy.thresholds, policy.capacity, policy.minutes, version, policy.how)


def reasons(decided: Sequence[Decision]) -> list[tuple[str, str, int]]:
    """Count decisions by action and kind of reason, the most frequent first in an action."""
    return _counted((decision.action, decision.reason) for decision in decided)


def reasons_of(table: pd.DataFrame) -> list[tuple[str, str, int]]:
    """Count decisions of a stored table as ``reasons`` does."""
    return _counted(zip(table["action"], table["reason"], strict=True))


def _counted(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str, int]]:
    counts = Counter((action, reason.partition(":")[0]) for action, reason in pairs)
    return sorted(
        ((*kind, n) for kind, n in counts.items()),
        key=lambda row: (ACTIONS.index(row[0]), -row[2], row[1]),
    )


def _write_decisions(
    store: Store, run: str, decided: list[Decision], applied_policy: Policy, by: str, *, once: bool
) -> list[Decision] | None:
    """Store the decisions and return them as stored; equal ones are not written again.

    None, and nothing is written, where another policy or calibrator has come into use meanwhile: a
    stricter one would be bypassed.
    """
    sizes = {action: sum(decision.action == action for decision in decided) for action in ACTIONS}
    with store.writing() as connection:
        policy, calibrator = current_versions(connection)
        if decided[0].calibrator != calibrator or not (once or applied_policy.version == policy):
            return None
        stored = {decision.item_id: decision for decision in newest_decisions(connection, [run])}
        decided = [
            (
                stored[decision.item_id]
                if _is_stored(stored.get(decision.item_id), decision)
                else decision
            )
            for decision in decided
        ]
        new = add_decisions(connection, decided)
        if new:
            after = {
                **sizes,
                "written": new,
                "policy": applied_policy.version,
                "calibrator": decided[0].calibrator,
            }
            if applied_policy.version is None and applied_policy.thresholds:
                after["thresholds"] = applied_policy.stored()["thresholds"]
            add_audit(connection, by, "decide", f"run {run}", None, after, ONCE if once else "")
    return decided


def _decisions(table: pd.DataFrame, policy: Policy, by: str) -> list[Decision]:
    now = datetime.now(UTC)
    return [
        Decision(
            uuid.uuid4().hex,
            row["run"],
            row["item_id"],
            row["domain"],
            _number(row["r_raw"]),
            _number(row["r_cal"]),
            row["action"],
            _reason(row["why"], row),
            _number(row["low"]),
            _number(row["high"]),
            None if pd.isna(row["calibrator"]) else int(row["calibrator"]),
            policy.version,
            now,
            by,
        )
        for row in apply_policy(table, policy).to_dict("records")
    ]


def _is_stored(stored: Decision | None, decision: Decision) -> bool:
    return stored is not None and same_decision(stored, decision)


def _reason(kind: str, row: dict[str, object]) -> str:
    """Return the kind of reason and, behind a colon, further details of the item."""
    more = row["reason"] if row["status"] != "ok" else row["told"]
    if kind == UNCALIBRATED and not more:
        more = "no calibrator gives a probability"
    return f"{kind}: {more}" if isinstance(more, str) and more else kind


def _number(value: object) -> float | None:
    return None if pd.isna(value) else float(value)  # type: ignore[arg-type]
