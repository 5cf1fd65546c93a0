"""The scores that feature vectors are made of: their values, with numbers in place of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from cotlab.store.database import Store
from cotlab.store.item_scores import read_numbered_scores


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
        scored = read_numbered_scores(connection, [run_id], list(metrics))
    columns = scored.columns
    position_by_id = dict(zip(items["id"], items["position"], strict=True))
    positions = np.array([position_by_id.get(item, -1) for _, item in scored.items], dtype=np.int32)
    position = positions[columns["item"]]
    order = np.lexsort([columns["sample"], columns["step"], columns["group"], position])
    order = order[position[order] >= 0]
    values = pd.DataFrame(
        {
            "position": position[order],
            "group": columns["group"][order],
            "value": columns["value"][order],
        }
    )
    composites = composites.astype({"reason": "str"})  # also where all are NULL
    groups = [ScoreGroup(*group[1:]) for group in scored.groups]
    return FeatureScores(items, composites, groups, values)
