"""Raters' labels as the targets of calibration, and labels that a rater may not see yet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import pandas as pd

from cotlab.core.errors import UnknownName
from cotlab.core.labels import OUTDATED
from cotlab.review.release.features import feature_table
from cotlab.store import labels as label_store
from cotlab.store import pending as due
from cotlab.store.database import Store

TIE, UNSURE, NO_SCORES = "raters are tied", "nobody is sure", "the run has no scores of the item"
"""Why a labelled item has no target, or none that can be learned from."""
SETTLES = "adjudication"
"""Kind of queue whose labels decide, and are given in view of other labels."""
_ITEM = ["run", "item_id"]


class Verdicts(NamedTuple):
    """Current labels, with the columns of ``cotlab.store.labels.label_table``."""

    raters: pd.DataFrame
    """The last label of each (run, item, rater) outside of adjudications."""
    adjudicated: pd.DataFrame
    """The last label of each (run, item, rater) in adjudications; an item's last one counts."""
    outdated: pd.DataFrame
    """Rows that withdrew a label because another reply has taken the place of its own."""


def verdicts(
    store: Store,
    runs: Sequence[str] | None = None,
    queue: str | None = None,
    *,
    until: datetime | None = None,
) -> Verdicts:
    """Return the current labels of these runs or of all.

    A rater's label in an adjudication does not change their earlier one.

    Parameters
    ----------
    store : Store
    runs : sequence of str, optional
    queue : str, optional
        Labels that are current in this queue, which must be known or have labels.
    until : datetime, optional
        The labels that were current at that time.
    """
    rows = label_store.label_table(store, history=True)
    if runs is not None:
        rows = rows[rows["run"].isin(runs)]
    if until is not None:
        rows = rows[rows["at_"] <= until]
    kinds = label_store.queue_kinds(store)
    settling = rows["queue"].isin([name for name, kind in kinds.items() if kind == SETTLES])
    in_scope = rows["queue"] == queue if queue is not None else ~settling
    if queue is not None and not in_scope.any() and queue not in kinds:
        raise UnknownName("queue", queue, list(kinds)[:20])

    def last(table: pd.DataFrame) -> pd.DataFrame:
        newest = table.drop_duplicates([*_ITEM, "rater"], keep="last")
        return newest[~newest["withdrawn"].astype(bool)].reset_index(drop=True)

    outdated = rows[
        rows["withdrawn"].astype(bool) & (rows["note"] == OUTDATED) & (in_scope | settling)
    ]
    return Verdicts(last(rows[in_scope]), last(rows[settling]), outdated.drop_duplicates(_ITEM))


def targets(
    store: Store, runs: Sequence[str] | None = None, *, until: datetime | None = None
) -> pd.DataFrame:
    """Return the target of each labelled item, in the order of the first labels.

    Returns
    -------
    DataFrame
        ``run, item_id, target`` (True, False or None), ``raters`` (how many it rests on),
        ``adjudicated`` (bool) and ``why`` (why there is none, else ""). The last label of an
        adjudication decides where there is one, also by being unsure; else the majority of those
        raters whose target is known. Items all of whose labels are outdated come last.
    """
    current = verdicts(store, runs, until=until)
    settled = (
        current.adjudicated.drop_duplicates(_ITEM, keep="last").set_index(_ITEM)["target"].to_dict()
    )
    answers: dict[tuple[str, str], list[bool]] = {}
    for row in (
        pd.concat([current.raters, current.adjudicated]).sort_values("seq").to_dict("records")
    ):
        answers.setdefault((row["run"], row["item_id"]), [])
    for row in current.raters.to_dict("records"):
        if row["target"] is not None:
            answers[row["run"], row["item_id"]].append(row["target"])
    out = []
    for key, values in answers.items():
        yes = sum(values)
        if key in settled:
            target, n = settled[key], 1
        else:
            target, n = (None if 2 * yes == len(values) else 2 * yes > len(values)), len(values)
        reason = "" if target is not None else UNSURE if key in settled or not values else TIE
        out.append((*key, target, n if target is not None else 0, key in settled, reason))
    outdated = zip(current.outdated["run"], current.outdated["item_id"], strict=True)
    out += [(*key, None, 0, False, OUTDATED) for key in outdated if key not in answers]
    table = pd.DataFrame(out, columns=[*_ITEM, "target", "raters", "adjudicated", "why"])
    return table.assign(target=table["target"].astype(object).where(table["why"] == "", None))


def labelled(
    store: Store, runs: Sequence[str] | None = None, *, until: datetime | None = None
) -> pd.DataFrame:
    """Return the feature vectors of labelled items with a target: the data for calibration.

    Parameters
    ----------
    store : Store
    runs : sequence of str, optional
        Run ids; by default all runs that have labels.
    until : datetime, optional
        Only labels given by then.

    Returns
    -------
    DataFrame
        The columns of ``feature_table``, ``target`` (bool: the answer is right and the chain
        adequate) and ``raters`` (how many raters' targets it rests on; 1 where an adjudication
        decides). Items without a clear target are left out: ``.attrs["left_out"]`` counts them by
        reason.

    Raises
    ------
    UnknownName
        If the store has no such run.
    """
    target_table = targets(store, runs, until=until)
    features = feature_table(
        store, list(runs) if runs is not None else target_table["run"].drop_duplicates().tolist()
    )
    clear = target_table[target_table["why"] == ""]
    table = features.merge(clear[[*_ITEM, "target", "raters"]], on=_ITEM, how="inner", sort=False)
    out = {
        reason: int((target_table["why"] == reason).sum()) for reason in (TIE, UNSURE, OUTDATED)
    } | {NO_SCORES: len(clear) - len(table)}
    table = table.assign(target=table["target"].astype(bool), raters=table["raters"].astype(int))
    table.attrs["left_out"] = {reason: n for reason, n in out.items() if n}
    return table


def hidden_from(store: Store, rater: str, *, rates: bool) -> frozenset[tuple[str, str]]:
    """Return the items whose labels by others ``rater`` may not see yet.

    A label that is given in view of another is no second opinion: it would raise every measure of
    agreement. So an item is hidden from whoever a queue still needs a label of, until they labelled
    it there or the queue has all the labels that it needs. An adjudication hides nothing: whoever
    settles what raters labelled may read it, and their label is left out of all agreement; an item
    that another queue needs of them stays hidden nevertheless. Figures over many items (alpha,
    kappa,
    counts of verdicts) reveal no item's label and hide nothing either.

    Parameters
    ----------
    store : Store
    rater : str
        The name of their labels.
    rates : bool
            Whether they are a rater in any case. Otherwise (an admin who manages the queues) they
        count as
        one only in queues that hold a label of theirs.

    Returns
    -------
    frozenset of (run, item id)
    """
    rows = due.pending_items(store, rater)
    rows = rows[rows["kind"] != SETTLES]
    if not rates:
        rows = rows[rows["labelled"] > 0]
    return frozenset(zip(rows["run"], rows["item_id"], strict=True))
