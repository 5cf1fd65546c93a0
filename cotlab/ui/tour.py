"""A tour of five stops through the runs of the demonstration, for who has just installed cotlab."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import streamlit as st

from cotlab.core.resources import page_path
from cotlab.run.config import DEMO_MODELS
from cotlab.store import read
from cotlab.ui import cached
from cotlab.ui.address import write_address
from cotlab.ui.demo_pair import find_demo_pair

TOUR_PARAM = "tour"
"""Parameter of the address: the number of the stop."""


class TourStop(NamedTuple):
    """A page of the tour, and what to look at there."""

    page: str
    """Name of the page's file."""
    label: str
    """What the link to it says."""
    text: str
    """What to look at, and what follows from it."""


STOPS = (
    TourStop(
        "home",
        "The verdict",
        "Both models give right answers. The sentence says whether the answer follows the chain,"
        " the three lamps whether the chain is read, tells what moved the answer, and is sound."
        " Every number has its interval and leads to its evidence.",
    ),
    TourStop(
        "compare",
        "Two models on the same questions",
        "One model changes its answer when a step states something else, the other does not."
        " Click an item to see both chains side by side.",
    ),
    TourStop(
        "item",
        "One chain, step by step",
        "The tint of a step is its effect on the answer. This model ignores its chain: no step has"
        " any. Choose a step to see what the model was given, and every reply.",
    ),
    TourStop(
        "validation",
        "How well each measure works",
        "Each metric was tried on models that follow or ignore their chain by construction. A"
        " metric that cannot tell them apart stands in no headline.",
    ),
    TourStop(
        "new_run",
        "Your own question",
        "Choose what you want to know, a suite and a model. The requests and the cost stand below"
        " before anything is sent.",
    ),
)
"""The stops in order."""


def is_stop(page: str) -> bool:
    """Return whether the address names the stop of the tour on this page."""
    numbers = (str(i) for i, stop in enumerate(STOPS, start=1) if stop.page == page)
    return st.query_params.get(TOUR_PARAM, "") in numbers


def render_tour(page: str) -> None:
    """Show the stop of the tour that the address names, where it is this page.

    Parameters
    ----------
    page : str
        Name of the page's file.
    """
    requested = st.query_params.get(TOUR_PARAM, "")
    if requested not in map(str, range(1, len(STOPS) + 1)):
        return
    number = int(requested)
    stop = STOPS[number - 1]
    if stop.page != page or _stop_queries() is None:
        return
    with st.container(border=True, key="tour"):
        st.markdown(f"**Tour, {number} of {len(STOPS)}: {stop.label}.** {stop.text}")
        with st.container(horizontal=True):
            if number < len(STOPS):
                render_tour_link(number + 1, f"Next: {STOPS[number].label}")
            st.button(
                "End the tour",
                type="tertiary",
                icon=":material/close:",
                key="end-tour",
                on_click=write_address,
                args=({TOUR_PARAM: None},),
            )


def render_tour_link(number: int, label: str) -> None:
    """Show a link to a stop, from 1; nothing where the demonstration's runs are not there."""
    queries = _stop_queries()
    if queries is None:
        return
    page = STOPS[number - 1].page
    st.page_link(
        page_path(page),
        label=label,
        icon=":material/tour:",
        query_params={**queries[page], TOUR_PARAM: str(number)},
    )


def _stop_queries() -> Mapping[str, dict[str, str]] | None:
    """Return what each stop shows, by page; None without the runs of the demonstration."""
    pair = find_demo_pair(cached.stored_runs())
    if pair is None:
        return None
    bypassing_run, following_run = (str(pair[model]["id"]) for model in DEMO_MODELS)
    items = cached.read_once(read.list_run_items, bypassing_run, 50)
    if items.empty:
        return None
    longest = items.sort_values("n_steps", ascending=False, kind="stable").iloc[0]
    return {
        "home": {},
        "compare": {"base": bypassing_run, "other": following_run},
        "item": {"run": bypassing_run, "item": str(longest["id"])},
        "validation": {},
        "new_run": {"question": "all"},
    }
