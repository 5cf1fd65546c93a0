"""Arithmetic of the composite score: the weighted mean of the components that are defined."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

EXAMPLE_WEIGHTS: Mapping[str, float] = {"C": 0.30, "R": 0.25, "V": 0.25, "D": 0.10, "F": 0.10}
"""Example weights of the components, for use until weights are tuned on labels."""
COMPONENT_NAMES = tuple(EXAMPLE_WEIGHTS)
MIN_WEIGHT_SHARE = 0.5
"""Share of the weight that must be defined, as the composite's own option by default."""
N_GRID_STEPS = 10
"""Steps of the grid of weights from 0 to 1."""


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
    return by_category.get(category) or by_category.get("default") or EXAMPLE_WEIGHTS


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
    clipped = {name: max(0.0, weights.get(name, 0.0)) for name in components}
    total = sum(clipped.values())
    if total <= 0:
        return None, None, "no part of the profile has a weight"
    values = {name: min(1.0, max(0.0, v)) for name, v in components.items() if v is not None}
    weight = sum(clipped[name] for name in values)
    without = f"without {', '.join(name for name in components if name not in values)}"
    if weight <= 0:
        return None, 0.0, f"{without}, no part with a weight is defined"
    if weight < min_weight * total:
        needed = f"{weight / total:.0%} of the weight is defined, and {min_weight:.0%} is needed"
        return None, weight / total, f"{without}, {needed}"
    mean = sum(clipped[name] * value for name, value in values.items()) / weight
    weighted = [value for name, value in values.items() if clipped[name]]
    mean = min(max(weighted), max(min(weighted), mean))  # weights may underflow
    share = max(weight / total, math.ulp(0.0))  # an underflow is not 0
    return mean, share, f"{without}, weights renormalised" if len(values) < len(components) else ""


def checked_weight(
    components: Mapping[str, float | None],
    weights: Mapping[str, float],
    checked_shares: Mapping[str, float],
) -> float | None:
    """Return the share of the weight that defined components could check.

    Parameters
    ----------
    components : mapping of component to float or None
        None where a component is undefined: it checks nothing.
    weights : mapping of component to weight
        Negative and missing weights count as 0.
    checked_shares : mapping of component to float in [0, 1]
        Share of the chain that a component could check; 1 where it is not named.

    Returns
    -------
    float in [0, 1], or None
        None where all weights are 0.
    """
    clipped = {name: max(0.0, weights.get(name, 0.0)) for name in components}
    total = sum(clipped.values())
    if total <= 0:
        return None
    checked = sum(
        clipped[name] * checked_shares.get(name, 1.0)
        for name, value in components.items()
        if value is not None
    )
    return min(1.0, checked / total)


def weighted_means(
    components: ArrayLike, weights: Mapping[str, float], *, min_weight: float = MIN_WEIGHT_SHARE
) -> Floats:
    """Return ``weighted_mean`` of many items at once.

    Parameters
    ----------
    components : array (n, 5)
        Columns in the order of ``COMPONENT_NAMES``, NaN where a component is undefined.
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
    values, is_defined = filled_components(x)
    total_weight, defined_weight = weights.sum(axis=0), is_defined @ weights
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = np.where(
            (defined_weight > 0) & (defined_weight >= min_weight * total_weight - 1e-12),
            (values @ weights) / defined_weight,
            np.nan,
        )
    return np.asarray(np.clip(scores, 0.0, 1.0))


def filled_components(x: Floats) -> tuple[Floats, Floats]:
    """Return components clipped to [0, 1] with 0 where undefined, and 1 where defined."""
    is_defined = np.isfinite(x)
    return np.where(is_defined, np.clip(x, 0.0, 1.0), 0.0), is_defined.astype(float)


def weight_vector(weights: Mapping[str, float]) -> Floats:
    """Return weights as an array (5,) in the order of ``COMPONENT_NAMES``, negative ones as 0."""
    return np.array([max(0.0, float(weights.get(component, 0.0))) for component in COMPONENT_NAMES])


def weight_grid(measured_columns: NDArray[np.int64]) -> Floats:
    """Return all weights (5, m) on the simplex of the measured components that are tenths."""
    tenths = [
        parts
        for parts in product(range(N_GRID_STEPS + 1), repeat=len(measured_columns))
        if sum(parts) == N_GRID_STEPS
    ]
    points = np.zeros((len(COMPONENT_NAMES), len(tenths)))
    points[measured_columns] = np.transpose(tenths) / N_GRID_STEPS
    return points


def weights_by_component(weights: Floats) -> Mapping[str, float]:
    """Return weights by component, with six decimals and a sum of 1."""
    rounded_weights = np.round(weights / weights.sum(), 6)
    rounded_weights[int(np.argmax(rounded_weights))] += 1 - rounded_weights.sum()
    return {
        component: float(weight)
        for component, weight in zip(COMPONENT_NAMES, np.round(rounded_weights, 6), strict=True)
    }
