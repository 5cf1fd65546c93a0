"""Which parts of each item are defined, and whether a calibrator was fitted on items with the same ones.

The mean of two parts is another score than the mean of five: a map fitted on one says nothing of
the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from cotlab.reliability.calibrator import COMBINED
from cotlab.stats.composite import COMPONENTS

UNLABELLED = (
    "of this item {defined} are defined, and the calibrator's labelled items have {labelled}: label"
    " items like this one and fit a calibrator on them too"
)
UNKNOWN = (
    "which parts the labelled items of calibrator {version} have cannot be known any more: fit one"
    " anew with cotlab calibrate RUN"
)
_MOST = 3
"""So many sets of parts are named in a reason; the others are counted."""


def defined_parts(
    features: pd.DataFrame,
    weights: Mapping[str, float] | None = None,
    combination: Mapping[str, Any] | None = None,
) -> list[tuple[str, ...]]:
    """Return, for each row of a ``feature_table``, the parts with a value among those that its r_cal rests on.

    Parameters
    ----------
    features : DataFrame
    weights : mapping of part to weight, optional
        The calibrator's; a part without weight changes nothing. Without it each row's r_raw is
        composed of its profile's parts.
    combination : mapping, optional
        ``Combination.params``; r_cal rests on its features then.
    """
    if combination is not None:
        names = tuple(sorted(combination["features"]))  # the store does not keep their order
    elif weights is not None:
        names = tuple(part for part in COMPONENTS if weights.get(part, 0.0) > 0)
    else:
        names = COMPONENTS
    known = {
        name: features[name].notna().to_numpy() if name in features else [False] * len(features)
        for name in names
    }
    composed = (
        features["parts"].tolist()
        if weights is None and combination is None and "parts" in features
        else []
    )
    profiles = composed or [""] * len(features)
    return [
        tuple(name for name in names if known[name][k] and (not profile or name in profile))
        for k, profile in enumerate(profiles)
    ]


def counted(sets: Sequence[tuple[str, ...]]) -> list[dict[str, Any]]:
    """Return how many labelled items have each set, the most frequent first: ``parts`` and ``n``, as a report keeps them."""
    return [{"parts": list(parts), "n": n} for parts, n in Counter(sets).most_common()]


def why_uncalibrated(features: pd.DataFrame, row: Mapping[str, Any]) -> list[str]:
    """Return why a calibrator does not speak of each row, whose set of defined parts no label of its has; "" where it does.

    ``row`` is the calibrator's. Where its report does not have ``defined_parts``, it speaks of no
    row.
    """
    labelled = (row["report"] or {}).get("defined_parts")
    if labelled is None:
        return [UNKNOWN.format(version=row["version"])] * len(features)
    sets = {frozenset(one["parts"]) for one in labelled}
    names = [f"{', '.join(one['parts']) or 'none'} ({one['n']})" for one in labelled]
    more = [f"{len(names) - _MOST} other sets"] if len(names) > _MOST else []
    words = " or ".join([*names[:_MOST], *more])
    rows = defined_parts(features, row["weights"], row["params"].get(COMBINED))
    return [
        (
            ""
            if frozenset(parts) in sets
            else UNLABELLED.format(defined=", ".join(parts) or "no parts", labelled=words)
        )
        for parts in rows
    ]
