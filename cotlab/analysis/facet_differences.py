"""What keeps metrics of two runs apart: facets in which they differ, and the option for each."""

from __future__ import annotations

import json
from collections import defaultdict

import pandas as pd

from cotlab.core.types import Plan

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
