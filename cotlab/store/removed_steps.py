"""The scores of a removed step, with the reply to the chain without it and the suite's step."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from cotlab.store.database import Store

_REMOVED_SQL = """
    SELECT s.item_id, s.step, s.evidence[2] AS key, i.steps[s.step + 1] AS text
    FROM scores s LEFT JOIN items i ON i.suite = $suite AND i.id = s.item_id
    WHERE s.run = $run AND s.metric = 'accuracy_delta' AND s.step IS NOT NULL
      AND len(s.evidence) >= 2 AND json_contains(s.facet, '{"mode": "remove"}')
    ORDER BY s.item_id, s.step, s.sample
    """
_CHAIN_SQL = """
    SELECT item_id, evidence[2:] FROM scores WHERE run = $run AND metric = 'baseline_correct'
    QUALIFY row_number() OVER (PARTITION BY item_id ORDER BY scorer, facet, step, sample) = 1
    """


def removed_step_replies(store: Store, run_id: str, suite: str) -> pa.Table:
    """Return a row for each score of a chain without one of its steps.

    Parameters
    ----------
    store : Store
    run_id : str
    suite : str
        Digest of the run's suite.

    Returns
    -------
    Table
        item_id, step (counts from 0), key (of the request without the step), text (of the suite's
        step; NULL where the suite's chain has no such step), in the order of item and step.
    """
    return store.query_columns(_REMOVED_SQL, {"run": run_id, "suite": suite})


def chain_keys_by_item(store: Store, run_id: str) -> dict[str, Sequence[str]]:
    """Return item → keys of the requests for the model's own chain, those after the first."""
    return dict(store.query_rows(_CHAIN_SQL, {"run": run_id}))
