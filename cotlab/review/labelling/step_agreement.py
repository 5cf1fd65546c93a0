"""Agreement of raters on where the first mistake of a chain is."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd

from cotlab.review.labelling.current_labels import ITEM_COLUMNS
from cotlab.review.labelling.judged_steps import load_step_labels
from cotlab.stats.agreement import nominal_alpha
from cotlab.stats.intervals import Interval
from cotlab.store.database import Store

NO_MISTAKE = "no mistake"
"""Place of the first mistake where no step is wrong."""


def with_first_mistakes(store: Store, labels: pd.DataFrame) -> pd.DataFrame:
    """Return labels with the place of the first mistake as a name.

    Parameters
    ----------
    store : Store
    labels : DataFrame
        Rows of ``list_labels``.

    Returns
    -------
    DataFrame
        The columns of ``labels``, ``n_steps`` (steps of the item, 0 where the label judges none)
        and ``first_mistake``: "step 3", counted from 1, "no mistake", or None where the rater did
        not judge the steps that the item has now.
    """
    step_labels = load_step_labels(store, labels)
    places = [
        None if not is_current else NO_MISTAKE if first is None else f"step {first + 1}"
        for is_current, first in zip(
            step_labels["these_steps"], labels["first_wrong_step"], strict=True
        )
    ]
    return labels.assign(
        n_steps=step_labels["n_steps"],
        first_mistake=pd.Series(places, index=labels.index, dtype=object),
    )


def after_mistake_alpha(labels: pd.DataFrame, *, seed: int, level: float = 0.95) -> Interval:
    """Return Krippendorff's alpha of "this step is at or after the first mistake" over all steps.

    Raters who place the first mistake one step apart differ on one step, those who differ on
    whether there is one on many. The interval draws whole chains.

    Parameters
    ----------
    labels : DataFrame
        As ``with_first_mistakes`` returns it.
    seed : int
        Of the resampling.
    level : float in (0, 1)

    Returns
    -------
    Interval
        As ``nominal_alpha``; ``n`` counts the chains that two raters read.
    """
    judged = labels[labels["first_mistake"].notna()]
    ratings: list[list[bool]] = []
    chains: list[Hashable] = []
    for key, group in judged.groupby(ITEM_COLUMNS, sort=False):
        if len(group) < 2:
            continue
        n_steps = int(group["n_steps"].iloc[0])
        firsts = [n_steps if first is None else int(first) for first in group["first_wrong_step"]]
        ratings += [[step >= first for first in firsts] for step in range(n_steps)]
        chains += [key] * n_steps
    return nominal_alpha(ratings, seed=seed, level=level, groups=chains)
