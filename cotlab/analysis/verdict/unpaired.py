"""Headline metrics that both of two runs have, but measured otherwise, so that none is paired."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pandas as pd

from cotlab.analysis.compare import Comparison
from cotlab.analysis.facet_differences import differing_facets
from cotlab.analysis.verdict.measures import COMPARED_MEASURES, MEASURES, MeasureName
from cotlab.analysis.view import run_view
from cotlab.store.database import Store

_CHAIN_TEXTS = {"own": "the model's own chains", "reference": "the suite's chains"}


def unpaired_measures(
    store: Store, comparison: Comparison, names: tuple[str, str]
) -> Mapping[MeasureName, str]:
    """Return why a measure that both runs have is not compared, by its name.

    Parameters
    ----------
    store : Store
    comparison : Comparison
        Of the two runs.
    names : (str, str)
        How the base and the other run are called.
    """
    groups = [
        run_view(store, run).score_groups[["metric", "facet"]]
        for run in (comparison.base, comparison.other)
    ]
    reasons: dict[MeasureName, str] = {}
    for measure in COMPARED_MEASURES:
        metric, facet = MEASURES[measure].metric, MEASURES[measure].facet
        is_paired = any(
            row.metric == metric and facet.items() <= dict(row.facet).items()
            for row in comparison.rows
        )
        sides = [_measure_groups(table, metric, facet) for table in groups]
        if is_paired or any(side.empty for side in sides):
            continue
        texts = [
            f"{_value_text(name, base)} in {names[0]}, {_value_text(name, other)} in {names[1]}"
            for name, (base, other) in differing_facets(sides[0], sides[1]).items()
        ]
        reasons[measure] = "; ".join(texts) or "with other settings, or of other items"
    return reasons


def missing_measures(store: Store, base: str, other: str) -> Mapping[MeasureName, str]:
    """Return, by measure of faithfulness, the id of the run that lacks what the other one has.

    Parameters
    ----------
    store : Store
    base, other : str
        Ids of the runs.
    """
    tables = {run: run_view(store, run).score_groups[["metric", "facet"]] for run in (base, other)}
    lacking: dict[MeasureName, str] = {}
    for measure in COMPARED_MEASURES:
        if MEASURES[measure].tested_by is None:
            continue
        metric, facet = MEASURES[measure].metric, MEASURES[measure].facet
        is_missing = {
            run: _measure_groups(table, metric, facet).empty for run, table in tables.items()
        }
        if is_missing[base] != is_missing[other]:
            lacking[measure] = base if is_missing[base] else other
    return lacking


def _measure_groups(groups: pd.DataFrame, metric: str, facet: Mapping[str, str]) -> pd.DataFrame:
    is_measure = [
        name == metric and facet.items() <= json.loads(text).items()
        for name, text in groups.itertuples(index=False)
    ]
    return groups[is_measure]


def _value_text(facet: str, values: list[str]) -> str:
    if facet == "chain":
        return f"on {' and '.join(_CHAIN_TEXTS.get(value, value) for value in values)}"
    return f"with {facet} {' or '.join(values)}"
