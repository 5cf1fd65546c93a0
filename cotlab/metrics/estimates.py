"""Estimates over the items of a run, from the mean value of each item."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pandas as pd

from cotlab.core.keys import resampling_seed
from cotlab.core.types import Estimate, Facet
from cotlab.stats.intervals import FEWEST, Interval, wilson
from cotlab.stats.resample import bootstrap_mean

LONG_TEXT_PHRASE = (
    "a text beyond the embedder's length has the mean of its windows' vectors, weighted by tokens"
)
"""What metrics of embeddings do with a text that the embedder does not read at once."""


def interval_estimate(
    metric: str,
    group: Facet,
    interval: Interval,
    n_undefined: int,
    *,
    resampled_unit: str = "items",
) -> Estimate:
    """Return the estimate of a metric over one group of scores from its interval."""
    return Estimate(
        metric=metric,
        group=group,
        point=interval.point,
        lo=interval.lo,
        hi=interval.hi,
        confidence=interval.level,
        n=interval.n,
        n_undefined=n_undefined,
        method=interval.method,
        over=resampled_unit,
        reason=interval.reason,
    )


def parse_facet(facet_json: str, **extra_pairs: str) -> Facet:
    """Return the sorted pairs of a canonical facet text, with ``extra_pairs`` added."""
    return tuple(sorted({**json.loads(facet_json), **extra_pairs}.items()))


def with_clusters_as_items(table: pd.DataFrame, cluster_by_item: Mapping[str, str]) -> pd.DataFrame:
    """Return scores in which the items of one cluster (epochs of a sample) are draws of one item.

    ``cluster_by_item`` has the items that are in a cluster; intervals then resample clusters.
    """
    if not cluster_by_item:
        return table
    return table.assign(item_id=[cluster_by_item.get(name, name) for name in table["item_id"]])


def mean_by_item(table: pd.DataFrame) -> pd.DataFrame:
    """Average an item's defined values, the unit that intervals resample.

    Columns metric, facet, item_id, value, n, size, undefined.
    """
    keys = ["metric", "facet", "item_id"]
    # masked arrays: the mean of a group must not depend on missing values of other groups
    values = table[[*keys, "value"]].astype({"value": "Float64"}).groupby(keys, sort=True)["value"]
    n_defined, n_scores = values.count().astype(int), values.size().astype(int)
    return pd.DataFrame(
        {
            "value": values.mean().astype(float),
            "n": n_defined,
            "size": n_scores,
            "undefined": n_scores - n_defined,
        }
    ).reset_index()


def mean_interval(
    item_values: Sequence[float], *, seed: int, is_binary: bool, min_items: int = FEWEST
) -> Interval:
    """Return the mean over items of each item's mean, with its interval.

    Every mean of items on a page or in a report comes from here, so that one mean has one interval.
    Equal values have equal intervals, whatever the metric's name.

    Parameters
    ----------
    item_values : sequence of float, finite
        One value an item, in the order of the items' ids.
    seed : int
        Of the run's plan; alone it seeds the resampling.
    is_binary : bool
        Whether the metric's values are 0 or 1, so that the mean is a rate. Where each item's mean
        is 0 or 1 too, the interval is Wilson's; where steps or draws of an item differ, its mean is
        no single yes or no, and items are resampled.
    min_items : int, at least 2
        Items that a bootstrap's bounds need.

    Returns
    -------
    Interval
        In the unit of the metric; undefined with the reason where there is no value.

    References
    ----------
    Wilson (1927), JASA 22:209; Efron (1987), JASA 82:171 (BCa).
    """
    if is_binary and item_values and {*item_values} <= {0.0, 1.0}:
        return wilson(int(sum(item_values)), len(item_values))
    return bootstrap_mean(
        item_values, seed=resampling_seed(seed), share=is_binary, min_units=min_items
    )
