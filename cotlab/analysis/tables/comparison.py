"""Tables of the figures that compare runs with a base, and the place of runs on an axis."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from cotlab.analysis.compare import Comparison, ComparisonSet
from cotlab.analysis.paired import RATE_METRIC, PairedRow, facet_label, missing_items_text
from cotlab.analysis.verdict.measures import READING_MEASURES, planned_measures
from cotlab.analysis.view import RunView
from cotlab.core.types import MetricCard, Plan
from cotlab.figures.style import format_number, truncate_text

MAX_BARS = 20
"""Rows of one figure."""
NO_UNIT_LABEL = "no unit"
CardsByMetric = Mapping[str, MetricCard]
TagsByRun = Mapping[str, Mapping[str, str]]
"""The tags of each run, by its id."""


def version_warning(comparison: Comparison) -> str:
    """Return a sentence on versions that compute other numbers; "" where runs share them all."""
    changes = [
        f"{change.setting.removesuffix(' version')} {change.base} and {change.other}"
        for change in comparison.changes
        if change.setting.endswith(" version") and change.setting != "code version"
    ]
    if not changes:
        return ""
    return (
        f"The runs were scored by different versions ({', '.join(changes)}): a difference may come"
        " from cotlab, not from the models. Run both again with one version; replies in the log are"
        " not asked for again."
    )


def shared_scorers(plans: Sequence[Plan]) -> list[str]:
    """Return the scorers that all plans have, by name."""
    scorer_names = [{spec.name for spec in plan.scorers} for plan in plans]
    return sorted(set.intersection(*scorer_names))


def share_settings(base: Plan, other: Plan) -> bool:
    """Return whether two runs have a scorer in common, with the same chain and modes."""
    base_settings, other_settings = (
        {
            (spec.name, *(str(spec.params.get(name)) for name in ("chain", "modes")))
            for spec in plan.scorers
        }
        for plan in (base, other)
    )
    return not base_settings.isdisjoint(other_settings)


def are_comparable(base: Plan, other: Plan) -> bool:
    """Return whether one run is offered for comparison with another: they share settings.

    Where the base measures whether its chain is read, the other does so in the same way.
    """
    reading = [set(planned_measures(plan)) & set(READING_MEASURES) for plan in (base, other)]
    if reading[0] and reading[0].isdisjoint(reading[1]):
        return False
    return share_settings(base, other)


def default_base(runs: Sequence[RunView]) -> str:
    """Return the run that others are compared with where none is chosen; the newest comes first.

    It is a run tagged as base, else the one before the newest on the newest's suite, else the
    oldest.
    """
    base_tagged_runs = [run.id for run in runs if "base" in run.plan.tags.values()]
    same_suite_runs = [run.id for run in runs[1:] if run.suite == runs[0].suite]
    return (base_tagged_runs or same_suite_runs or [runs[-1].id])[0]


def short_run_name(tags: TagsByRun, run: str) -> str:
    """Return a short name of a run among others: the tags in which they differ, else its id."""
    differing_tags = [
        f"{k} {v}"
        for k, v in tags[run].items()
        if len({other_tags.get(k) for other_tags in tags.values()}) == len(tags) > 1
    ]
    return truncate_text(", ".join(differing_tags) or run, 32)


def metric_unit(cards: CardsByMetric, metric: str) -> str:
    """Return the unit of a metric's differences; metrics of a range up to 2 have none."""
    card = cards.get(metric)
    if card is None or card.hi - card.lo <= 2:
        return NO_UNIT_LABEL
    return card.unit or f"{format_number(card.lo)} to {format_number(card.hi)}"


def row_label(row: PairedRow, rows: Sequence[PairedRow]) -> str:
    """Return the metric, with the part of the facet that distinguishes it from its other rows."""
    metric_facets = [other.facet for other in rows if other.metric == row.metric]
    if len(metric_facets) == 1:
        return row.metric
    distinguishing_names = [
        name
        for name in row.facet
        if len({facet.get(name) for facet in metric_facets}) == len(metric_facets)
    ]
    if distinguishing_names:
        return f"{row.metric}: {row.facet[distinguishing_names[0]]}"
    shared_names = [
        name
        for name in row.facet
        if all(facet.get(name) == row.facet[name] for facet in metric_facets)
    ]
    return f"{row.metric}: {facet_label(row.facet, shared_names)}"


def bar_row(row: PairedRow, label: str, unit: str) -> dict[str, Any]:
    """Return one row of the figure of paired differences."""
    n_missing = sum(row.missing_base.values()), sum(row.missing_other.values())
    return {
        "label": label,
        "unit": unit,
        "point": row.difference,
        "lo": row.lo,
        "hi": row.hi,
        "n": row.n,
        "n_undefined": max(n_missing),
        "method": row.method,
        "confidence": row.level,
        "values": list(row.values),
        "reason": row.reason
        if row.n
        else missing_items_text(row) or row.reason or "no matched item",
        "p": row.p,
        "bh_p": row.adjusted,
    }


