"""What was computed from runs that ended, kept with the run's state and the rules that made it.

A kept result counts for one revision and status of its run and one version of its rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from cotlab.core.errors import StoreError
from cotlab.store.log import is_read_only

if TYPE_CHECKING:
    from cotlab.store.database import Store, Writer

ResultKind = Literal["verdict", "cut_replies", "restated_steps"]
"""What is kept: the verdict on a run, its replies that were cut off, and its restated steps."""
SETTLED_STATUSES = ("done", "stopped", "budget", "failed", "interrupted")
"""Statuses of runs that change no more unless they are resumed."""
WRITE_TIMEOUT_S = 0.5
"""Seconds that a look at a run waits for the store; a later look keeps the result then."""


class RunState(NamedTuple):
    """The state of a run that a result was computed from."""

    run_id: str
    """Id of the run."""
    revision: int
    """Revision of its scores and its status."""
    status: str
    """Its current status."""


def read_results(
    store: Store, kind: ResultKind, states: Iterable[RunState], rules: str
) -> dict[RunState, str]:
    """Return the results that these rules made of runs in these states, as text."""
    states_by_id = {state.run_id: state for state in states}
    if not states_by_id:
        return {}
    rows = store.query_rows(
        "SELECT run, revision, status, value FROM run_results WHERE list_contains($runs, run)"
        " AND kind = $kind AND rules = $rules",
        {"runs": list(states_by_id), "kind": kind, "rules": rules},
    )
    return {
        states_by_id[run_id]: str(value)
        for run_id, revision, status, value in rows
        if states_by_id[run_id] == (run_id, revision, status)
    }


def keep_results(
    store: Store, kind: ResultKind, text_by_state: Mapping[RunState, str], rules: str
) -> bool:
    """Keep results of runs that ended, and return whether they were kept.

    They are not where the store is read-only or in use: another look keeps them.
    """
    texts = {
        state: text for state, text in text_by_state.items() if state.status in SETTLED_STATUSES
    }
    if not texts or is_read_only(store.path):
        return False
    with suppress(StoreError):
        with type(store)(store.folder, lock_timeout_s=WRITE_TIMEOUT_S).writing() as connection:
            for state, text in texts.items():
                connection.execute(
                    "DELETE FROM run_results WHERE run = ? AND kind = ?", [state.run_id, kind]
                )
                # of a run that has gone on since, nothing is kept
                connection.execute(
                    "INSERT INTO run_results SELECT id, ?, revision, ?, ?, ?, ? FROM runs"
                    " WHERE id = ? AND revision = ?",
                    [kind, state.status, rules, text, datetime.now(UTC), *state[:2]],
                )
        return True
    return False


def drop_results(connection: Writer, run_id: str) -> None:
    """Forget what was computed from a run."""
    connection.execute("DELETE FROM run_results WHERE run = ?", [run_id])
