"""The steps that a rater of an item reads: those of the suite's chain, or of the model's own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import pandas as pd

from cotlab.core.labels import steps_digest
from cotlab.run.scored_chain import MODEL_CHAIN_SCORERS, scored_chain
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.item_metadata import list_chain_sources, load_item_steps
from cotlab.store.live import ItemKey
from cotlab.store.responses import ResponseLog


def measures_model_chains(store: Store, run: str) -> bool:
    """Return whether the scores of a run are of chains that its model wrote, not of its suite's."""
    sources = list_chain_sources(store, run)
    of_run_chain = {source for scorer, source in sources if scorer not in MODEL_CHAIN_SCORERS}
    return "own" in (of_run_chain or {source for _, source in sources})


def load_judged_steps(store: Store, items: Sequence[ItemKey]) -> dict[ItemKey, tuple[str, ...]]:
    """Return the texts of the steps that a rater of each item reads.

    Parameters
    ----------
    store : Store
    items : sequence of (run, item id)

    Returns
    -------
    dict
        (run, item id) → texts; none where the item has no chain, or the response log does not hold
        the model's own.
    """
    model_chain_runs = {
        run for run in {run for run, _ in items} if measures_model_chains(store, run)
    }
    steps_by_item = load_item_steps(store, [key for key in items if key[0] not in model_chain_runs])
    for run in model_chain_runs:
        item_ids = sorted({item_id for run_id, item_id in items if run_id == run})
        steps_by_item |= _load_model_steps(store, run, item_ids)
    return steps_by_item


def load_step_labels(store: Store, labels: pd.DataFrame) -> pd.DataFrame:
    """Return which labels of steps are of the steps that their items have now.

    Parameters
    ----------
    store : Store
    labels : DataFrame
        Rows of ``list_labels``.

    Returns
    -------
    DataFrame, index of ``labels``
        ``these_steps`` (bool): whether the label judges the steps, and they are the item's;
        ``n_steps`` (int): steps of the item, 0 for a label that judges none.
    """
    keys = list(zip(labels["run"], labels["item_id"], strict=True))
    is_judged = labels["steps_judged"].tolist()
    judged_keys = {key for key, judged in zip(keys, is_judged, strict=True) if judged}
    steps_by_item = load_judged_steps(store, sorted(judged_keys))
    digest_by_item = {key: steps_digest(steps) for key, steps in steps_by_item.items() if steps}
    rows = [
        (
            judged and digest is not None and digest == digest_by_item.get(key),
            len(steps_by_item.get(key, ())) if judged else 0,
        )
        for key, judged, digest in zip(keys, is_judged, labels["steps_digest"], strict=True)
    ]
    return pd.DataFrame(rows, index=labels.index, columns=["these_steps", "n_steps"])


def _load_model_steps(
    store: Store, run: str, item_ids: Sequence[str]
) -> dict[ItemKey, tuple[str, ...]]:
    row = read.get_run(store, run)
    form = read.plan_from_row(row).subject.form
    scores = read.select_scores(store, run, items=item_ids)
    steps_by_item = {}
    with store.reading(), closing(ResponseLog(store.log_path)) as log:
        for item_id, item_scores in scores.groupby("item_id", sort=False):
            chain = scored_chain(
                read.get_item(store, row["suite"], str(item_id)),
                item_scores,
                form,
                lambda keys: log.load_exchanges(keys) if keys else {},
                lambda keys: {key: reply for key in keys if (reply := log.get(key)) is not None},
            )
            steps_by_item[run, str(item_id)] = chain.steps
    return steps_by_item
