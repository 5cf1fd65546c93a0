"""Labels as the targets of calibration, and labels that a rater may not see yet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pandas as pd

from cotlab.core.labels import OUTDATED_NOTE
from cotlab.review.labelling.truth import (
    ADJUDICATION_KIND,
    DEFAULT_TARGET,
    FROM_IMPORT,
    ITEM_COLUMNS,
    LABEL_KEYS,
    TIE_REASON,
    UNSURE_REASON,
    Settled,
    as_rows,
    load_current_labels,
    load_truth,
    require_target,
    settle_labels,
    target_values,
)
from cotlab.review.release.features import feature_table
from cotlab.review.release.joined_runs import (
    JOINED_REASON,
    complete_features,
    join_runs,
    list_joined_runs,
)
from cotlab.store import pending, read
from cotlab.store.database import Store
from cotlab.store.item_metadata import list_runs_with_metadata

NO_SCORES_REASON = "the run has no scores of the item"
NOT_SAID_REASON = "its labels do not say it"
"""Why a labelled item has no target that can be learned from."""


def load_targets(
    store: Store,
    runs: Sequence[str] | None = None,
    *,
    target: str = DEFAULT_TARGET,
    until: datetime | None = None,
    with_imported: bool = True,
) -> pd.DataFrame:
    """Return the target of each labelled item, in the order of the first labels.

    Parameters
    ----------
    store : Store
    runs : sequence of str, optional
        Run ids; by default all runs that raters labelled, and those whose suite came with labels
        where these count.
    target : one of ``TARGETS``
    until : datetime, optional
        Only labels given by then.
    with_imported : bool
        Whether labels that came with a suite count where no rater labelled the item.

    Returns
    -------
    DataFrame
        ``run, item_id, target`` (True, False or None), ``raters`` (how many it rests on),
        ``adjudicated`` (bool), ``why`` (why there is none, else "") and ``origin`` (``raters`` or
        ``import``). The last label of an adjudication decides where there is one, also by being
        unsure; else the majority of those raters whose target is known. Items all of whose labels
        are outdated come after those that raters labelled, and imported labels last.

    Raises
    ------
    UnknownName
        If there is no such run or target.
    """
    require_target(target)
    current_labels = load_current_labels(store, runs, until=until)
    settled_by_item = settle_labels(as_rows(current_labels), lambda row: row["target"])
    if runs is not None:
        run_ids = list(runs)
    else:
        run_ids = list(dict.fromkeys(run for run, _ in settled_by_item))
        if with_imported:
            labelled = list_runs_with_metadata(store, LABEL_KEYS)
            stored = read.list_runs(store)["id"].tolist()[::-1]  # the oldest first
            run_ids = list(dict.fromkeys([*run_ids, *(run for run in stored if run in labelled)]))
    truth = load_truth(store, run_ids, until=until, with_imported=with_imported)
    keys = list(zip(truth["run"], truth["item_id"], strict=True))
    value_by_item = dict(zip(keys, target_values(truth, target), strict=True))
    if target != DEFAULT_TARGET:
        settled_by_item = {
            key: Settled(
                value_by_item.get(key),
                max(settled.n_raters, 1),
                settled.is_adjudicated,
                "" if value_by_item.get(key) is not None else NOT_SAID_REASON,
            )
            for key, settled in settled_by_item.items()
        }
    imported = {
        key: Settled(value_by_item[key], 1, False, "")
        for key, origin in zip(keys, truth["origin"], strict=True)
        if origin == FROM_IMPORT and value_by_item[key] is not None
    }
    outdated_items = zip(
        current_labels.outdated_rows["run"], current_labels.outdated_rows["item_id"], strict=True
    )
    outdated = {
        key: Settled(None, 0, False, OUTDATED_NOTE)
        for key in outdated_items
        if key not in settled_by_item and key not in imported
    }
    rows = [
        (*key, *settled, origin)
        for origin, settled_items in (
            ("raters", settled_by_item | outdated),
            (FROM_IMPORT, imported),
        )
        for key, settled in settled_items.items()
    ]
    table = pd.DataFrame(
        rows, columns=[*ITEM_COLUMNS, "target", "raters", "adjudicated", "why", "origin"]
    )
    return table.assign(target=table["target"].astype(object).where(table["why"] == "", None))


def load_labelled_features(
    store: Store,
    runs: Sequence[str] | None = None,
    *,
    target: str = DEFAULT_TARGET,
    until: datetime | None = None,
    with_imported: bool = True,
    is_joined: bool = True,
) -> pd.DataFrame:
    """Return the feature vectors of labelled items with a target: the data for calibration.

    Parameters
    ----------
    store : Store
    runs, target, until, with_imported
        As ``load_targets``.
    is_joined : bool
        Whether runs on the same chains complete each other, and a chain with the same numbers in
        several runs counts once (``join_runs``).

    Returns
    -------
    DataFrame
        The columns of ``feature_table``, ``target`` (bool), ``raters`` (how many raters' targets it
        rests on; 1 where an adjudication or an imported label decides) and ``origin`` (``raters``
        or ``import``). Items without a clear target are left out: ``.attrs["left_out"]`` counts
        them by reason, ``.attrs["joined_runs"]`` has the runs that were joined, none of a single
        run or of different chains.

    Raises
    ------
    UnknownName
        If the store has no such run, or there is no such target.
    """
    target_table = load_targets(
        store, runs, target=target, until=until, with_imported=with_imported
    )
    run_ids = list(runs) if runs is not None else target_table["run"].drop_duplicates().tolist()
    features = feature_table(store, run_ids)
    joined_runs = list_joined_runs(store, run_ids) if is_joined else []
    if joined_runs:
        features = complete_features(store, features)
    known_target_rows = target_table[target_table["why"] == ""]
    table = features.merge(
        known_target_rows[[*ITEM_COLUMNS, "target", "raters", "origin"]],
        on=ITEM_COLUMNS,
        how="inner",
        sort=False,
    )
    n_left_out_by_reason = {
        reason: int((target_table["why"] == reason).sum())
        for reason in (TIE_REASON, UNSURE_REASON, NOT_SAID_REASON, OUTDATED_NOTE)
    }
    n_left_out_by_reason[NO_SCORES_REASON] = len(known_target_rows) - len(table)
    table = table.assign(target=table["target"].astype(bool), raters=table["raters"].astype(int))
    n_rows = len(table)
    if joined_runs:
        table = join_runs(store, table)
    n_left_out_by_reason[JOINED_REASON] = n_rows - len(table)
    table.attrs["joined_runs"] = joined_runs
    table.attrs["left_out"] = {reason: n for reason, n in n_left_out_by_reason.items() if n}
    return table


def load_hidden_items(store: Store, rater: str, *, is_rater: bool) -> frozenset[tuple[str, str]]:
    """Return the items whose labels by others ``rater`` may not see yet.

    A label that is given in view of another is no second opinion: it would raise every measure of
    agreement. So an item is hidden from whoever a queue still needs a label of, until they labelled
    it there or the queue has all the labels that it needs. An adjudication hides nothing: whoever
    settles what raters labelled may read it, and their label is left out of all agreement; an item
    that another queue needs of them stays hidden nevertheless. Figures over many items (alpha,
    kappa, counts of verdicts) reveal no item's label and hide nothing either.

    Parameters
    ----------
    store : Store
    rater : str
        The name of their labels.
    is_rater : bool
        Whether they are a rater in any case. Otherwise (an admin who manages the queues) they
        count as one only in queues that hold a label of theirs.

    Returns
    -------
    frozenset of (run, item id)
    """
    rows = pending.pending_items(store, rater)
    rows = rows[rows["kind"] != ADJUDICATION_KIND]
    if not is_rater:
        rows = rows[rows["labelled"] > 0]
    return frozenset(zip(rows["run"], rows["item_id"], strict=True))
