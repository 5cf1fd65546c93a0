"""The page Run: its items, with what the model answered to each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from cotlab.analysis.view import RunView
from cotlab.store.run_items import ItemFilter, ItemList, ListedItem, list_items
from cotlab.ui import cached, components
from cotlab.ui.address import bind_choice, bind_text
from cotlab.ui.item.answers import ListedAnswer, listed_answers
from cotlab.ui.item.item_list import FILTER_PARAMS, MAX_SEARCH_CHARS, item_filter
from cotlab.ui.linked import MAX_ROWS, show_linked
from cotlab.ui.places import run_link
from cotlab.ui.text import shorten

_PAGE_PARAM = "run-items-page"
_MAX_ANSWER_CHARS = 40
_VIEW_LABELS = {
    "all": "All",
    "changed": "Changed",
    "wrong": "Wrong answer",
    "undefined": "No value",
}
"""The filters of the items by what the address has of them."""
_VIEW_HELP = (
    "Changed: a changed step changed the answer at least once. Wrong answer: no more than half of"
    " the judged replies are right. No value: of whether the answer is right, or of a changed step."
)
_COLUMNS = (
    {"title": "item", "is_nowrap": True},
    {"title": "question"},
    {"title": "answer", "help": "The model's most frequent answer to the unchanged chain."},
    {
        "title": "right",
        "help": "Whether more than half of the judged replies are right.",
        "is_nowrap": True,
    },
    {"title": "steps in the suite", "is_number": True, "is_optional": True},
    {"title": "scores", "is_number": True, "is_optional": True},
    {"title": "undefined", "is_number": True},
)
_RIGHT_CELLS = {
    "right": {"text": "right", "mark": "yes", "mark_label": ""},
    "wrong": {"text": "wrong", "mark": "no", "mark_label": ""},
    "unknown": {"text": "n/a"},
}


def render_run_items(run: RunView) -> None:
    """List the scored items, with filters and with links to their pages."""
    st.header("Items")
    text = st.text_input(
        "Search the items",
        max_chars=MAX_SEARCH_CHARS,
        placeholder="an id, or words of the question",
        **bind_text("q", MAX_SEARCH_CHARS, cleared_params=(_PAGE_PARAM,)),
    )
    counts = _load_part(run.id, run.revision, ItemFilter(text), 0).counts
    st.segmented_control(
        "Show",
        list(_VIEW_LABELS),
        format_func=lambda view: f"{_VIEW_LABELS[view]} · {getattr(counts, view):,}",
        help=_VIEW_HELP,
        **bind_choice("show", list(_VIEW_LABELS), cleared_params=(_PAGE_PARAM,)),
    )
    chosen_filter = item_filter()
    item_list = _load_part(run.id, run.revision, chosen_filter, 0)
    if not item_list.items:
        st.info("No item matches." if counts.all else "No item has been scored yet.")
        return
    row_slice = components.page_slice(item_list.n_listed, _PAGE_PARAM)
    if row_slice.start:
        item_list = _load_part(run.id, run.revision, chosen_filter, row_slice.start)
    item_ids = tuple(entry.id for entry in item_list.items)
    answers = listed_answers(run.id, run.revision, item_ids, _MAX_ANSWER_CHARS)
    query = {name: st.query_params[name] for name in FILTER_PARAMS if name in st.query_params}
    rows = [_item_cells(run.id, entry, answers[entry.id], query) for entry in item_list.items]
    content = {"title": "Items", "columns": _COLUMNS, "rows": rows, "is_sortable": True}
    content["is_tall"] = len(item_ids) > MAX_ROWS
    show_linked("table", content, key=f"run-items-{row_slice.start}")
    match_text = ""
    if item_list.n_listed != counts.all:
        match_text = f" of {item_list.n_listed:,} that match,"
    st.caption(f"{len(item_ids)}{match_text} of {counts.all:,} scored items.")


@cached.cache_by_store(32, "Reading items")
def _load_part(run_id: str, revision: int, chosen_filter: ItemFilter, offset: int) -> ItemList:
    limit = components.ROWS_PER_PAGE
    return list_items(cached.store(), run_id, chosen_filter, limit=limit, offset=offset)


def _item_cells(
    run_id: str, entry: ListedItem, answer: ListedAnswer, query: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the cells of an item's row; its page goes through the items of the filters."""
    return [
        {"text": shorten(entry.id, 40), "link": run_link(run_id, "items", item=entry.id, **query)},
        {"text": shorten(entry.question, 110)},
        {"text": answer.text},
        dict(_RIGHT_CELLS[answer.kind]),
        # a suite without chains leaves them to the model
        {"text": str(entry.n_steps) if entry.n_steps else "n/a"},
        {"text": str(entry.n_scores)},
        {"text": str(entry.n_undefined)},
    ]
