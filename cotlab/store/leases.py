"""Who looks at which item of a queue right now, and who left which for later (same file as the response log)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType
from typing import NamedTuple

from cotlab.store.responses import connect, transaction

LEASE_S = 120.0
"""How long an item is kept for a rater who looks at it."""
Place = tuple[str, str]
"""Run and item."""


class Lease(NamedTuple):
    """An item that is kept for a rater ``until`` a time in seconds since 1970."""

    run: str
    item_id: str
    until: float


class Leases:
    """Leases and skips of all queues; safe between processes: of several that want an item at once, one gets it.

    A context manager: it closes its connection.
    """

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)

    def __enter__(self) -> Leases:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def claim(self, queue: str, rater: str, wanted: Sequence[tuple[Place, int]], lease_s: float = LEASE_S) -> Lease | None:
        """Keep the first item that has room for this rater, who then holds no other one of this queue.

        Parameters
        ----------
        wanted : sequence of ((run, item), room)
            In the order to be asked in; room counts the raters whom the item can still take, this one among them. The one that
            the rater holds already comes first.
        lease_s : float, seconds

        Returns
        -------
        Lease or None
            None where others hold whatever is left.
        """
        now = time.time()
        with transaction(self._connection, "The leases of labels") as connection:
            _end_those_of_a_later_clock(connection, now, lease_s)
            rows = connection.execute(
                "SELECT run, item, rater FROM leases WHERE queue = ? AND until > ?", (queue, now)
            ).fetchall()
            mine = {(run, item) for run, item, who in rows if who == rater}
            others: dict[Place, int] = {}
            for run, item, who in rows:
                if who != rater:
                    others[run, item] = others.get((run, item), 0) + 1
            held = [place for place, _ in wanted if place in mine]
            free = held or [place for place, room in wanted if others.get(place, 0) < room]
            connection.execute("DELETE FROM leases WHERE queue = ? AND (rater = ? OR until <= ?)", (queue, rater, now))
            if not free:
                return None
            run, item = free[0]
            until = now + lease_s
            connection.execute("INSERT INTO leases VALUES (?, ?, ?, ?, ?)", (queue, run, item, rater, until))
            return Lease(run, item, until)

    def renew(self, queue: str, run: str, item: str, rater: str, lease_s: float = LEASE_S) -> bool:
        """Keep an item longer; False where this rater does not hold it any more."""
        now = time.time()
        with transaction(self._connection, "The leases of labels") as connection:
            done = connection.execute(
                "UPDATE leases SET until = ? WHERE queue = ? AND run = ? AND item = ? AND rater = ? AND until > ?",
                (now + lease_s, queue, run, item, rater, now),
            )
            return done.rowcount > 0

    def release(self, queue: str, run: str, item: str, rater: str) -> None:
        """Give an item back."""
        with transaction(self._connection, "The leases of labels") as connection:
            connection.execute(
                "DELETE FROM leases WHERE queue = ? AND run = ? AND item = ? AND rater = ?", (queue, run, item, rater)
            )

    def skip(self, queue: str, run: str, item: str, rater: str) -> None:
        """Leave an item for later: it is given back, and goes behind those that this rater skipped before."""
        with transaction(self._connection, "The leases of labels") as connection:
            connection.execute("INSERT OR REPLACE INTO skips VALUES (?, ?, ?, ?, ?)", (queue, run, item, rater, time.time()))
            connection.execute(
                "DELETE FROM leases WHERE queue = ? AND run = ? AND item = ? AND rater = ?", (queue, run, item, rater)
            )

    def holds(self, rater: str) -> bool:
        """Whether something is kept for a rater of this name right now, in any queue."""
        found = self._connection.execute("SELECT 1 FROM leases WHERE rater = ? AND until > ?", (rater, time.time())).fetchone()
        return found is not None

    def skipped(self, queue: str, rater: str) -> list[Place]:
        """What a rater skipped in a queue, the longest ago first."""
        rows = self._connection.execute(
            "SELECT run, item FROM skips WHERE queue = ? AND rater = ? ORDER BY at, run, item", (queue, rater)
        ).fetchall()
        return [(run, item) for run, item in rows]

    def live(self, queue: str) -> Mapping[str, Lease]:
        """The leases of a queue that have not run out, by rater."""
        rows = self._connection.execute(
            "SELECT rater, run, item, until FROM leases WHERE queue = ? AND until > ?", (queue, time.time())
        ).fetchall()
        return {rater: Lease(run, item, until) for rater, run, item, until in rows}


def _end_those_of_a_later_clock(connection: Connection, now: float, lease_s: float) -> None:
    """A lease that ends later than any that is made now was made before the clock was set back: its rater may be long gone."""
    connection.execute("DELETE FROM leases WHERE until > ?", (now + max(lease_s, LEASE_S) + 1,))
