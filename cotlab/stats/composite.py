"""The composite's arithmetic: a weighted mean of the parts that are defined, and whose weights hold for an item."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

WEIGHTS: Mapping[str, float] = {"C": 0.30, "R": 0.25, "V": 0.25, "D": 0.10, "F": 0.10}
"""The seed's example weights: an illustration until they are tuned on labels."""
COMPONENTS = tuple(WEIGHTS)
MIN_WEIGHT = 0.5
"""Share of the weight that must be defined, as the composite's own option by default."""


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


def weighted_means(
    components: ArrayLike, weights: Mapping[str, float], *, min_weight: float = MIN_WEIGHT
) -> Floats:
    """r_raw of many items at once: ``cotlab.stats.composite.weighed`` of each row.

    Parameters
    ----------
    parts : array (n, 5), NaN where a part is undefined
        Columns in the order of ``PARTS``.
    weights : mapping of part to weight
    least : float in [0, 1]
        Share of the weight that must be defined.

    Returns
    -------
    array (n,) in [0, 1]
        NaN where no r_raw exists.
    """
    return weight_grid_means(
        np.asarray(components, dtype=float), weight_vector(weights)[:, None], min_weight
    )[:, 0]


def weight_grid_means(x: Floats, weights: Floats, min_weight: float) -> Floats:
    """r_raw (n, m) of each row under each column of weights (5, m); NaN where there is none."""
    values, mask = filled_components(x)
    total_weight, defined_weight = weights.sum(axis=0), mask @ weights
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = np.where(
            (defined_weight > 0) & (defined_weight >= min_weight * total_weight - 1e-12),
            (values @ weights) / defined_weight,
            np.nan,
        )
    return np.asarray(np.clip(scores, 0.0, 1.0))


def filled_components(x: Floats) -> tuple[Floats, Floats]:
    """Parts clipped to [0, 1] with 0 where undefined, and 1 where they are defined."""
    known = np.isfinite(x)
    return np.where(known, np.clip(x, 0.0, 1.0), 0.0), known.astype(float)


def weight_vector(weights: Mapping[str, float]) -> Floats:
    return np.array([max(0.0, float(weights.get(part, 0.0))) for part in COMPONENTS])
