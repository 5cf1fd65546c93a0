"""Choose what to label next: diverse unlabelled items near a threshold of the policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from cotlab.core.errors import CotlabError
from cotlab.metrics.composite.scorer import FEATURES
from cotlab.reliability.acquisition import EPSILON, UNSCORED, choose_next_labels
from cotlab.reliability.policy import Policy
from cotlab.review.labelling.queue import make_queue
from cotlab.review.release.apply import r_cal
from cotlab.review.release.features import EXTRA_FEATURES, feature_table
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from cotlab.store.decisions import current_policy

REASON = "chosen to learn from"
MIDDLE = 0.5
"""The threshold where there is no policy."""


class NothingToLabel(CotlabError):
    """Every item has a label."""


class LabelRequest(NamedTuple):
    """Items to label next."""

    items: pd.DataFrame
    """``run, item_id, r_cal`` (NaN where there is none) and ``why``, best ones first."""
    thresholds: tuple[float, ...]
    """Thresholds that the items are near to."""
    epsilon: float
    """Distance to a threshold that counts as near."""
    near: int
    """Number of unlabelled items within ``epsilon`` of a threshold."""
    note: str
    """What differs from the request; "" for nothing."""


def select_items_to_label(
    store: Store,
    runs: Sequence[str],
    k: int,
    *,
    epsilon: float = EPSILON,
    thresholds: Sequence[float] = (),
    unscored: float = UNSCORED,
    seed: int = 0,
) -> LabelRequest:
    """Choose ``k`` items of runs to label next.

    `cotlab.reliability.acquisition.choose_next_labels` describes how.

    Parameters
    ----------
    store : Store
    runs : sequence of str
    k : int
    epsilon, unscored, seed
        As there.
    thresholds : sequence of float in [0, 1]
        By default those of the current policy, each item being near to those of its own domain
        alone (0 and 1 separate nothing and do not count where there are others); 0.5 without a
        policy.

    Raises
    ------
    NothingToLabel
        If every item of these runs has a label, or they have no items.
    UnknownName
        If there is no such run.
    """
    table = feature_table(store, runs)
    labels = label_store.label_table(store)
    labelled = set(zip(labels["run"], labels["item_id"], strict=True))
    is_labelled = [key in labelled for key in zip(table["run"], table["item_id"], strict=True)]
    if all(is_labelled):
        raise NothingToLabel(
            f"Every one of the {len(table)} scored items of {', '.join(runs)} has a label: name"
            " another run"
        )
    notes, item_thresholds = [], None
    if not thresholds:
        row = current_policy(store)
        policy = Policy({}) if row is None else Policy.from_row(row)
        every = {v for choice in policy.thresholds.values() for v in (choice.low, choice.high)}
        thresholds = sorted(every - {0.0, 1.0}) or sorted(every)
        item_thresholds = [_inner_thresholds(policy, str(domain)) for domain in table["domain"]]
        if not thresholds:
            thresholds = [MIDDLE]
            notes.append(f"no policy holds, so the threshold is {MIDDLE:g}")
    score = r_cal(store, table)["r_cal"].to_numpy(dtype=float)
    names = [name for name in ("r_raw", *FEATURES, *EXTRA_FEATURES) if table[name].notna().any()]
    space = table[names].to_numpy(dtype=float) if names else np.empty((len(table), 0))
    chosen = choose_next_labels(
        score,
        space,
        thresholds,
        k,
        epsilon=epsilon,
        unscored=unscored,
        taken=is_labelled,
        item_thresholds=item_thresholds,
        seed=seed,
    )
    rows = [choice.row for choice in chosen.choices]
    items = table.iloc[rows][["run", "item_id"]].assign(
        r_cal=score[rows], why=[choice.reason for choice in chosen.choices]
    )
    note = "; ".join([*notes, *([chosen.note] if chosen.note else [])])
    return LabelRequest(
        items.reset_index(drop=True), tuple(thresholds), chosen.epsilon, chosen.near, note
    )


def _inner_thresholds(policy: Policy, domain: str) -> tuple[float, ...]:
    """Return the thresholds of a domain inside (0, 1); none outside the policy."""
    limits = policy.of(domain)
    return () if limits is None else tuple(v for v in (limits.low, limits.high) if 0 < v < 1)


def queue_selection(store: Store, selection: LabelRequest, name: str, *, by: str) -> str:
    """Queue these items for raters and return the queue's id.

    Raters do not see why an item was chosen, as that would reveal its score.
    """
    keys = zip(selection.items["run"], selection.items["item_id"], strict=True)
    return make_queue(store, name, [(str(run), str(item), REASON) for run, item in keys], by=by)
