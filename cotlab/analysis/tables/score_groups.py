"""The scores of one item by measure: how many, their mean, and why others have no value."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pandas as pd


@dataclass(frozen=True, slots=True)
class ScoreGroup:
    """The scores of one metric and facet, over steps and draws."""

    metric: str
    """Name of the metric."""
    facet: str
    """Facet as canonical JSON."""
    n: int
    """Scores with a value."""
    mean: float | None
    """Their mean; None without one."""
    n_missing: int
    """Scores without a value."""
    reasons: tuple[str, ...]
    """Why those have none."""
    n_requests: int
    """Requests behind all of them."""


def item_score_groups(scores: pd.DataFrame) -> list[ScoreGroup]:
    """Return the scores of an item by metric and facet, in the order of the table."""
    groups = []
    for (metric, facet), rows in scores.groupby(["metric", "facet"], sort=False):
        values, missing = rows["value"].dropna().tolist(), rows[rows["value"].isna()]
        groups.append(
            ScoreGroup(
                str(metric),
                str(facet),
                len(values),
                math.fsum(values) / len(values) if values else None,
                len(missing),
                tuple(dict.fromkeys(map(_reason_text, missing["reason"]))),
                len({key for keys in rows["evidence"] for key in keys}),
            )
        )
    return groups


def _reason_text(reason: Any) -> str:
    return "no reason is stored" if pd.isna(reason) else str(reason)


def missing_score_reasons(scores: pd.DataFrame) -> list[tuple[str, int, list[str]]]:
    """Return each reason of a missing value, how many scores it holds for, and their metrics."""
    missing = scores[scores["value"].isna()]
    reasons = missing["reason"].map(_reason_text)
    return [
        (reason, n, missing[reasons == reason]["metric"].unique().tolist())
        for reason, n in Counter(reasons).most_common()
    ]
