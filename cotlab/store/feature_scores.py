"""The scores that feature vectors are made of: their values, with numbers in place of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from cotlab.store.database import Store
from cotlab.store.numbered_scores import (
    number_groups,
    number_items_by_position,
    read_numbers,
)

_SCORES_SQL = """
    SELECT g.number AS "group", i.number AS item, s.value,
           coalesce(s.step, 2147483647) AS step, coalesce(s.sample, 2147483647) AS sample
    FROM scores s
    JOIN numbered_groups g
      ON (g.run, g.scorer, g.metric, g.facet) = (s.run, s.scorer, s.metric, s.facet)
    JOIN numbered_items i ON (i.run, i.item_id) = (s.run, s.item_id)
    WHERE s.run = $run
    """
"""Scores of no step come last."""


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
        number_items_by_position(connection, run_id)
        groups = number_groups(connection, [run_id], list(metrics))
        numbers = read_numbers(connection, _SCORES_SQL, {"run": run_id})
    order = np.lexsort([numbers[name] for name in ("sample", "step", "group", "item")])
    values = pd.DataFrame(
        {
            "position": numbers["item"][order],
            "group": numbers["group"][order],
            "value": numbers["value"][order],
        }
    )
    composites = composites.astype({"reason": "str"})  # also where all are NULL
    return FeatureScores(items, composites, [ScoreGroup(*row[1:]) for row in groups], values)
