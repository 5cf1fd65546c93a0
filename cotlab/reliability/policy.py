"""What is done with an answer of a given reliability: released, reviewed by a person, or escalated."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cotlab.core.errors import CotlabError
from cotlab.core.labels import Action

DEFAULT = "default"
"""The domain whose thresholds hold where an item's own has none."""
BELOW, BETWEEN, ABOVE = (
    "r_cal is below low",
    "r_cal is at least low and below high",
    "r_cal is at least high",
)
MAX_REVIEWS = 2**31 - 1
"""A day; more cannot be kept."""
UNCALIBRATED, NO_POLICY, NO_PROBABILITY = (
    "not calibrated",
    "outside any policy",
    "r_cal is no probability",
)


class PolicyError(CotlabError):
    """A policy that cannot be: thresholds out of order, a capacity below 0, a change without a reason."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Below ``low`` an answer is escalated, from ``high`` on it is released, between them a person reviews it.

    Raises
    ------
    PolicyError
        Unless 0 <= low <= high <= 1.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        good = all(
            isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v)
            for v in (self.low, self.high)
        )
        if not good or not 0 <= self.low <= self.high <= 1:
            raise PolicyError(
                f"Thresholds must be 0 <= low <= high <= 1, got low = {self.low!r} and high ="
                f" {self.high!r}. Lower the one or raise the other."
            )


class Ruling(NamedTuple):
    """What is done, and why in words that are the same for all items of one kind."""

    action: Action
    reason: str


def decide_action(r_cal: float | None, status: str, thresholds: Thresholds | None) -> Ruling:
    """The action for one answer. Only a calibrated probability of a defined composite can release one.

    Parameters
    ----------
    r_cal : float in [0, 1] or None
        The calibrated probability that the reasoning is acceptable; NaN is as good as None.
    status : str
        Of r_raw: ``ok``, or ``undefined``, ``refused``, ``stopped``, ``error``; whatever is not
        ``ok`` escalates.
    thresholds : Thresholds or None
        Those of the item's domain; None where no policy holds for it.

    Returns
    -------
    Ruling
        ``escalate`` below low, ``review`` from low to below high, ``release`` from high on;
        ``escalate`` whenever a part is missing.
    """
    if status != "ok":
        return Ruling("escalate", status or "undefined")
    if r_cal is None or math.isnan(r_cal):
        return Ruling("escalate", UNCALIBRATED)
    if not 0 <= r_cal <= 1:
        return Ruling("escalate", NO_PROBABILITY)
    if thresholds is None:
        return Ruling("escalate", NO_POLICY)
    if r_cal < thresholds.low:
        return Ruling("escalate", BELOW)
    return Ruling("review", BETWEEN) if r_cal < thresholds.high else Ruling("release", ABOVE)


@dataclass(frozen=True, slots=True)
class Policy:
    """The thresholds that hold, by domain, and what people can do in a day.

    Attributes
    ----------
    thresholds : mapping of domain to Thresholds
        ``default`` holds for every domain without its own, a category of that very name among them;
        a domain with neither is outside the policy.
    capacity : int, at least 0, or None
        Reviews a day; None where nobody said.
    minutes : float, above 0
        Of one review.
    version : int or None
        As stored; None for thresholds that were given for one time.
    how : mapping
        How the thresholds came about: by hand, by cost, by target precision.
    """

    thresholds: Mapping[str, Thresholds]
    capacity: int | None = None
    minutes: float = 5.0
    version: int | None = None
    how: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.capacity is not None and (
            isinstance(self.capacity, bool)
            or self.capacity != int(self.capacity)
            or not 0 <= self.capacity <= MAX_REVIEWS
        ):
            raise PolicyError(
                "The capacity is a whole number of reviews a day, at least 0 and at most"
                f" {MAX_REVIEWS}, got {self.capacity!r}"
            )
        if not (math.isfinite(self.minutes) and self.minutes > 0):
            raise PolicyError(f"A review takes more than 0 minutes, got {self.minutes!r}")

    def of(self, domain: str) -> Thresholds | None:
        """The thresholds of a domain, else those of ``default``, else None."""
        return self.thresholds.get(domain) or self.thresholds.get(DEFAULT)

    def with_domain(self, domain: str, thresholds: Thresholds) -> Policy:
        """The same policy with other thresholds for one domain, not stored yet."""
        return Policy(
            {**self.thresholds, domain or DEFAULT: thresholds},
            self.capacity,
            self.minutes,
            None,
            self.how,
        )

    def stored(self) -> dict[str, Any]:
        """What ``cotlab.store.decisions.add_policy`` keeps: thresholds as pairs, capacity, params."""
        return {
            "thresholds": {
                name: (bounds.low, bounds.high) for name, bounds in sorted(self.thresholds.items())
            },
            "capacity": self.capacity,
            "params": {"minutes": self.minutes, **dict(self.how)},
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Policy:
        """The policy of a stored row: version, thresholds and params (JSON or mappings) and capacity.

        Raises
        ------
        PolicyError
            If the row holds none.
        """
        try:
            pairs, params = (
                json.loads(v) if isinstance(v, str) else v
                for v in (row["thresholds"], row["params"])
            )
            rest = dict(params or {})
            capacity = row["capacity"]
            return cls(
                {name: Thresholds(float(low), float(high)) for name, (low, high) in pairs.items()},
                None if capacity is None or capacity != capacity else int(capacity),
                float(rest.pop("minutes", 5.0)),
                int(row["version"]),
                rest,
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise PolicyError(
                f"The stored policy {row.get('version')!r} cannot be read: {error}"
            ) from error
