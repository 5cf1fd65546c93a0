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
from cotlab.reliability.policy import DEFAULT_DOMAIN, UNCALIBRATED_REASON, Policy, PolicyError
from cotlab.reliability.volumes import apply_policy
from cotlab.review.labelling.targets import load_targets
from cotlab.review.release.apply import calibrated_scores, calibrator_target
from cotlab.review.release.features import feature_table
from cotlab.review.release.joined_runs import complete_run_features
from cotlab.store import read
from cotlab.store.calibrators import current_calibrator
from cotlab.store.database import Store
from cotlab.store.decisions import (
    add_audit,
    add_decisions,
    add_policy,
    current_policy,
    current_versions,
    is_same_decision,
    newest_decisions,
)

EMPTY_POLICY = Policy({})
"""The policy where none was ever set: everything is escalated."""
TEMPORARY_POLICY_REASON = "thresholds given for this time"
"""Reason in the audit of decisions under thresholds that are not the stored policy's."""


def load_scored_items(
    store: Store, runs: Sequence[str], *, completed_by: Sequence[str] = ()
) -> pd.DataFrame:
    """Return the feature vectors of runs with what decisions need.

    Parameters
    ----------
    store : Store
    runs : sequence of str
        Run ids.
    completed_by : sequence of str
        Runs on the same chains, whose measurements fill what these runs did not measure; where the
        calibrator in use was fitted on joined runs, these do too.

    Returns
    -------
    DataFrame
        The columns of ``feature_table``, r_raw as the calibrator in use weighs it, and
        ``r_cal`` (NaN where there is none), ``told`` (the reason why there is none, or
        what a reader must know), ``calibrator`` (its version or None) and ``targets`` (True, False,
        or None where there is no clear label): the target of the calibrator in use.
    """
    calibrator = current_calibrator(store)
    joined_runs = ((calibrator or {}).get("report") or {}).get("joined_runs") or ()
    others = [run for run in dict.fromkeys((*completed_by, *joined_runs)) if run not in runs]
    table = (
        complete_run_features(store, runs, others)
        if others or joined_runs
        else feature_table(store, runs)
    )
    calibrated_table = calibrated_scores(store, table)
    target_table = load_targets(store, runs, target=calibrator_target(calibrator))
    target_by_item = target_table.set_index(["run", "item_id"])["target"].to_dict()
    keys = zip(table["run"], table["item_id"], strict=True)
    targets = pd.Series([target_by_item.get(key) for key in keys], index=table.index, dtype=object)
    has_probability = calibrated_table["r_cal"].notna()  # a combined one needs no r_raw
    return table.assign(
        status=table["status"].mask(has_probability, "ok"),
        reason=table["reason"].mask(has_probability, None),
        **calibrated_table[["r_raw", "r_cal", "calibrator"]],
        told=calibrated_table["why"],
        target=targets,
    )


def count_unscored_items(store: Store, run: str, n_decided: int) -> int:
    """Return the number of items of a run without scores; a run that has not ended has some."""
    return max(0, int(read.get_run(store, run)["n_items"] or 0) - n_decided)


def load_policy(store: Store) -> Policy:
    """Return the current policy; ``EMPTY_POLICY`` where none was ever set."""
    row = current_policy(store)
    return EMPTY_POLICY if row is None else Policy.from_row(row)


