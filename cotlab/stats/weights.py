"""The composite's arithmetic: a weighted mean of the parts that are defined, and whose weights hold for an item."""

from __future__ import annotations

import math
from collections.abc import Mapping

WEIGHTS: Mapping[str, float] = {"C": 0.30, "R": 0.25, "V": 0.25, "D": 0.10, "F": 0.10}
"""The seed's example weights: an illustration until they are tuned on labels."""


def weights_for(category: str, told: Mapping[str, Mapping[str, float]]) -> Mapping[str, float]:
    """The weights of a category; those of ``default`` where it has none, else the example weights."""
    return told.get(category) or told.get("default") or WEIGHTS


def weighed(
    parts: Mapping[str, float | None], weights: Mapping[str, float], least: float = 0.0
) -> tuple[float | None, float | None, str]:
    """The weighted mean of the defined parts, each clipped to [0, 1]; none where less than ``least`` of the weight is defined.

    Returns
    -------
    tuple
        r_raw in [0, 1] or None; the share of the weight that is defined, None where all weights are 0; and in words what was
        left out.
    """
    own = {part: max(0.0, weights.get(part, 0.0)) for part in parts}
    whole = sum(own.values())
    if whole <= 0:
        return None, None, "no part of the profile has a weight"
    defined = {part: min(1.0, max(0.0, value)) for part, value in parts.items() if value is not None}
    weight = sum(own[part] for part in defined)
    gone = ", ".join(part for part in parts if part not in defined)
    if weight <= 0:
        return None, 0.0, f"without {gone}, no part with a weight is defined"
    if weight < least * whole:
        return None, weight / whole, f"without {gone}, {weight / whole:.0%} of the weight is defined, and {least:.0%} is needed"
    value = sum(own[part] * value for part, value in defined.items()) / weight
    share = max(weight / whole, math.ulp(0.0))  # what is too small to be written is not nothing
    return value, share, f"without {gone}, weights renormalised" if gone else ""
