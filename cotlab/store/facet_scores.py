"""Scores of a run as tables of facets need them: why some have no value, and the few raw values."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from cotlab.store.database import Store

_SCORES_SQL = """
    SELECT metric, facet, value, reason FROM scores
    WHERE run = $run AND list_contains($metrics, metric)
      AND ($facets IS NULL OR value IS NULL OR list_contains($facets, facet))
    ORDER BY item_id, scorer, metric, facet, step, sample
    """


def list_facets(store: Store, run_id: str, metric: str) -> list[str]:
    """Return the facets that a run has scores of a metric of, as the store writes them."""
    rows = store.query_rows(
        "SELECT DISTINCT facet FROM scores WHERE run = ? AND metric = ? ORDER BY facet",
        [run_id, metric],
    )
    return [str(facet) for (facet,) in rows]


def scores_without_value(
    store: Store, run_id: str, metrics: Sequence[str], raw_facets: Sequence[str] | None = ()
) -> pd.DataFrame:
    """Return the scores of some metrics that have no value.

    Parameters
    ----------
    store : Store
    run_id : str
    metrics : sequence of str
    raw_facets : sequence of str or None
        Facets, as the store writes them, whose scores are returned with a value too; None: all.

    Returns
    -------
    DataFrame
        metric, facet, value (NaN where there is none), reason, in the order of items.
    """
    facets = None if raw_facets is None else list(raw_facets)
    parameters = {"run": run_id, "metrics": list(metrics), "facets": facets}
    return store.query_columns(_SCORES_SQL, parameters).to_pandas()
