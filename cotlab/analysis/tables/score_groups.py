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
    rows_by_group: dict[tuple[str, str], list[tuple[Any, Any, Any]]] = {}
    columns = (scores[name].tolist() for name in ("metric", "facet", "value", "reason", "evidence"))
    for metric, facet, value, reason, keys in zip(*columns, strict=True):
        rows_by_group.setdefault((metric, facet), []).append((value, reason, keys))
    groups = []
    for (metric, facet), rows in rows_by_group.items():
        values = [float(value) for value, _, _ in rows if not pd.isna(value)]
        reasons = {_reason_text(reason): None for value, reason, _ in rows if pd.isna(value)}
        groups.append(
            ScoreGroup(
                metric,
                facet,
                len(values),
                math.fsum(values) / len(values) if values else None,
                len(rows) - len(values),
                tuple(reasons),
                len({key for _, _, keys in rows for key in keys}),
            )
        )
    return groups


def _reason_text(reason: Any) -> str:
    return "no reason is stored" if pd.isna(reason) else str(reason)


def missing_score_reasons(scores: pd.DataFrame) -> list[tuple[str, int, list[str]]]:
    """Return each reason of a missing value, how many scores it holds for, and their metrics."""
    missing = scores[scores["value"].isna()]
    reasons = missing["reason"].map(_reason_text)
    counts = Counter(reasons)
    return [
        (reason, n, missing[reasons == reason]["metric"].unique().tolist())
        for reason, n in counts.most_common()
    ]
