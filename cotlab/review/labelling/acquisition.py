"""What to label next in runs: their unlabelled items near a threshold of the policy, diverse, with the reason of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from cotlab.core.errors import CotlabError
from cotlab.metrics.composite.scorer import FEATURES
from cotlab.reliability.acquisition import EPSILON, UNSCORED, next_labels
from cotlab.reliability.policy import Policy
from cotlab.review.labelling.queue import make_queue
from cotlab.review.release.calibrate import r_cal
from cotlab.review.release.features import BESIDE, feature_table
from cotlab.store import labels as kept
from cotlab.store.database import Store
from cotlab.store.decisions import current_policy

WHY = "chosen to learn from"
MIDDLE = 0.5
"""The threshold where no policy holds."""


class NothingToLabel(CotlabError):
    """Every item has a label."""


class Wanted(NamedTuple):
    """What to label next.

    Attributes
    ----------
    items : DataFrame
        ``run, item_id, r_cal`` (NaN where there is none) and ``why``, in the order in which they are best labelled.
    thresholds : tuple of float
        What "near" was near to.
    near : int
        Unlabelled items within ``epsilon`` of a threshold.
    said : str
        What was done otherwise than asked.
    """

    items: pd.DataFrame
    thresholds: tuple[float, ...]
    epsilon: float
    near: int
    said: str


def wanted(
    store: Store, runs: Sequence[str], k: int, *, epsilon: float = EPSILON, thresholds: Sequence[float] = (),
    unscored: float = UNSCORED, seed: int = 0,
) -> Wanted:  # fmt: skip
    """Choose ``k`` items of runs to label next; ``cotlab.reliability.acquisition.next_labels`` says how.

    Parameters
    ----------
    store : Store
    runs : sequence of str
    k : int
    epsilon, unscored, seed
        As there.
    thresholds : sequence of float in [0, 1]
        Those of the policy that holds where none is given, each item being near to those of its own domain alone (0 and 1
        part nothing from nothing and do not count where there are others); 0.5 where there is no policy.

    Raises
    ------
    NothingToLabel
        If every item of these runs has a label, or they have no items.
    UnknownName
        If there is no such run.
    """
    table = feature_table(store, runs)
    given = kept.labels(store)
    had = set(zip(given["run"], given["item_id"], strict=True))
    taken = [place in had for place in zip(table["run"], table["item_id"], strict=True)]
    if all(taken):
        raise NothingToLabel(f"Every one of the {len(table)} scored items of {', '.join(runs)} has a label: name another run")
    said, own = [], None
    if not thresholds:
        row = current_policy(store)
        policy = Policy({}) if row is None else Policy.from_row(row)
        every = {v for one in policy.thresholds.values() for v in (one.low, one.high)}
        thresholds = sorted(every - {0.0, 1.0}) or sorted(every)
        own = [_parting(policy, str(domain)) for domain in table["domain"]]
        if not thresholds:
            thresholds = [MIDDLE]
            said.append(f"no policy holds, so the threshold is {MIDDLE:g}")
    score = r_cal(store, table)["r_cal"].to_numpy(dtype=float)
    names = [name for name in ("r_raw", *FEATURES, *BESIDE) if table[name].notna().any()]
    space = table[names].to_numpy(dtype=float) if names else np.empty((len(table), 0))
    chosen = next_labels(
        score, space, thresholds, k, epsilon=epsilon, unscored=unscored, taken=taken, own=own, seed=seed
    )  # fmt: skip
    rows = [one.row for one in chosen.choices]
    items = table.iloc[rows][["run", "item_id"]].assign(r_cal=score[rows], why=[one.why for one in chosen.choices])
    told = "; ".join([*said, *([chosen.said] if chosen.said else [])])
    return Wanted(items.reset_index(drop=True), tuple(thresholds), chosen.epsilon, chosen.near, told)


def _parting(policy: Policy, domain: str) -> tuple[float, ...]:
    """The thresholds of a domain that part some answers from others; none outside the policy."""
    held = policy.of(domain)
    return () if held is None else tuple(v for v in (held.low, held.high) if 0 < v < 1)


def queue_of(store: Store, found: Wanted, name: str, *, by: str) -> str:
    """Ask raters for these items; returns the queue's id. Raters are not told why: that would tell them the score."""
    places = zip(found.items["run"], found.items["item_id"], strict=True)
    return make_queue(store, name, [(str(run), str(item), WHY) for run, item in places], by=by)
