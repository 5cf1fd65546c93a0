"""The item of a run to read first: one whose answer changes about as often as the run's."""

from __future__ import annotations

from cotlab.analysis.verdict.measures import MeasureName
from cotlab.analysis.verdict.number_items import load_item_shares
from cotlab.store import read
from cotlab.ui import cached, verdict

MAX_CANDIDATES = 50
"""Items among which one is chosen."""


@cached.cache_by_store(64, "Reading scores")
def find_typical_item(run_id: str, revision: int) -> str | None:
    """Return the item among the first ones of a run that is most like the run; None without items.

    Of several, the one with the longest chain.
    """
    items = cached.read_once(read.list_run_items, run_id, MAX_CANDIDATES)
    if items.empty:
        return None
    items = items.sort_values("n_steps", ascending=False, kind="stable")
    item_ids = items["id"].astype(str).tolist()
    result = verdict.run_verdict(cached.stored_run(run_id))
    measure: MeasureName = "change" if result is None else result.evidence.change_name
    changes = load_item_shares(cached.store(), run_id, measure, item_ids)
    if changes.empty:
        return str(item_ids[0])
    run_share = None if result is None else result.evidence.share(measure)
    typical = changes.mean() if run_share is None else run_share.point
    return str((changes - typical).abs().idxmin())
