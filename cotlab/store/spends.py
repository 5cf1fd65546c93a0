"""The sums of a run's spending in the response log: what was paid, and what is reserved."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from cotlab.core.requests import Usage
from cotlab.store.log import COUNT_COLUMNS

ADD_TO_SPENDS_SQL = (
    "UPDATE spends SET paid = paid + ?, reserved = reserved - ?, "
    + ", ".join(f"{name} = {name} + ?" for name in COUNT_COLUMNS[1:])
    + " WHERE run = ?"
)
"""Adds a settled call: cost, freed reserve, ``usage_counts_of`` its reply, run."""


class RunSpend(NamedTuple):
    """Micro-dollars of one run."""

    paid_micro: int
    """For replies that came."""
    reserved_micro: int
    """For calls without a reply."""


def read_spend(connection: sqlite3.Connection, run: str) -> RunSpend:
    """Return what a run has paid and reserved."""
    row = connection.execute("SELECT paid, reserved FROM spends WHERE run = ?", (run,)).fetchone()
    return RunSpend(*row) if row else RunSpend(0, 0)


def lower_reserves(connection: sqlite3.Connection, reserves: Sequence[tuple[int, int]]) -> None:
    """Lower what closed calls without a cost hold to the micro-dollars that are given by call."""
    for call_id, reserved_cost in reserves:
        row = connection.execute(
            "SELECT run, reserved FROM calls WHERE id = ? AND outcome IS NOT NULL AND cost IS NULL"
            " AND reserved > ?",
            (call_id, reserved_cost),
        ).fetchone()
        if row is not None:
            connection.execute(
                "UPDATE calls SET reserved = ? WHERE id = ?", (reserved_cost, call_id)
            )
            connection.execute(
                "UPDATE spends SET reserved = reserved - ? WHERE run = ?",
                (row[1] - reserved_cost, row[0]),
            )


def usage_counts_of(usage: Usage | None) -> tuple[int, ...]:
    """Return what one settled call adds to the columns of ``COUNT_COLUMNS`` after ``calls``."""
    if usage is None:
        return (0,) * 6
    is_known = usage.tokens_in is not None and usage.tokens_out is not None
    return (
        1,
        int(not is_known),
        *(
            count or 0
            for count in (usage.tokens_in, usage.tokens_out, usage.cached, usage.reasoning)
        ),
    )
