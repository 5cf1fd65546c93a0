"""Arithmetic of the composite score: the weighted mean of the components that are defined."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

WEIGHTS: Mapping[str, float] = {"C": 0.30, "R": 0.25, "V": 0.25, "D": 0.10, "F": 0.10}
"""Example weights of the components, for use until weights are tuned on labels."""
COMPONENTS = tuple(WEIGHTS)
MIN_WEIGHT = 0.5
"""Share of the weight that must be defined, as the composite's own option by default."""


def weights_for(
    category: str, by_category: Mapping[str, Mapping[str, float]]
) -> Mapping[str, float]:
    """Return the weights of a category, else those of ``default``, else the example weights.

    Parameters
    ----------
    category : str
    by_category : mapping of category to mapping of component to weight

    Returns
    -------
    mapping of component to weight
    """
    return by_category.get(category) or by_category.get("default") or WEIGHTS


def weighted_mean(
    components: Mapping[str, float | None], weights: Mapping[str, float], min_weight: float = 0.0
) -> tuple[float | None, float | None, str]:
    """Return the weighted mean of the defined components, each clipped to [0, 1].

    Parameters
    ----------
    components : mapping of component to float or None
        None where a component is undefined.
    weights : mapping of component to weight
        Negative and missing weights count as 0.
    min_weight : float in [0, 1]
        Share of the weight that must be defined for the mean to be.

    Returns
    -------
    tuple
        The mean in [0, 1], or None; the share of the weight that is defined, None where all weights
        are 0; and a text that names what was left out, "" where nothing was.
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
    """Return ``weighted_mean`` of many items at once.

    Parameters
    ----------
    components : array (n, 5)
        Columns in the order of ``COMPONENTS``, NaN where a component is undefined.
    weights : mapping of component to weight
    min_weight : float in [0, 1]
        Share of the weight that must be defined.

    Returns
    -------
    ndarray (n,), [0, 1]
        NaN where too little of the weight is defined.
    """
    return weight_grid_means(
        np.asarray(components, dtype=float), weight_vector(weights)[:, None], min_weight
    )[:, 0]


def weight_grid_means(x: Floats, weights: Floats, min_weight: float) -> Floats:
    """Return the means (n, m) of rows (n, 5) under columns of weights (5, m)."""
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
    """Return components clipped to [0, 1] with 0 where undefined, and 1 where defined."""
    known = np.isfinite(x)
    return np.where(known, np.clip(x, 0.0, 1.0), 0.0), known.astype(float)


def weight_vector(weights: Mapping[str, float]) -> Floats:
    """Return weights as an array (5,) in the order of ``COMPONENTS``, negative ones as 0."""
    return np.array([max(0.0, float(weights.get(part, 0.0))) for part in COMPONENTS])
