"""The scores that feature vectors are made of: their values, with numbers in place of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from cotlab.store.database import Store


class ScoreGroup(NamedTuple):
    """What scores have in common beside their item."""

    scorer: str
    """Name of the scorer."""
    metric: str
    """Name of the metric."""
    facet: str
    """The facet as canonical JSON."""


class FeatureScores(NamedTuple):
    """The scores of a run that its feature vectors are made of."""

    items: pd.DataFrame
    """``position, id, question, category`` and ``field`` (JSON text) of its scored items, in the
    order of the suite."""
    composites: pd.DataFrame
    """``item_id, status, reason, facet`` of the scores of the first metric."""
    groups: list[ScoreGroup]
    """What the scores have in common beside their item."""
    values: pd.DataFrame
    """``position`` of the item, ``group`` (index of ``groups``) and ``value`` of each score; by
    item in the order of ``run_scores``."""


def load_feature_scores(
    store: Store, run_id: str, metrics: Sequence[str], *, status_metric: str, meta_key: str
) -> FeatureScores:
    """Return the scores of some metrics with the run's items and one field of their metadata.

    Texts are most of a table's cost: each item, metric and facet has one text here.

    Parameters
    ----------
    store : Store
    run_id : str
    metrics : sequence of str
    status_metric : str
        The metric of ``FeatureScores.composites``.
    meta_key : str
        The field of ``FeatureScores.items``.
    """
    with store.reading() as connection:
        items = connection.execute(
            """
            SELECT i.position, i.id, i.question, i.category,
                   json_extract(i.meta, $path)::VARCHAR AS field
            FROM runs r JOIN items i ON i.suite = r.suite
            WHERE r.id = $run AND i.id IN (SELECT item_id FROM scores WHERE run = $run)
            ORDER BY i.position
            """,
            {"run": run_id, "path": f'$."{meta_key}"'},
        ).df()
        composites = connection.execute(
            """
            SELECT item_id, status, reason, facet FROM scores WHERE run = ? AND metric = ?
            ORDER BY item_id, scorer, metric, facet, step, sample
            """,
            [run_id, status_metric],
        ).df()
        groups = connection.execute(
            """
            SELECT DISTINCT scorer, metric, facet FROM scores
            WHERE run = ? AND list_contains(?, metric) ORDER BY scorer, metric, facet
            """,
            [run_id, list(metrics)],
        ).fetchall()
        values = connection.execute(
            """
            WITH numbered AS (
                SELECT scorer, metric, facet,
                       (row_number() OVER (ORDER BY scorer, metric, facet))::INTEGER - 1 AS number
                FROM (SELECT DISTINCT scorer, metric, facet FROM scores
                      WHERE run = $run AND list_contains($metrics, metric)))
            SELECT i.position, g.number AS "group", s.value
            FROM scores s JOIN runs r ON r.id = s.run
            JOIN items i ON i.suite = r.suite AND i.id = s.item_id
            JOIN numbered g ON (g.scorer, g.metric, g.facet) = (s.scorer, s.metric, s.facet)
            WHERE s.run = $run AND list_contains($metrics, s.metric)
            ORDER BY i.position, g.number, s.step, s.sample
            """,
            {"run": run_id, "metrics": list(metrics)},
        ).df()
    composites = composites.astype({"reason": "str"})  # also where all are NULL
    return FeatureScores(items, composites, [ScoreGroup(*row) for row in groups], values)
