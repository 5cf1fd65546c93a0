"""The settings in which the plans of two runs differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

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
