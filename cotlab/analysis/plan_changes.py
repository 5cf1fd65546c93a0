"""The settings in which two runs differ, and the facets that keep their metrics apart."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cotlab.core.keys import to_json_value
from cotlab.core.types import Plan


@dataclass(frozen=True, slots=True)
class Change:
    """A setting in which two plans differ; "n/a" where one of them has none."""

    setting: str
    """Name of the setting."""
    base: str
    """Its value in the base's plan."""
    other: str
    """Its value in the other plan."""


def plan_changes(
    base: Plan, other: Plan, extra_settings: Mapping[str, tuple[str, str]] | None = None
) -> tuple[Change, ...]:
    """Return the settings in which two plans differ, by name.

    A scorer or a model that only one of them has is one setting: it has no version and no parameter
    that the other could share. ``extra_settings`` holds further settings by name, as (base, other).
    """
    base_parts, other_parts = _settings_by_part(base), _settings_by_part(other)
    shared_parts = base_parts.keys() & other_parts.keys()
    base_settings, other_settings = (
        {
            name: value
            for part, part_settings in parts.items()
            for name, value in _listed_settings(part, part_settings, part in shared_parts)
        }
        for parts in (base_parts, other_parts)
    )
    settings = {
        name: (base_settings.get(name, "n/a"), other_settings.get(name, "n/a"))
        for name in sorted({*base_settings, *other_settings})
    } | dict(extra_settings or {})
    return tuple(
        Change(name, *values) for name, values in settings.items() if values[0] != values[1]
    )


def _listed_settings(
    part: str, settings: Mapping[str, str], is_shared: bool
) -> Iterable[tuple[str, str]]:
    """Return all settings of a part that both plans have, and the first of another."""
    if is_shared:
        return settings.items()
    return [(part, next(iter(settings.values())))]


def _settings_by_part(plan: Plan) -> dict[str, dict[str, str]]:
    """Return the settings of the plan itself, of each of its models and of each of its scorers."""
    settings: dict[str, Any] = {
        "suite": plan.suite,
        "suite digest": plan.suite_digest,
        "seed": plan.seed,
        "temperature": plan.temperature,
        "repeats": plan.repeats,
        "limit": "all" if plan.limit is None else plan.limit,
        "sample": "all" if plan.sample is None else plan.sample,
        "step splitter version": plan.splitter_version,
        **{f"{name} tokens": getattr(plan, f"{name}_tokens") for name in ("chain", "answer")},
    }
    settings.update((f"tag {name}", value) for name, value in plan.tags.items())
    parts = {"plan": settings}
    for role, model in plan.models.items():
        parts[role] = {
            f"{role}": model,
            f"{role} revision": model.revision or "n/a",
            f"{role} form": model.form,
            f"{role} endpoint": model.endpoint,
        }
        if model.base_url:
            parts[role][f"{role} address"] = model.base_url
    for spec in plan.scorers:
        parts[f"scorer {spec.name}"] = {
            f"{spec.name} version": spec.version,
            **{f"{spec.name}.{k}": to_json_value(v) for k, v in spec.params.items()},
        }
    return {
        part: {name: str(value) for name, value in part_settings.items()}
        for part, part_settings in parts.items()
    }


OPTION_BY_FACET = {
    **{name: f"--{name} " for name in ("profile", "chain", "given", "mode", "source")},
    "control": "--set mediation.control=",
}
"""What precedes a value of a facet on the command line of ``cotlab run``."""


def differing_facets(
    base: pd.DataFrame, other: pd.DataFrame
) -> dict[str, tuple[list[str], list[str]]]:
    """Return the facets whose values differ for metrics that both runs measured.

    Parameters
    ----------
    base, other : DataFrame
        With the columns metric and facet (JSON).

    Returns
    -------
    mapping of facet to its values in the base and in the other run, sorted; "none" where a metric
    has no such facet
    """
    base_values, other_values = _values_by_facet(base), _values_by_facet(other)
    shared_metrics = set(base["metric"]) & set(other["metric"])
    differences: dict[str, tuple[set[str], set[str]]] = {}
    for metric in sorted(shared_metrics):
        for name in sorted({*base_values[metric], *other_values[metric]}):
            sides = [values[metric].get(name, {"none"}) for values in (base_values, other_values)]
            if sides[0].isdisjoint(sides[1]):
                base_side, other_side = differences.setdefault(name, (set(), set()))
                base_side |= sides[0]
                other_side |= sides[1]
    return {name: (sorted(ours), sorted(theirs)) for name, (ours, theirs) in differences.items()}


def no_shared_metric_text(
    run_ids: tuple[str, str], plans: tuple[Plan, Plan], values: tuple[pd.DataFrame, pd.DataFrame]
) -> str:
    """Return why two runs, the base first, have no number to compare, and what to do."""
    differences = differing_facets(*values)
    if not differences:
        base_scorers, other_scorers = (
            ", ".join(dict.fromkeys(spec.name for spec in plan.scorers)) or "no scorer"
            for plan in plans
        )
        return (
            f"Runs {run_ids[0]!r} and {run_ids[1]!r} share no metric: {base_scorers} and"
            f" {other_scorers}."
        )
    texts = [
        f"{name} is {' or '.join(ours)} in {run_ids[0]} and {' or '.join(theirs)} in {run_ids[1]}"
        for name, (ours, theirs) in differences.items()
    ]
    options = [
        f"{OPTION_BY_FACET[name]}{ours[0]}" if name in OPTION_BY_FACET else f"the same {name}"
        for name, (ours, _) in differences.items()
    ]
    return (
        f"Runs {run_ids[0]!r} and {run_ids[1]!r} share no metric: they measured the same ones with"
        f" other settings: {'; '.join(texts)}. Run one of them again with {' and '.join(options)}."
    )


def _values_by_facet(table: pd.DataFrame) -> dict[str, dict[str, set[str]]]:
    """Return the values of each facet by metric."""
    values: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for metric, facet in table[["metric", "facet"]].drop_duplicates().itertuples(index=False):
        for name, value in json.loads(facet).items():
            values[metric][name].add(str(value))
    return values
