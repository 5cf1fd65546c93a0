"""What one more measure of a run would ask for and cost, beside the link that starts it."""

from __future__ import annotations

from typing import NamedTuple

from cotlab.analysis.view import RunView
from cotlab.core.errors import CotlabError
from cotlab.core.types import Suite
from cotlab.run.config import read_config
from cotlab.run.launch import dry_run
from cotlab.store import read
from cotlab.ui import access, cached, components
from cotlab.ui.new_run.measures import add_measure, count_new_items, load_run_settings

N_SAMPLED_ITEMS = 8
"""Items whose requests are counted; the others are taken to need as many each."""
UNKNOWN_COST_TEXT = "requests and cost stand there before it starts"


def added_cost_text(row: RunView, measure: str, n_items: int | None = None) -> str:
    """Return "about 900 new requests, $0, 40 s", or where these stand if they are not known.

    The time is that of this run's requests, where none was answered from the response log.
    ``n_items`` is how many items the new run has; None for as many as its settings give.
    """
    if not access.has_role("admin"):  # who cannot start a run counts no requests
        return UNKNOWN_COST_TEXT
    return _cached_text(row.id, row.revision, measure, n_items)


@cached.cache_by_store(64, "Counting requests")
def _cached_text(run_id: str, revision: int, measure: str, n_items: int | None) -> str:
    row = cached.stored_run(run_id)
    try:
        added = _added_requests(row, measure, n_items or count_new_items(row, measure))
    except (CotlabError, ValueError):  # New run says what is wrong with these settings
        return UNKNOWN_COST_TEXT
    if added is None:
        return UNKNOWN_COST_TEXT
    n_requests, cost_micro = added
    texts = [f"about {n_requests:,} new requests", components.money_text(cost_micro)]
    if (seconds := _seconds_per_request(row)) is not None:
        texts.append(_duration_text(n_requests * seconds))
    return ", ".join(texts)


def _added_requests(row: RunView, measure: str, n_items: int) -> tuple[int, int] | None:
    """Return the requests and micro-dollars that a new run adds; None where it adds nothing."""
    stored = load_run_settings(row)
    if stored.get("base_run") or stored.get("tuned_run"):
        return None
    before, after = (_count_sampled(row.id, row.revision, added) for added in (None, measure))
    if before is None or after is None:
        return None
    n_added, cost_added = (
        round(n_items * total_after / after.n_items - row.n_items * total_before / before.n_items)
        for total_before, total_after in (
            (before.n_requests, after.n_requests),
            (before.cost_micro, after.cost_micro),
        )
    )
    return (n_added, cost_added) if n_added > 0 else None


class _SampledCount(NamedTuple):
    """What the sampled items of a run ask for."""

    n_items: int
    n_requests: int
    cost_micro: int


@cached.cache_by_store(64)
def _count_sampled(run_id: str, revision: int, measure: str | None) -> _SampledCount | None:
    """Count what a run's settings, and one more measure, ask for on the run's first items.

    None where the run has no items.
    """
    row = cached.stored_run(run_id)
    items = [
        cached.load_item(row.suite, item_id)
        for item_id in cached.read_once(read.list_run_items, run_id, N_SAMPLED_ITEMS)["id"]
    ]
    if not items:
        return None
    suite = Suite.from_items(row.suite_name, items)
    changes = {"task_suite": suite.name, "limit": None, "sample": None}
    settings = add_measure(load_run_settings(row), measure)
    count = dry_run(read_config({**settings, **changes}), suite)[1]
    return _SampledCount(len(items), count.n_requests, count.cost_micro)


def _duration_text(seconds: float) -> str:
    """Format a rough duration: "40 s", "12 min", "3 h"."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(1, seconds):.0f} s"


def _seconds_per_request(row: RunView) -> float | None:
    """Return the mean time of a request of a run; None where a resume or the log blurs it."""
    n_new, ended_at = row.asked, row.ended_at
    if n_new < 1 or row.hits or ended_at is None or ended_at != ended_at:
        return None
    return float(max(0.0, (ended_at - row.planned_at).total_seconds())) / n_new
