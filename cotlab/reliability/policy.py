"""The action for an answer of a given reliability: release, review by a person, or escalate."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from cotlab.core.errors import CotlabError
from cotlab.core.labels import Action

DEFAULT_DOMAIN = "default"
"""Domain whose thresholds hold where an item's domain has none."""
BELOW_LOW_REASON = "r_cal is below low"
BETWEEN_REASON = "r_cal is at least low and below high"
ABOVE_HIGH_REASON = "r_cal is at least high"
MAX_DAILY_REVIEWS = 2**31 - 1
"""Most reviews a day that the store can hold."""
UNCALIBRATED_REASON = "not calibrated"
NO_POLICY_REASON = "outside any policy"
NO_PROBABILITY_REASON = "r_cal is no probability"


class PolicyError(CotlabError):
    """An invalid policy: thresholds out of order, a negative capacity, no reason for a change."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Bounds of the actions: escalate below ``low``, release from ``high`` on, review between them.

    Raises
    ------
    PolicyError
        Unless 0 <= low <= high <= 1.
    """

    low: float
    """Answers below it are escalated."""
    high: float
    """Answers from it on are released."""

    def __post_init__(self) -> None:
        thresholds = (self.low, self.high)
        is_number = all(isinstance(v, int | float) and not isinstance(v, bool) for v in thresholds)
        if not is_number or not 0 <= self.low <= self.high <= 1:
            raise PolicyError(
                f"Thresholds must be 0 <= low <= high <= 1, got low = {self.low!r} and high ="
                f" {self.high!r}. Lower the one or raise the other."
            )


def parse_thresholds(text: str) -> Thresholds:
    """Return the thresholds of a text, "0.3,0.8": low and high; PolicyError where it has none."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise PolicyError(
            f"Thresholds are two numbers joined by a comma, as in 0.3,0.8; got {text[:40]!r}."
        ) from None
    return Thresholds(low, high)


class Ruling(NamedTuple):
    """An action and its reason."""

    action: Action
    """``release``, ``review`` or ``escalate``."""
    reason: str
    """The same text for all items of one kind."""


def decide_action(r_cal: float | None, status: str, thresholds: Thresholds | None) -> Ruling:
    """Return the action for one answer; only a calibrated probability can release one.

    Parameters
    ----------
    r_cal : float in [0, 1] or None
        Calibrated probability that the reasoning is acceptable; NaN counts as None.
    status : str
        Of r_raw: ``ok``, ``undefined``, ``refused``, ``stopped`` or ``error``; whatever is not
        ``ok`` escalates.
    thresholds : Thresholds or None
        Those of the item's domain; None where there is no policy for it.

    Returns
    -------
    Ruling
        ``escalate`` below low, ``review`` from low to below high, ``release`` from high on;
        ``escalate`` whenever something is missing.
    """
    if status != "ok":
        return Ruling("escalate", status or "undefined")
    if r_cal is None or math.isnan(r_cal):
        return Ruling("escalate", UNCALIBRATED_REASON)
    if not 0 <= r_cal <= 1:
        return Ruling("escalate", NO_PROBABILITY_REASON)
    if thresholds is None:
        return Ruling("escalate", NO_POLICY_REASON)
    if r_cal < thresholds.low:
        return Ruling("escalate", BELOW_LOW_REASON)
    return (
        Ruling("review", BETWEEN_REASON)
        if r_cal < thresholds.high
        else Ruling("release", ABOVE_HIGH_REASON)
    )


@dataclass(frozen=True, slots=True)
class Policy:
    """Thresholds by domain, and the capacity of reviewers.

    Raises
    ------
    PolicyError
        If the capacity or the minutes are out of range.
    """

    thresholds: Mapping[str, Thresholds]
    """By domain. ``default`` holds for every domain without thresholds, also for a category of that
    very name; without either a domain is outside the policy.
    """
    capacity: int | None = None
    """Reviews a day, at least 0; None where unknown."""
    minutes: float = 5.0
    """Minutes of one review, above 0."""
    version: int | None = None
    """As stored; None for thresholds that are not stored."""
    how: Mapping[str, Any] = field(default_factory=dict)
    """How the thresholds came about: by hand, by cost, by target precision."""

    def __post_init__(self) -> None:
        if self.capacity is not None and (
            isinstance(self.capacity, bool)
            or self.capacity != int(self.capacity)
            or not 0 <= self.capacity <= MAX_DAILY_REVIEWS
        ):
            raise PolicyError(
                "The capacity is a whole number of reviews a day, at least 0 and at most"
                f" {MAX_DAILY_REVIEWS}, got {self.capacity!r}"
            )
        if not (math.isfinite(self.minutes) and self.minutes > 0):
            raise PolicyError(f"A review takes more than 0 minutes, got {self.minutes!r}")

    def domain_thresholds(self, domain: str) -> Thresholds | None:
        """Return the thresholds of a domain, else those of ``default``, else None."""
        return self.thresholds.get(domain) or self.thresholds.get(DEFAULT_DOMAIN)

    def with_domain(self, domain: str, thresholds: Thresholds) -> Policy:
        """Return the same policy with other thresholds for one domain, not stored yet."""
        thresholds_by_domain = {**self.thresholds, domain or DEFAULT_DOMAIN: thresholds}
        return replace(self, thresholds=thresholds_by_domain, version=None)

    def to_columns(self) -> dict[str, Any]:
        """Return the columns of ``cotlab.store.decisions.add_policy``."""
        return {
            "thresholds": {
                name: (bounds.low, bounds.high) for name, bounds in sorted(self.thresholds.items())
            },
            "capacity": self.capacity,
            "params": {"minutes": self.minutes, **dict(self.how)},
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Policy:
        """Return the policy of a stored row.

        Parameters
        ----------
        row : mapping
            ``version``, ``thresholds`` and ``params`` (JSON or mappings), ``capacity``.

        Returns
        -------
        Policy

        Raises
        ------
        PolicyError
            If the row is not a policy.
        """
        try:
            bounds_by_domain, params = (
                json.loads(v) if isinstance(v, str) else v
                for v in (row["thresholds"], row["params"])
            )
            how_params = dict(params or {})
            capacity = row["capacity"]
            return cls(
                {
                    name: Thresholds(float(low), float(high))
                    for name, (low, high) in bounds_by_domain.items()
                },
                None if capacity is None or capacity != capacity else int(capacity),
                float(how_params.pop("minutes", 5.0)),
                int(row["version"]),
                how_params,
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise PolicyError(
                f"The stored policy {row.get('version')!r} cannot be read: {error}"
            ) from error
