"""Choose what to label next: diverse unlabelled items near a threshold of the policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from cotlab.core.errors import CotlabError
from cotlab.metrics.composite import FEATURE_SOURCES
from cotlab.reliability.acquisition import EPSILON, UNSCORED_SHARE, choose_next_labels
from cotlab.reliability.policy import Policy
from cotlab.review.labelling.queue import make_queue
from cotlab.review.labelling.readable_chains import require_readable
from cotlab.review.release.apply import calibrated_scores
from cotlab.review.release.features import EXTRA_FEATURES, feature_table
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from cotlab.store.decisions import current_policy

QUEUE_REASON = "chosen to learn from"
DEFAULT_THRESHOLD = 0.5
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
    n_near: int
    """Number of unlabelled items within ``epsilon`` of a threshold."""
    note: str
    """What differs from the request; "" for nothing."""


def select_items_to_label(
    store: Store,
    runs: Sequence[str],
    n_items: int,
    *,
    epsilon: float = EPSILON,
    thresholds: Sequence[float] = (),
    unscored_share: float = UNSCORED_SHARE,
    seed: int = 0,
) -> LabelRequest:
    """Choose ``n_items`` items of runs to label next.

    `cotlab.reliability.acquisition.choose_next_labels` describes how.

    Parameters
    ----------
    store : Store
    runs : sequence of str
    n_items : int
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
    labels = label_store.list_labels(store)
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
        bounds = {v for own in policy.thresholds.values() for v in (own.low, own.high)}
        thresholds = sorted(bounds - {0.0, 1.0}) or sorted(bounds)
        item_thresholds = [_inner_thresholds(policy, str(domain)) for domain in table["domain"]]
        if not thresholds:
            thresholds = [DEFAULT_THRESHOLD]
            notes.append(f"no policy holds, so the threshold is {DEFAULT_THRESHOLD:g}")
    scores = calibrated_scores(store, table)["r_cal"].to_numpy(dtype=float)
    features = table[["r_raw", *FEATURE_SOURCES, *EXTRA_FEATURES]].dropna(axis=1, how="all")
    selection = choose_next_labels(
        scores,
        features.to_numpy(dtype=float),
        thresholds,
        n_items,
        epsilon=epsilon,
        unscored_share=unscored_share,
        is_labelled=is_labelled,
        item_thresholds=item_thresholds,
        seed=seed,
    )
    rows = [choice.row for choice in selection.choices]
    items = table.iloc[rows][["run", "item_id"]].assign(
        r_cal=scores[rows], why=[choice.reason for choice in selection.choices]
    )
    note = "; ".join([*notes, *([selection.note] if selection.note else [])])
    return LabelRequest(
        items.reset_index(drop=True), tuple(thresholds), selection.epsilon, selection.n_near, note
    )


def _inner_thresholds(policy: Policy, domain: str) -> tuple[float, ...]:
    """Return the thresholds of a domain inside (0, 1); none outside the policy."""
    own = policy.domain_thresholds(domain)
    return () if own is None else tuple(v for v in (own.low, own.high) if 0 < v < 1)


def queue_selection(store: Store, selection: LabelRequest, name: str, *, author: str) -> str:
    """Queue these items for raters and return the queue's id.

    Raters do not see why an item was chosen, as that would reveal its score. Items whose chain
    nobody can read are left out.
    """
    keys = zip(selection.items["run"], selection.items["item_id"], strict=True)
    items = [(str(run), str(item), QUEUE_REASON) for run, item in keys]
    return make_queue(store, name, require_readable(store, items).items, author=author)
