"""Who looks at which item of a queue right now, and who left which for later (same file as the response log)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType
from typing import NamedTuple

from cotlab.store.responses import open_log, transaction

LEASE_S = 120.0
"""How long an item is kept for a rater who looks at it."""
ItemKey = tuple[str, str]
"""Run and item."""
_NO_ITEM: ItemKey = ("", "")
"""Held by a rater for whom nothing is left, so that others see that somebody waits."""


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
        self._connection = open_log(path)

    def __enter__(self) -> Leases:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def claim(
        self,
        queue: str,
        rater: str,
        candidates: Sequence[tuple[ItemKey, int]],
        limit: int = 1,
        *,
        first: ItemKey | None = None,
        lease_s: float = LEASE_S,
    ) -> list[Lease]:
        """Keep items that have room for this rater, who then holds no others of this queue.

        What the rater holds already comes first, in the order in which it was claimed, so that the
        item before their eyes stays there. Of what is left nobody holds more than an equal share:
        where others look at the queue too, or wait for something in it, the last ones are given
        back.

        Parameters
        ----------
        wanted : sequence of ((run, item), room)
            In the order to be asked in; room counts the raters whom the item can still take, this
            one among them.
        most : int >= 1
            So many are kept at most.
        first : (run, item), optional
            Comes before all others, whoever else holds it, if it is among ``wanted``.
        lease_s : float, seconds

        Returns
        -------
        list of Lease
            Empty where others hold whatever is left; the rater then counts as one who waits.
        """
        now = time.time()
        with transaction(self._connection, "The leases of labels") as connection:
            _drop_future_leases(connection, now, lease_s)
            rows = connection.execute(
                "SELECT run, item, rater FROM leases WHERE queue = ? AND until > ? ORDER BY rowid",
                (queue, now),
            ).fetchall()
            others: dict[ItemKey, int] = {}
            for run, item, who in rows:
                if who != rater:
                    others[run, item] = others.get((run, item), 0) + 1
            room = dict(candidates)
            mine = [(run, item) for run, item, who in rows if who == rater]
            free = [key for key, count in candidates if others.get(key, 0) < count]
            selected = [
                key
                for key in dict.fromkeys([*([first] if first else []), *mine, *free])
                if key in room
            ]
            share = -(-len(selected) // len({rater, *(who for _, _, who in rows)}))
            until = now + lease_s
            connection.execute(
                "DELETE FROM leases WHERE queue = ? AND (rater = ? OR until <= ?)",
                (queue, rater, now),
            )
            connection.executemany(
                "INSERT INTO leases VALUES (?, ?, ?, ?, ?)",
                [
                    (queue, *key, rater, until)
                    for key in selected[: min(limit, share)] or [_NO_ITEM] * bool(candidates)
                ],
            )
            return [Lease(*key, until) for key in selected[: min(limit, share)]]

    def release(self, queue: str, run: str, item: str, rater: str) -> None:
        """Give an item back."""
        with transaction(self._connection, "The leases of labels") as connection:
            connection.execute(
                "DELETE FROM leases WHERE queue = ? AND run = ? AND item = ? AND rater = ?",
                (queue, run, item, rater),
            )

    def skip(self, queue: str, run: str, item: str, rater: str) -> None:
        """Leave an item for later: it is given back, and goes behind those that this rater skipped before."""
        with transaction(self._connection, "The leases of labels") as connection:
            connection.execute(
                "INSERT OR REPLACE INTO skips VALUES (?, ?, ?, ?, ?)",
                (queue, run, item, rater, time.time()),
            )
            connection.execute(
                "DELETE FROM leases WHERE queue = ? AND run = ? AND item = ? AND rater = ?",
                (queue, run, item, rater),
            )

    def has_lease(self, rater: str) -> bool:
        """Whether something is kept for a rater of this name right now, in any queue."""
        row = self._connection.execute(
            "SELECT 1 FROM leases WHERE rater = ? AND until > ? AND item <> ''",
            (rater, time.time()),
        ).fetchone()
        return row is not None

    def skipped(self, queue: str, rater: str) -> list[ItemKey]:
        """What a rater skipped in a queue, the longest ago first."""
        rows = self._connection.execute(
            "SELECT run, item FROM skips WHERE queue = ? AND rater = ? ORDER BY at, run, item",
            (queue, rater),
        ).fetchall()
        return [(run, item) for run, item in rows]


def _drop_future_leases(connection: Connection, now: float, lease_s: float) -> None:
    """A lease that ends later than any that is made now was made before the clock was set back: its rater may be long gone."""
    connection.execute("DELETE FROM leases WHERE until > ?", (now + max(lease_s, LEASE_S) + 1,))
