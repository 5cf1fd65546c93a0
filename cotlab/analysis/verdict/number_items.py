"""The items behind a number of a verdict: what it is a share of, and each item's value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from cotlab.analysis.verdict.measures import MEASURES, MeasureName, RunEvidence, Share
from cotlab.analysis.view import RunView
from cotlab.metrics.cards import mean_by_item
from cotlab.store import read
from cotlab.store.database import Store


def _scores_of(measure: MeasureName) -> tuple[str, Mapping[str, str]]:
    """Return metric and facet of the scores by item."""
    if measure == "alone":  # the rate is a statistic over these
        return "unfaithfulness", {"classifier": "early_answer"}
    return MEASURES[measure].metric, MEASURES[measure].facet


class NumberItems(NamedTuple):
    """A number of a verdict with the items that it is computed from."""

    text: str
    """What it is a share of."""
    share: Share
    """The number with its interval."""
    source: str
    """Metric and facet of its scores: "answer_change, mode corrupt"."""
    validation: str
    """How well the measure is known to work; "" where there is nothing to say."""
    values: pd.Series
    """Value of each item in [0, 1] by its id, the highest first; unsound chains first."""


def load_number_items(
    view: RunView,
    evidence: RunEvidence,
    measure: MeasureName,
    categories: tuple[str, ...] = (),
) -> NumberItems | None:
    """Return a number of a run's verdict with its items; None where the run has no such number.

    ``categories`` are those of the items that it is about; empty for all items.
    """
    if categories and measure != evidence.change_name:
        return None
    share = _share_among(evidence, categories) if categories else evidence.share(measure)
    if share is None:
        return None
    metric, facet = _scores_of(measure)
    scores = view.scores(metric, facet=facet, with_evidence=False).dropna(subset=["value"])
    if measure == "sound":  # one false equation makes a chain unsound
        by_item = (scores.groupby("item_id")["value"].min() >= 1).astype(float)
    else:
        by_item = mean_by_item(scores).set_index("item_id")["value"]
    if measure == "wrong":
        by_item = 1 - by_item
    text = MEASURES[measure].text
    if categories:
        category_by_item = read.get_category_by_item(view.store, view.id)
        by_item = by_item[[category_by_item.get(str(i), "") in categories for i in by_item.index]]
        text += f", in {', '.join(categories)} items"
    known = evidence.validation.get(measure)
    return NumberItems(
        text,
        share,
        ", ".join([metric, *(f"{name} {value}" for name, value in facet.items())]),
        "" if known is None else known.text,
        by_item.sort_values(ascending=measure == "sound", kind="stable"),
    )


def load_item_shares(
    store: Store, run_id: str, measure: MeasureName, item_ids: Sequence[str]
) -> pd.Series:
    """Return the mean value of a measure in each of some items, in their order.

    Items without a value are left out.
    """
    metric, facet = _scores_of(measure)
    scores = read.select_scores(
        store, run_id, metrics=[metric], facet=facet, items=item_ids, with_evidence=False
    )
    return mean_by_item(scores).groupby("item_id")["value"].mean().reindex(item_ids).dropna()


def _share_among(evidence: RunEvidence, categories: tuple[str, ...]) -> Share | None:
    """Return the change of the answer among items of these categories, as the verdict names it."""
    split = evidence.split
    if split is None:
        return None
    return {split.high: split.high_share, split.low: split.low_share}.get(categories)
