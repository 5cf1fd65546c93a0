"""The composite's arithmetic: a weighted mean of the parts that are defined, and whose weights hold for an item."""

from __future__ import annotations

import math
from collections.abc import Mapping

WEIGHTS: Mapping[str, float] = {"C": 0.30, "R": 0.25, "V": 0.25, "D": 0.10, "F": 0.10}
"""The seed's example weights: an illustration until they are tuned on labels."""


def weights_for(
    category: str, by_category: Mapping[str, Mapping[str, float]]
) -> Mapping[str, float]:
    """The weights of a category; those of ``default`` where it has none, else the example weights."""
    return by_category.get(category) or by_category.get("default") or WEIGHTS


def weighted_mean(
    components: Mapping[str, float | None], weights: Mapping[str, float], min_weight: float = 0.0
) -> tuple[float | None, float | None, str]:
    """The weighted mean of the defined parts, each clipped to [0, 1]; none where less than ``least`` of the weight is defined.

    Returns
    -------
    tuple
        r_raw in [0, 1] or None; the share of the weight that is defined, None where all weights are
        0; and in words what was left out.
    """
    clipped_weights = {part: max(0.0, weights.get(part, 0.0)) for part in components}
    total_weight = sum(clipped_weights.values())
    if total_weight <= 0:
        return None, None, "no part of the profile has a weight"
    defined = {
        part: min(1.0, max(0.0, value)) for part, value in components.items() if value is not None
    }
    weight = sum(clipped_weights[part] for part in defined)
    missing = ", ".join(part for part in components if part not in defined)
    if weight <= 0:
        return None, 0.0, f"without {missing}, no part with a weight is defined"
    if weight < min_weight * total_weight:
        return (
            None,
            weight / total_weight,
            (
                f"without {missing}, {weight / total_weight:.0%} of the weight is defined, and"
                f" {min_weight:.0%} is needed"
            ),
        )
    value = sum(clipped_weights[part] * value for part, value in defined.items()) / weight
    share = max(
        weight / total_weight, math.ulp(0.0)
    )  # what is too small to be written is not nothing
    return value, share, f"without {missing}, weights renormalised" if missing else ""