def decide_run(
    store: Store,
    run: str,
    *,
    author: str,
    policy: Policy | None = None,
    completed_by: Sequence[str] = (),
) -> list[Decision]:
    """Decide on every item of a run that has scores, and store the decisions that are new.

    Parameters
    ----------
    store : Store
    run : str
        Its id.
    author : str
        Who decides; stored with each decision and in the audit.
    policy : Policy, optional
        Thresholds for this time only; by default the stored ones.
    completed_by : sequence of str
        As ``load_scored_items``.

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
        applied_policy = policy or load_policy(store)
        table = load_scored_items(store, [run], completed_by=completed_by)
        if table.empty:
            raise PolicyError(
                f"Run {run} has no scores yet: there is nothing to decide. Finish it with cotlab"
                f" run --resume {run}"
            )
        stored_decisions = _write_decisions(
            store,
            run,
            _make_decisions(table, applied_policy, author),
            applied_policy,
            author,
            is_temporary=policy is not None,
        )
        if stored_decisions is not None:
            return stored_decisions


def resolve_domain(store: Store, name: str, *, allow_unseen: bool = False) -> str:
    """Return the domain to set thresholds for; ``DEFAULT_DOMAIN``, all others, without a name.

    Parameters
    ----------
    store : Store
    name : str
        A category of items.
    allow_unseen : bool
        Accept it although no suite in the store has such items yet.

    Raises
    ------
    UnknownName
        If no item of the store is of this category: thresholds under a mistyped name would apply to
        nothing.
    PolicyError
        If it is ``DEFAULT_DOMAIN``. A category of that name cannot have thresholds of its own,
        because those under this name apply to every domain without its own.
    """
    if not name:
        return DEFAULT_DOMAIN
    if name == DEFAULT_DOMAIN:
        raise PolicyError(
            f"{DEFAULT_DOMAIN!r} names the thresholds of all items whose category has none of its"
            " own, so no category of this name can have its own. To set those, leave --domain out;"
            " for a category of this name, give it another in the suite"
        )
    known_domains = read.list_domains(store)
    if name not in known_domains and not allow_unseen:
        suggestions = dict.fromkeys(
            [*get_close_matches(name, known_domains, 3, 0.5), *known_domains[:20]]
        )
        raise UnknownName("domain", name, list(suggestions))
    return name


def set_policy(store: Store, policy: Policy, *, author: str, reason: str) -> Policy:
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
        version = add_policy(
            connection, **policy.to_columns(), author=author, reason=reason.strip()
        )
    return Policy(policy.thresholds, policy.capacity, policy.minutes, version, policy.how)


def count_reasons(rulings: Iterable[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """Count (action, reason) by action and kind of reason, the most frequent first in an action."""
    counts = Counter((action, reason.partition(":")[0]) for action, reason in rulings)
    return sorted(
        ((*kind, n) for kind, n in counts.items()),
        key=lambda row: (ACTIONS.index(row[0]), -row[2], row[1]),
    )


def _write_decisions(
    store: Store,
    run: str,
    decisions: list[Decision],
    applied_policy: Policy,
    author: str,
    *,
    is_temporary: bool,
) -> list[Decision] | None:
    """Store the decisions and return them as stored; equal ones are not written again.

    None, and nothing is written, where another policy or calibrator has come into use meanwhile: a
    stricter one would be bypassed.
    """
    calibrator = decisions[0].calibrator
    with store.writing() as connection:
        policy_version, calibrator_version = current_versions(connection)
        is_current = is_temporary or applied_policy.version == policy_version
        if calibrator != calibrator_version or not is_current:
            return None
        stored_by_item = {stored.item_id: stored for stored in newest_decisions(connection, [run])}
        for k, decision in enumerate(decisions):
            stored = stored_by_item.get(decision.item_id)
            if stored and is_same_decision(stored, decision):
                decisions[k] = stored
        if n_written := add_decisions(connection, decisions):
            actions = [str(decision.action) for decision in decisions]
            audit_entry = {
                **{action: actions.count(action) for action in ACTIONS},
                "written": n_written,
                "policy": applied_policy.version,
                "calibrator": calibrator,
            }
            if applied_policy.version is None and applied_policy.thresholds:
                audit_entry["thresholds"] = applied_policy.to_columns()["thresholds"]
            reason = TEMPORARY_POLICY_REASON if is_temporary else ""
            add_audit(connection, author, "decide", f"run {run}", None, audit_entry, reason)
    return decisions


def _make_decisions(table: pd.DataFrame, policy: Policy, author: str) -> list[Decision]:
    now = datetime.now(UTC)
    return [
        Decision(
            uuid.uuid4().hex,
            row["run"],
            row["item_id"],
            row["domain"],
            _float_or_none(row["r_raw"]),
            _float_or_none(row["r_cal"]),
            row["action"],
            _full_reason(row["why"], row),
            _float_or_none(row["low"]),
            _float_or_none(row["high"]),
            None if pd.isna(row["calibrator"]) else int(row["calibrator"]),
            policy.version,
            now,
            author,
        )
        for row in apply_policy(table, policy).to_dict("records")
    ]


def _full_reason(kind: str, row: dict[str, object]) -> str:
    """Return the kind of reason and, behind a colon, further details of the item."""
    details = row["reason"] if row["status"] != "ok" else row["told"]
    if kind == UNCALIBRATED_REASON and not details:
        details = "no calibrator gives a probability"
    return f"{kind}: {details}" if isinstance(details, str) and details else kind


def _float_or_none(value: object) -> float | None:
    return None if pd.isna(value) else float(value)  # type: ignore[arg-type]