def bars_by_unit(
    comparison_set: ComparisonSet,
    cards: CardsByMetric,
    tags: TagsByRun,
    metrics: Sequence[str] = (),
) -> dict[str, pd.DataFrame]:
    """Return the differences of all runs by unit: those without a unit first, rates before them."""
    has_several_runs = len(comparison_set.comparisons) > 1
    labelled_rows = [
        (
            row_label(row, comparison.rows),
            f" ({short_run_name(tags, comparison.other)})" if has_several_runs else "",
            row,
        )
        for comparison in comparison_set.comparisons
        for row in comparison.rows
        if not metrics or row.metric in metrics
    ]
    labelled_rows.sort(key=lambda entry: (entry[2].metric != RATE_METRIC, entry[0]))
    rows_by_unit: dict[str, list[dict[str, Any]]] = {}
    for label, run_name, row in labelled_rows:
        unit = metric_unit(cards, row.metric)
        rows_by_unit.setdefault(unit, []).append(bar_row(row, label + run_name, unit))
    units = sorted(rows_by_unit, key=lambda unit: (unit != NO_UNIT_LABEL, unit))
    return {unit: pd.DataFrame(rows_by_unit[unit]) for unit in units}


def threshold_note(comparison_set: ComparisonSet, threshold: float) -> str:
    """Return the sentence on the threshold of unfaithfulness; "" where no row is a rate."""
    has_rates = any(
        row.metric == RATE_METRIC
        for comparison in comparison_set.comparisons
        for row in comparison.rows
    )
    return f"Unfaithful from a score of {threshold:g} on." if has_rates else ""


BASE_CONDITION = "base"
"""The value of the tag condition that stands first on an axis, whatever else the run is tagged
with."""


class AxisPosition(NamedTuple):
    """Where a run stands in a figure."""

    group: str
    """What gives its colour."""
    at: str
    """Its position on the axis."""


def axis_positions(
    runs: Mapping[str, tuple[str, Mapping[str, str]]], axis_key: str, colour_key: str
) -> dict[str, AxisPosition]:
    """Return the position of each run.

    Parameters
    ----------
    runs : mapping of a run's id to its model and tags
    axis_key, colour_key : str
        "model", "run" or the name of a tag. A run that is tagged condition=base is at "base";
        another without that tag is at the value of its tag condition, or at "no TAG".

    Returns
    -------
    dict of str to AxisPosition
        In the order of the axis: text first, then numbers by size. Two runs that would share a
        position get their ids in the group.
    """
    positions = {
        run: AxisPosition(
            _layout_label(run, *model_and_tags, colour_key),
            _layout_label(run, *model_and_tags, axis_key),
        )
        for run, model_and_tags in runs.items()
    }
    used_positions = list(positions.values())
    positions = {
        run: AxisPosition(f"{position.group} ({run})", position.at)
        if used_positions.count(position) > 1
        else position
        for run, position in positions.items()
    }
    return dict(
        sorted(
            positions.items(),
            key=lambda entry: (*_sort_key(entry[1].at), _sort_key(entry[1].group)),
        )
    )


def layout_options(runs: Mapping[str, tuple[str, Mapping[str, str]]]) -> list[str]:
    """Return what runs (id to model and tags) can be laid out by: tags, model and id."""
    tags = dict.fromkeys(name for _, run_tags in runs.values() for name in run_tags)
    return [*tags, "model", "run"]


def default_layout(runs: Mapping[str, tuple[str, Mapping[str, str]]]) -> tuple[str, str]:
    """Return what runs are laid out along, and coloured by, by default."""
    layout_keys = layout_options(runs)
    has_distinct_models = len({model for model, _ in runs.values()}) == len(runs)
    is_coloured = has_distinct_models and len(runs) > 1 and "condition" in layout_keys
    return (
        "epoch" if "epoch" in layout_keys else "model" if has_distinct_models else "run",
        "condition" if is_coloured else "model",
    )


def order_by_epoch(runs: Mapping[str, tuple[str, Mapping[str, str]]]) -> list[str]:
    """Return runs (id to model and tags) in the order of their epochs; as given without any."""
    axis_key, colour_key = default_layout(runs)
    return list(axis_positions(runs, axis_key, colour_key)) if axis_key == "epoch" else list(runs)


def position_label(position: AxisPosition, positions: Mapping[str, AxisPosition]) -> str:
    """Return a run's group and position as one name, without what all runs share."""
    groups = {other_position.group for other_position in positions.values()}
    axis_labels = {other_position.at for other_position in positions.values()}
    if len(groups) == 1 < len(axis_labels):
        return position.at
    return (
        position.group
        if len(axis_labels) == 1 < len(groups)
        else " · ".join(dict.fromkeys(position))
    )


def _layout_label(run: str, model: str, tags: Mapping[str, str], layout_key: str) -> str:
    if layout_key in ("model", "run"):
        return model if layout_key == "model" else run
    if tags.get("condition") == BASE_CONDITION:
        return BASE_CONDITION
    if layout_key in tags:
        return (
            f"{layout_key} {tags[layout_key]}"
            if _parse_number(tags[layout_key]) is not None
            else tags[layout_key]
        )
    return tags.get("condition", f"no {layout_key}")


def _parse_number(text: str) -> float | None:
    number_match = re.fullmatch(r"(?:\D*\s)?(\d+(?:\.\d+)?)", text)
    return float(number_match[1]) if number_match else None


def _sort_key(text: str) -> tuple[bool, float, str]:
    number = _parse_number(text)
    return number is not None, number or 0.0, text
