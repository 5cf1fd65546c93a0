"""Whose labels a person may see before giving their own."""

from __future__ import annotations

from cotlab.review.labelling.targets import SETTLES
from cotlab.store import pending as due
from cotlab.store.database import Store


def hidden_from(store: Store, rater: str, *, rates: bool) -> frozenset[tuple[str, str]]:
    """The items whose labels by others ``rater`` may not see yet, because a queue still wants their own of them.

    A label that was given in view of another is no second opinion: it would raise every measure of
    agreement. So an item is hidden from whoever a queue would still ask for it, until they labelled
    it there or the queue has all the labels that it wants. An adjudication hides nothing. Its
    purpose is to settle what raters said, so whoever may be asked to settle may read it, and what
    they answer is left out of all agreement; an item that another queue wants of them stays hidden
    nevertheless. Figures over many items (alpha, kappa, how often a rater said what) tell no item's
    label and hide nothing either.

    Parameters
    ----------
    store : Store
    rater : str
        The name that their labels stand under.
    rates : bool
        Whether they are a rater in any case. Otherwise (an admin who looks after the queues) they
        count as one only in queues that hold a label of theirs.

    Returns
    -------
    frozenset of (run, item id)
    """
    rows = due.pending_items(store, rater)
    rows = rows[rows["kind"] != SETTLES]
    if not rates:
        rows = rows[rows["labelled"] > 0]
    return frozenset(zip(rows["run"], rows["item_id"], strict=True))
