"""What a run does now: the status that it wrote last, and what its process and estimates say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from operator import contains
from typing import TYPE_CHECKING, Any

import pandas as pd

from cotlab.store.item_scores import NOTHING_MEASURED
from cotlab.store.live import LiveRun, LiveRunStore
from cotlab.store.log import is_process_alive

if TYPE_CHECKING:
    from cotlab.store.database import Store

FINISHING = "finishing"
"""Status that is shown of a run whose items have ended and whose estimates are being made."""
ESTIMATES_TIMEOUT_S = 600.0
"""Time after a run's end in which its process may still make estimates."""


def is_process_of_interest(row: Mapping[str, Any]) -> bool:
    """Return whether a run's process may still change it: it has not ended, or just now.

    Parameters
    ----------
    row : mapping
        The run's row of ``read.list_runs``.
    """
    return str(row["status"]) in ("running", "planned") or _has_just_ended(row)


def _has_just_ended(row: Mapping[str, Any]) -> bool:
    ended_at = row["ended_at"]
    return (
        not pd.isna(ended_at)
        and (datetime.now(UTC) - ended_at).total_seconds() <= ESTIMATES_TIMEOUT_S
    )


def live_status(row: Mapping[str, Any], live_run: LiveRun | None) -> str:
    """Return a run's current status: one that is running without a heartbeat is "interrupted".

    ``live_run`` is the last state that its process wrote.
    """
    status = str(row["status"])
    if status in ("running", "planned") and live_run is not None and live_run.is_running:
        return "running"
    return "interrupted" if status == "running" else status


def is_process_going_on(live_run: LiveRun) -> bool:
    """Return whether the process of a run may still be there, though the run may have ended."""
    return live_run.free_in_s > 0 or (live_run.is_local and is_process_alive(live_run.pid))


def is_estimating(row: Mapping[str, Any], live_run: LiveRun | None) -> bool:
    """Return whether a run has ended just now and its process goes on, which makes estimates."""
    return _has_just_ended(row) and live_run is not None and is_process_going_on(live_run)


def visible_status(
    row: Mapping[str, Any],
    live_run: LiveRun | None,
    has_estimates: Callable[[], bool],
    is_unmeasured: Callable[[], bool],
) -> str:
    """Return the status that is shown of a run, on every page and in the terminal.

    Parameters
    ----------
    row : mapping
    live_run : LiveRun or None
        The last state that its process wrote; it counts for a run of ``is_process_of_interest``.
    has_estimates, is_unmeasured : callable
        Whether the run's estimates are stored, and whether it measured nothing of its model
        (``list_unmeasured_runs``); asked where it matters.

    Returns
    -------
    str
        The stored status, "interrupted", ``FINISHING`` or ``NOTHING_MEASURED``.
    """
    status = live_status(row, live_run)
    if status != "done":
        return status
    if is_estimating(row, live_run) and not has_estimates():
        return FINISHING
    return NOTHING_MEASURED if is_unmeasured() else status


def with_visible_status(
    store: Store, runs: pd.DataFrame, unmeasured_runs: Collection[str]
) -> pd.DataFrame:
    """Return runs of ``read.list_runs`` with the status that is shown of each."""
    with closing(LiveRunStore(store.log_path)) as live_store:
        live_run_by_id = {live_run.run: live_run for live_run in live_store.list_live_runs()}
    statuses = [
        visible_status(
            row,
            live_run_by_id.get(row["id"]),
            partial(_has_estimates, store, row["id"]),
            partial(contains, unmeasured_runs, row["id"]),
        )
        for row in runs.to_dict("records")
    ]
    return runs.assign(status=statuses)


def _has_estimates(store: Store, run_id: str) -> bool:
    sql = "SELECT 1 FROM estimates WHERE run = $run LIMIT 1"
    return bool(store.query_rows(sql, {"run": run_id}))
