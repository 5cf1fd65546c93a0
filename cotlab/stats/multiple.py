"""Several tests, or several differences, at once: adjusted p-values, and consistency of sign."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


def benjamini_hochberg(ps: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for the false discovery rate.

    Parameters
    ----------
    ps : sequence of float in [0, 1], or None where a test is undefined
        An undefined test stays undefined and does not count among the tests.

    Returns
    -------
    list of float in [0, 1] or None
        In the given order, each at least its raw p-value: rejecting those up to q keeps the false
        discovery rate at q.

    Raises
    ------
    ValueError
        If a p-value lies outside [0, 1].

    References
    ----------
    Benjamini and Hochberg (1995), JRSS B 57:289; statsmodels ``multipletests``. R: p.adjust(ps,
    "BH").
    """
    from statsmodels.stats.multitest import multipletests

    defined_ps = [p for p in ps if p is not None]
    if not all(0 <= p <= 1 for p in defined_ps):
        raise ValueError(
            f"a p-value lies in [0, 1] or is None, got {[p for p in defined_ps if not 0 <= p <= 1]}"
        )
    if not defined_ps:
        return [None] * len(ps)
    adjusted_ps = iter(multipletests(defined_ps, method="fdr_bh")[1].tolist())
    return [None if p is None else max(p, next(adjusted_ps)) for p in ps]


@dataclass(frozen=True, slots=True)
class Direction:
    """How many of several differences have the same sign."""

    k: int
    """Number of differences with the commoner sign."""
    m: int
    """Number of defined differences."""
    sign: int | None
    """1 (up), -1 (down), or None where both are as many."""
    zeros: int
    """Defined differences that are 0."""
    undefined: int
    """Undefined differences, which ``m`` does not count."""

    @property
    def text(self) -> str:
        """Return one line, such as "3 of 4 up, 1 zero, 1 undefined"."""
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
        extra_counts = ((self.zeros, "zero"), (self.undefined, "undefined"))
        return ", ".join(
            [summary, *(f"{count} {count_name}" for count, count_name in extra_counts if count)]
        )


def direction(differences: Sequence[float | None]) -> Direction:
    """Count how many differences have the same sign; a count, not a test.

    Parameters
    ----------
    differences : sequence of float, finite, or None where undefined

    Returns
    -------
    Direction
        ``k`` is the larger of the two counts of signs, so at least half of those that differ.

    Raises
    ------
    ValueError
        If a difference is not finite.
    """
    defined_differences = [difference for difference in differences if difference is not None]
    if not all(map(math.isfinite, defined_differences)):
        raise ValueError("a difference is finite, or None where it is undefined")
    n_up = sum(difference > 0 for difference in defined_differences)
    n_down = sum(difference < 0 for difference in defined_differences)
    sign = None if n_up == n_down else 1 if n_up > n_down else -1
    return Direction(
        max(n_up, n_down),
        len(defined_differences),
        sign,
        len(defined_differences) - n_up - n_down,
        len(differences) - len(defined_differences),
    )
