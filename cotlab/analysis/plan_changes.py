"""The settings in which the plans of two runs differ."""

from __future__ import annotations

from collections.abc import Mapping
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

    ``extra_settings`` holds further settings by name, as (base, other).
    """
    base_settings, other_settings = _settings_by_name(base), _settings_by_name(other)
    settings = {
        name: (base_settings.get(name, "n/a"), other_settings.get(name, "n/a"))
        for name in sorted({*base_settings, *other_settings})
    } | dict(extra_settings or {})
    return tuple(
        Change(name, *values) for name, values in settings.items() if values[0] != values[1]
    )


def _settings_by_name(plan: Plan) -> dict[str, str]:
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
    for role, model in plan.models.items():
        settings |= {
            f"{role}": str(model),
            f"{role} revision": model.revision or "n/a",
            f"{role} form": model.form,
            f"{role} endpoint": model.endpoint,
        }
        if model.base_url:
            settings[f"{role} address"] = model.base_url
    for spec in plan.scorers:
        settings[f"{spec.name} version"] = spec.version
        settings |= {f"{spec.name}.{k}": to_json_value(v) for k, v in spec.params.items()}
    return {name: str(value) for name, value in settings.items()}
