"""Arithmetic of the composite score: the weighted mean of the components that are defined."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations

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
    clipped_weights = {component: max(0.0, weights.get(component, 0.0)) for component in components}
    total_weight = sum(clipped_weights.values())
    if total_weight <= 0:
        return None, None, "no part of the profile has a weight"
    defined_values = {
        component: min(1.0, max(0.0, value))
        for component, value in components.items()
        if value is not None
    }
    defined_weight = sum(clipped_weights[component] for component in defined_values)
    missing_names = ", ".join(
        component for component in components if component not in defined_values
    )
    if defined_weight <= 0:
        return None, 0.0, f"without {missing_names}, no part with a weight is defined"
    if defined_weight < min_weight * total_weight:
        return (
            None,
            defined_weight / total_weight,
            (
                f"without {missing_names}, {defined_weight / total_weight:.0%} of the weight is"
                f" defined, and {min_weight:.0%} is needed"
            ),
        )
    value = (
        sum(clipped_weights[component] * value for component, value in defined_values.items())
        / defined_weight
    )
    weighted_values = [v for component, v in defined_values.items() if clipped_weights[component]]
    value = min(max(weighted_values), max(min(weighted_values), value))  # weights may underflow
    defined_share = max(defined_weight / total_weight, math.ulp(0.0))  # an underflow is not 0
    return (
        value,
        defined_share,
        f"without {missing_names}, weights renormalised" if missing_names else "",
    )


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
    clipped_weights = {component: max(0.0, weights.get(component, 0.0)) for component in components}
    total_weight = sum(clipped_weights.values())
    if total_weight <= 0:
        return None
    checked = sum(
        clipped_weights[component] * checked_shares.get(component, 1.0)
        for component, value in components.items()
        if value is not None
    )
    return min(1.0, checked / total_weight)


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
    k = len(measured_columns)
    cut_points = np.array(
        list(combinations(range(N_GRID_STEPS + k - 1), k - 1)), dtype=int
    ).reshape(-1, k - 1)
    edges = np.column_stack(
        [np.full(len(cut_points), -1), cut_points, np.full(len(cut_points), N_GRID_STEPS + k - 1)]
    )
    points = np.zeros((len(COMPONENT_NAMES), len(cut_points)))
    points[measured_columns] = (np.diff(edges, axis=1) - 1).T / N_GRID_STEPS
    return points


def weights_by_component(weights: Floats) -> Mapping[str, float]:
    """Return weights by component, with six decimals and a sum of 1."""
    rounded_weights = np.round(weights / weights.sum(), 6)
    rounded_weights[int(np.argmax(rounded_weights))] += 1 - rounded_weights.sum()
    return {
        component: float(weight)
        for component, weight in zip(COMPONENT_NAMES, np.round(rounded_weights, 6), strict=True)
    }
