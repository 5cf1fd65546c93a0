"""Which items a rater can judge: those whose chain the store or its log has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from cotlab.core.types import RECORDED_PROVIDER
from cotlab.review.labelling.judged_steps import load_judged_steps
from cotlab.review.labelling.queue import QueueError
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.item_scores import list_unmeasured_runs
from cotlab.store.labels import runs_with_scores

NO_SCORES_REASON = "the run has no replies yet"
REDACTED_REASON = "the run stored no texts"
NO_CHAIN_REASON = "no chain is stored: the model wrote none, or its reply is not in the log"


_BATCH = 200
"""Items whose chains are read at once."""


class ReadableItems(NamedTuple):
    """Items whose chain a rater can read."""

    items: list[tuple[str, str, str]]
    """(run, item id, reason), in their order."""
    n_left_out_by_reason: Mapping[str, int]
    """Items whose chain nobody can read."""


def keep_readable(
    store: Store, items: Iterable[tuple[str, str, str]], max_items: int | None = None
) -> ReadableItems:
    """Leave out the items whose chain a rater could not read.

    Parameters
    ----------
    store : Store
    items : iterable of (run, item id, reason)
    max_items : int, optional
        Stop after so many that can be read.

    Raises
    ------
    UnknownName
        If there is no such run.
    """
    entries = list(items)
    runs = list(dict.fromkeys(run for run, _, _ in entries))
    redacted = {
        run for run in runs if read.is_suite_redacted(store, read.get_run(store, run)["suite"])
    }
    n_left_out: Counter[str] = Counter()
    readable: list[tuple[str, str, str]] = []
    for start in range(0, len(entries), _BATCH):
        batch = entries[start : start + _BATCH]
        keys = [(run, item_id) for run, item_id, _ in batch if run not in redacted]
        steps_by_item = load_judged_steps(store, keys)
        for entry in batch:
            if entry[0] in redacted:
                n_left_out[REDACTED_REASON] += 1
            elif not steps_by_item.get(entry[:2]):
                n_left_out[NO_CHAIN_REASON] += 1
            else:
                readable.append(entry)
            if len(readable) == max_items:
                return ReadableItems(readable, dict(n_left_out))
    return ReadableItems(readable, dict(n_left_out))


def require_readable(
    store: Store, items: Iterable[tuple[str, str, str]], max_items: int | None = None
) -> ReadableItems:
    """Return ``keep_readable``, which leaves at least one item.

    Raises
    ------
    QueueError
        If there is nothing to read; it says why.
    UnknownName
        If there is no such run.
    """
    result = keep_readable(store, items, max_items)
    if not result.items:
        reasons = left_out_text(result.n_left_out_by_reason) or NO_SCORES_REASON
        raise QueueError(
            f"There is nothing to label: {reasons}. Choose a run whose replies are stored."
        )
    return result


def left_out_text(n_left_out_by_reason: Mapping[str, int]) -> str:
    """Return how many items are left out, by reason: "3 items: the run stored no texts"."""
    return "; ".join(
        f"{n} item{'s' * (n != 1)}: {reason}" for reason, n in n_left_out_by_reason.items()
    )


def runs_to_label(store: Store) -> list[dict[str, object]]:
    """Return the rows of the runs, newest first, that have replies and stored their texts.

    A run that was answered nothing and has no value of any metric, as where a model cannot read
    its suite, has only the suite's chains, which are no model's.
    """
    with_scores, without_values = runs_with_scores(store), list_unmeasured_runs(store, ())
    return [
        {str(name): value for name, value in row.items()}
        for row in read.list_runs(store).to_dict("records")
        if row["id"] in with_scores
        and (row["id"] not in without_values or _has_replies(row))
        and not read.is_suite_redacted(store, row["suite"])
    ]


def _has_replies(row: Mapping[Any, Any]) -> bool:
    """Return whether a model answered a run, now or in the chains that it was given."""
    n_replies = int(row["asked"]) + int(row["hits"]) - int(row["failed"])
    return n_replies > 0 or read.plan_from_row(row).subject.provider == RECORDED_PROVIDER
