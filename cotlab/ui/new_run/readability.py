"""Whether the model of a run can read its suite, so that no page offers to measure nothing."""

from __future__ import annotations

from cotlab.analysis.view import RunView
from cotlab.run.unreadable_items import find_unreadable_items
from cotlab.ui import cached


def unreadable_text(row: RunView) -> str | None:
    """Return why no item of a run's suite can be read by its model; None where some can.

    Parameters
    ----------
    row : dict
        The run, as the store has it.
    """
    return _cached_text(row.id)


@cached.cache_by_store(64)
def _cached_text(run_id: str) -> str | None:
    row = cached.stored_run(run_id)
    plan = row.plan
    unreadable = find_unreadable_items(plan, cached.stored_suite(row.suite))
    if unreadable is None or not unreadable.is_all:
        return None
    return (
        f"{plan.subject.name} can read none of the {unreadable.n_items:,} items of this suite:"
        f" {unreadable.words_text}. Another scorer would measure nothing either."
    )
