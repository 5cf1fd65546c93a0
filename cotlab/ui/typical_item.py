"""The item of a run to read first: one whose answer changes about as often as the run's."""

from __future__ import annotations

from typing import NamedTuple

from cotlab.analysis.verdict.measures import MeasureName
from cotlab.analysis.verdict.number_items import load_item_shares
from cotlab.store import read
from cotlab.ui import cached, verdict

MAX_CANDIDATES = 50
"""Items among which one is chosen."""


class TypicalItem(NamedTuple):
    """An item of a run, and how often its answer changes."""

    item_id: str
    """Its id."""
    n_steps: int
    """Steps of its chain; 0 where the suite has none."""
    measure: MeasureName
    """Measure of the run that says how often its answers change."""
    share: float | None
    """How often the item's answer changes, from 0 to 1; None where nothing was measured of it."""


@cached.cache_by_store(64, "Reading scores")
def find_typical_item(run_id: str, revision: int) -> TypicalItem | None:
    """Return the item among the first ones of a run that is most like the run; None without items.

    Of several, the one with the longest chain.
    """
    row = cached.stored_run(run_id)
    items = cached.read_once(read.list_run_items, run_id, MAX_CANDIDATES)
    if items.empty:
        return None
    items = items.set_index(items["id"].astype(str)).sort_values(
        "n_steps", ascending=False, kind="stable"
    )
    result = verdict.run_verdict(row)
    measure: MeasureName = "change" if result is None else result.evidence.change_name
    item_id, share = str(items.index[0]), None
    changes = load_item_shares(cached.store(), run_id, measure, list(items.index))
    if not changes.empty:
        run_share = None if result is None else result.evidence.share(measure)
        typical = changes.mean() if run_share is None else run_share.point
        item_id = str((changes - typical).abs().idxmin())
        share = float(changes[item_id])
    return TypicalItem(item_id, int(items.loc[item_id, "n_steps"]), measure, share)
