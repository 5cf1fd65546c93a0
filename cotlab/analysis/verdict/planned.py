"""Which measures of a verdict a plan has, before any of them has a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cotlab.analysis.verdict.measures import MEASURES, READING_MEASURES, MeasureName
from cotlab.core.registry import SCORERS
from cotlab.core.types import Plan


def planned_measures(plan: Plan) -> tuple[MeasureName, ...]:
    """Return the measures that a plan's scorers have a value of, if all goes well."""
    return tuple(
        name
        for name, measure in MEASURES.items()
        if measure.requires is not None and _has_requirement(plan, *measure.requires)
    )


def _has_requirement(plan: Plan, scorer: str, option: str, value: str) -> bool:
    return any(
        not option or _includes(_option_value(spec.name, spec.params, option), value)
        for spec in plan.scorers
        if spec.name == scorer
    )


def sampled_step_fraction(plan: Plan) -> float | None:
    """Return the share of a chain's steps in which numbers are changed; None for all of them."""
    fractions = [
        float(_option_value(spec.name, spec.params, "fraction"))
        for spec in plan.scorers
        if spec.name == "robustness"
    ]
    return min((fraction for fraction in fractions if fraction < 1), default=None)


def measures_reading(plan: Plan) -> bool:
    """Return whether a plan measures in any way if the answer depends on the chain."""
    return not set(READING_MEASURES).isdisjoint(planned_measures(plan))


def share_reading_measure(base: Plan, other: Plan) -> bool:
    """Return whether two plans measure in one way if the answer depends on the chain."""
    measures = [set(planned_measures(plan)) & set(READING_MEASURES) for plan in (base, other)]
    return not measures[0].isdisjoint(measures[1])


def _option_value(scorer: str, params: Mapping[str, Any], option: str) -> Any:
    """Return the value of an option: that of the plan, else its default."""
    return params.get(option, SCORERS[scorer].options[option])


def _includes(value: Any, entry: str) -> bool:
    return entry == value if isinstance(value, str) else entry in value
