"""One value an item from the scores of a run: the mean of the defined scores of a headline's facet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cotlab.core.program import Headline

Floats = NDArray[np.float64]
_NUMBER = r"[−-]?\d+(\.\d+)?(e[−-]?\d+)?"


def facet_contains(facet: str, required: Mapping[str, str]) -> bool:
    """Whether a facet (canonical JSON) holds every pair of ``wanted``."""
    pairs = json.loads(facet)
    return all(pairs.get(name) == value for name, value in required.items())


def headline_values(scores: pd.DataFrame, headline: Headline, ids: Sequence[str]) -> Floats:
    """The headline's value of each of ``ids``, in their order.

    Returns
    -------
    ndarray (n_items,), in the metric's unit
        NaN where an item has no defined score: undefined, not 0.
    """
    chosen = _chosen(scores, headline)
    means = chosen.groupby("item_id")["value"].mean()
    return np.asarray(
        means.reindex(list(ids)).to_numpy(dtype=float, na_value=np.nan), dtype=np.float64
    )


def undefined_reason(scores: pd.DataFrame, headline: Headline) -> str | None:
    """The commonest reason among the headline's scores without a value; None where each has one.

    Reasons that differ in their numbers only are one, with "…" for the numbers.
    """
    chosen = _chosen(scores, headline)
    reasons = chosen.loc[chosen["value"].isna(), "reason"].dropna().astype(str)
    if reasons.empty:
        return None
    alike = reasons.str.replace(_NUMBER, "…", regex=True)
    commonest = str(alike.value_counts().index[0])
    matching = reasons[alike == commonest].unique()
    return str(matching[0]) if len(matching) == 1 else commonest


def _chosen(scores: pd.DataFrame, headline: Headline) -> pd.DataFrame:
    rows = scores[scores["metric"] == headline.metric]
    facets = {text: facet_contains(text, headline.facet) for text in rows["facet"].unique()}
    return rows[rows["facet"].map(facets).astype(bool)]
