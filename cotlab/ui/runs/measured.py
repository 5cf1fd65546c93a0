"""What each tab of a run needs, and what it says where the run did not measure it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import streamlit as st

from cotlab.analysis.tables.reliability import RELIABILITY_SCORERS
from cotlab.analysis.tables.unfaithfulness import UNFAITHFULNESS_SCORERS
from cotlab.analysis.verdict.wording import noun_count
from cotlab.analysis.view import RunView
from cotlab.core.types import Plan
from cotlab.run.unreadable_items import find_unreadable_items
from cotlab.ui import cached
from cotlab.ui.address import open_link
from cotlab.ui.components import current_status, page_link
from cotlab.ui.new_run.measures import cost_text, count_new_items
from cotlab.ui.pickers import run_labels
from cotlab.ui.places import run_link
from cotlab.ui.text import escape_markdown


class TabMeasure(NamedTuple):
    """What a tab of a run shows, and what measures it."""

    question: str
    """The question that the tab answers."""
    scorers: tuple[str, ...]
    """Scorers of which one is enough; the first is offered where a run has none."""


TAB_MEASURES: Mapping[str, TabMeasure] = {
    "steps": TabMeasure("Which steps does the answer depend on?", ("ablation",)),
    "robustness": TabMeasure("What happens when a step is perturbed?", ("robustness", "causal")),
    "mediation": TabMeasure("Does the answer depend on the chain's activations?", ("mediation",)),
    "reliability": TabMeasure("Do independent quality checks agree?", RELIABILITY_SCORERS),
    "unfaithfulness": TabMeasure(
        "How often is a response flagged, by classifier?", UNFAITHFULNESS_SCORERS
    ),
}
"""The tabs that need a scorer."""


def measures_tab(plan: Plan, tab: str) -> bool:
    """Return whether a run of this plan measures what a tab shows."""
    names = {spec.name for spec in plan.scorers}
    return tab not in TAB_MEASURES or bool(names & set(TAB_MEASURES[tab].scorers))


def is_measured(run: RunView, tab: str) -> bool:
    """Return whether a run measured what a tab shows; where not, say so and offer to measure it."""
    if tab in TAB_MEASURES:
        st.header(TAB_MEASURES[tab].question)
    if not measures_tab(run.plan, tab):
        _render_unmeasured(run, tab)
        return False
    has_ended = current_status(run) in ("done", "stopped")
    if tab in TAB_MEASURES and has_ended and run.id in cached.unmeasured_runs():
        _render_nothing_measured(run)
    return True


def _render_nothing_measured(run: RunView) -> None:
    """Say that a run measured nothing, why if its model cannot read the suite, and what to do."""
    reason = unreadable_text(run) or "No measure of what the model does has a value."
    with st.container(border=True):
        st.markdown(f"**Nothing was measured.** {escape_markdown(reason)}")
        page_link("verdict", "The reasons", "monitoring", {"run": run.id})


def _render_unmeasured(run: RunView, tab: str) -> None:
    """Say that a run did not measure what a tab shows, and offer to measure it.

    Where the run's model cannot read its suite, measuring it would cost and find nothing: the tab
    says that, and offers another model instead.
    """
    scorer, reason = TAB_MEASURES[tab].scorers[0], unreadable_text(run)
    with st.container(border=True):
        st.markdown("**Not measured in this run.**")
        if reason is not None:
            st.markdown(escape_markdown(reason))
            query = {"from": run.id, "measure": "model"}
            page_link("new_run", "Choose another model", "arrow_forward", query)
            return
        n_text = noun_count(count_new_items(run, scorer), "item")
        label = f"Measure {n_text} ({cost_text(run, scorer)})"
        page_link("new_run", label, "play_arrow", {"from": run.id, "measure": scorer})
    _render_other_runs(run, tab)


def _render_other_runs(run: RunView, tab: str) -> None:
    """Offer the runs that have what this one lacks."""
    unmeasured = cached.unmeasured_runs()
    labels = run_labels(
        [
            other
            for other in cached.stored_runs()
            if other.revision
            and other.id not in {*unmeasured, run.id}
            and not other.is_archived
            and measures_tab(other.plan, tab)
        ],
        with_tags=False,
    )
    if not labels:
        st.caption("No other run measured it.")
        return

    def open_run() -> None:
        open_link(run_link(str(st.session_state["pick-measured-run"]), tab))

    st.selectbox(
        "Another run that measured it",
        list(labels),
        index=None,
        format_func=labels.__getitem__,
        key="pick-measured-run",
        placeholder="Choose a run",
        on_change=open_run,
    )


def unreadable_text(run: RunView) -> str | None:
    """Return why no item of a run's suite can be read by its model; None where some can.

    Parameters
    ----------
    run : RunView
        The run, as the store has it.
    """
    return _cached_text(run.id)


@cached.cache_by_store(64)
def _cached_text(run_id: str) -> str | None:
    run = cached.stored_run(run_id)
    plan = run.plan
    unreadable = find_unreadable_items(plan, cached.stored_suite(run.suite))
    if unreadable is None or not unreadable.is_all:
        return None
    return (
        f"{plan.subject.name} can read none of the {unreadable.n_items:,} items of this suite:"
        f" {unreadable.words_text}. Another scorer would measure nothing either."
    )
