"""Consistency of direction: of several differences (one an epoch, say), how many have the same sign."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Direction:
    """``k`` of ``m`` defined differences share a sign: 1 (up), -1 (down), or None where up and down are as many.

    ``zeros`` of the ``m`` have no sign, and ``undefined`` further ones are not among them.
    """

    k: int
    m: int
    sign: int | None
    zeros: int
    undefined: int

    @property
    def text(self) -> str:
        """One line: "3 of 4 up, 1 zero, 1 undefined"."""
        if self.m == 0:
            summary = "no difference is defined"
        elif self.zeros == self.m:
            return f"0 of {self.m} differ" + (
                f", {self.undefined} undefined" if self.undefined else ""
            )
        elif self.sign is None:
            summary = f"{self.k} of {self.m} up and as many down"
        else:
            summary = f"{self.k} of {self.m} {'up' if self.sign > 0 else 'down'}"
        rest = ((self.zeros, "zero"), (self.undefined, "undefined"))
        return ", ".join([summary, *(f"{count} {what}" for count, what in rest if count)])


def direction(differences: Sequence[float | None]) -> Direction:
    """How many differences point the same way; a count, not a test.

    Parameters
    ----------
    differences : sequence of float, finite, or None where undefined

    Returns
    -------
    Direction
        k is the larger of the two counts of signs, so at least half of those that differ.

    Raises
    ------
    ValueError
        If a difference is not finite.
    """
    known = [difference for difference in differences if difference is not None]
    if not all(map(math.isfinite, known)):
        raise ValueError("a difference is finite, or None where it is undefined")
    up, down = (
        sum(difference > 0 for difference in known),
        sum(difference < 0 for difference in known),
    )
    sign = None if up == down else 1 if up > down else -1
    return Direction(
        max(up, down), len(known), sign, len(known) - up - down, len(differences) - len(known)
    )
