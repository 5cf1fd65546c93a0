"""The number of a verdict on the page that it leads to, in the same words, with its items."""

from __future__ import annotations

from typing import cast

import streamlit as st

from cotlab.analysis.verdict.measures import MEASURES, MeasureName
from cotlab.analysis.verdict.number_items import NumberItems, load_number_items
from cotlab.analysis.verdict.wording import interval, noun_count, percent
from cotlab.analysis.view import RunView
from cotlab.ui import cached, components
from cotlab.ui.address import known_param
from cotlab.ui.linked import show_linked
from cotlab.ui.places import run_link
from cotlab.ui.text import escape_markdown, shorten
from cotlab.ui.verdict import AMONG_PARAM, NUMBER_PARAM, run_verdict

ROWS_PER_PAGE = 5
_COLUMNS = ({"title": "Item"}, {"title": "Question"}, {"title": "Value", "is_number": True})
_CHANGE_BY_MEASURE = {"change": "corrupt", "control": "paraphrase"}
"""The change of a step that the page of an item opens with."""


def render_verdict_number(run_id: str | None) -> None:
    """Show the number of the verdict that the address names, and the items behind it.

    Nothing where the address names none, or the run has no such number.
    """
    name = known_param(NUMBER_PARAM, MEASURES)
    if run_id is None or name is None:
        return
    measure = cast(MeasureName, name)
    run = cached.stored_run(run_id)
    categories = tuple(st.query_params.get_all(AMONG_PARAM))
    number = load_verdict_number(run_id, run.revision, measure, categories)
    if number is None:
        return
    with st.container(border=True):
        of_text = f", n = {noun_count(number.share.n, 'item')}"
        number_text = f"**{percent(number.share.point)}** {interval(number.share)}"
        st.markdown(f"{number_text} {escape_markdown(number.text)}{of_text}.")
        validation_text = f" Tested: {number.validation}." if number.validation else ""
        n_above = int((number.values > 0).sum())
        count_text = (
            f"{'Yes' if MEASURES[measure].is_flag else 'Above 0'}: {noun_count(n_above, 'item')}."
        )
        st.caption(escape_markdown(f"{count_text} Scores: {number.source}.{validation_text}"))
        _render_items(run, measure, number)
        components.page_link("run", "Back to the verdict", "arrow_back", {"run": run_id})


@cached.cache_by_store(16, "Reading scores")
def load_verdict_number(
    run_id: str, revision: int, measure: MeasureName, categories: tuple[str, ...] = ()
) -> NumberItems | None:
    """Return a number of a run's verdict with its items; None where the run has no such number."""
    run = cached.stored_run(run_id)
    result = run_verdict(run)
    if result is None:
        return None
    view = cached.cached_run_view(run)
    return load_number_items(view, result.evidence, measure, categories)


def _render_items(run: RunView, measure: MeasureName, number: NumberItems) -> None:
    """Show the items and their values, a page at a time."""
    table_slot = st.container()
    item_slice = components.page_slice(len(number.values), "number-page", ROWS_PER_PAGE)
    change = _CHANGE_BY_MEASURE.get(measure)
    rows = []
    for item_id, value in number.values.iloc[item_slice].items():
        query = {"change": change} if change else {}
        link = run_link(run.id, "items", item=str(item_id), **query)
        question = cached.load_item(run.suite, str(item_id)).question
        rows.append(
            [
                {"text": shorten(str(item_id), 40), "link": link},
                {"text": shorten(question, 120)},
                {"text": _value_text(measure, float(value))},
            ]
        )
    content = {"title": "Items behind the number", "columns": _COLUMNS, "rows": rows}
    with table_slot:
        show_linked("table", content, key=f"number-{run.id}-{measure}")


def _value_text(measure: MeasureName, value: float) -> str:
    """Return an item's value: yes or no where it is one statement, else a share."""
    if MEASURES[measure].is_flag and value in (0, 1):
        return "yes" if value else "no"
    return percent(value)
