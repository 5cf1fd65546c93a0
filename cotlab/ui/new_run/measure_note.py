"""The note of New run about the run that it goes on from, and what was added to its settings."""

from __future__ import annotations

import streamlit as st

from cotlab.analysis.verdict.next_step import QUESTION_OPTIONS
from cotlab.analysis.view import RunView
from cotlab.ui import cached
from cotlab.ui.address import report_unknown_value
from cotlab.ui.new_run.added_cost import UNKNOWN_COST_TEXT, added_cost_text
from cotlab.ui.new_run.measures import (
    ANOTHER_MODEL,
    MORE_ITEMS,
    added_options,
    count_new_items,
    requested_items,
)
from cotlab.ui.suites import LABELLED_CHAINS
from cotlab.ui.text import escape_markdown, shorten


def render_measure_note(cloned_run_id: str | None) -> None:
    """Say what was added to the settings of the run, where the address asks for a measure."""
    measure = st.query_params.get("measure")
    if measure is None:
        return
    added, n_items = added_options(measure), requested_items()
    if cloned_run_id is None:
        if added is None and measure != LABELLED_CHAINS and "from" not in st.query_params:
            report_unknown_value("measure", measure)
        return
    settings_text = f"The settings are those of run {escape_markdown(cloned_run_id)}"
    if added is not None:
        change = "added" if measure in QUESTION_OPTIONS else "alone"
        row = cached.stored_run(cloned_run_id)
        n_new_items = count_new_items(row, measure)
        items = "" if n_new_items == row.n_items else f", on {n_new_items} items"
        st.info(
            f"{settings_text} with the scorer {added['scorer']} {change}{items}."
            f" {_reuse_text(row, measure, n_new_items)}"
        )
    elif measure == MORE_ITEMS and n_items is not None:
        row = cached.stored_run(cloned_run_id)
        n_items = min(n_items, cached.count_suite_items(row.suite))
        reuse_text = _reuse_text(row, measure, n_items)
        st.info(f"{settings_text}, with {n_items:,} items. {reuse_text}")
    elif measure == ANOTHER_MODEL:
        st.info(
            "Choose another model, or a provider with its server: the suite and what is measured"
            f" stay as in run {escape_markdown(cloned_run_id)}. The shipped organisms read suites"
            " of their own words (wordproblems) alone."
        )
    else:
        st.warning(
            f"The address asks for {escape_markdown(shorten(measure))}, which is no scorer or"
            f" measure: the settings are those of run {escape_markdown(cloned_run_id)}."
        )


def _reuse_text(row: RunView, measure: str, n_items: int) -> str:
    """Return how many requests are new, as the link that led here says it."""
    cost_text = added_cost_text(row, measure, n_items)
    new_text = "" if cost_text == UNKNOWN_COST_TEXT else f"{cost_text.capitalize()}. "
    return (
        f"{new_text}Replies that the response log holds are not asked for, or paid for, again; the"
        " count below has them too."
    )
