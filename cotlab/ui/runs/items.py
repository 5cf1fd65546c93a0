"""The page Run: its items, with what the model answered to each."""

from __future__ import annotations

from typing import Any

import streamlit as st

from cotlab.analysis.view import RunView
from cotlab.store.run_items import ItemFilter, ItemList, ListedItem, list_items
from cotlab.ui import cached, components
from cotlab.ui.address import bind_text
from cotlab.ui.item.answers import ListedAnswer, listed_answers
from cotlab.ui.item.item_list import MAX_SEARCH_CHARS
from cotlab.ui.linked import MAX_ROWS, PageLink, show_linked
from cotlab.ui.text import shorten

SEARCH_PARAM = "items-search"
"""Parameter of the address with the text to search for."""
_PAGE_PARAM = "run-items-page"
_MAX_ANSWER_CHARS = 40
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


def render_run_items(row: RunView) -> None:
    """List the scored items, with a search and with links to their pages."""
    st.header("Items")
    text = st.text_input(
        "Search the items",
        max_chars=MAX_SEARCH_CHARS,
        placeholder="an id, or words of the question",
        **bind_text(SEARCH_PARAM, MAX_SEARCH_CHARS, cleared_params=(_PAGE_PARAM,)),
    )
    item_list = _load_part(row.id, row.revision, text, 0)
    n_items = item_list.counts.all
    if not item_list.items:
        st.info("No item matches." if n_items else "No item has been scored yet.")
        return
    row_slice = components.page_slice(item_list.n_listed, _PAGE_PARAM)
    if row_slice.start:
        item_list = _load_part(row.id, row.revision, text, row_slice.start)
    item_ids = tuple(entry.id for entry in item_list.items)
    answers = listed_answers(row.id, row.revision, item_ids, _MAX_ANSWER_CHARS)
    show_linked(
        "table",
        {
            "title": "Items",
            "columns": _COLUMNS,
            "rows": [
                _item_cells(row.id, entry, answers[entry.id], text) for entry in item_list.items
            ],
            "is_sortable": True,
            "is_tall": len(item_ids) > MAX_ROWS,
        },
        key=f"run-items-{row_slice.start}",
    )
    match_text = "" if item_list.n_listed == n_items else f" of {item_list.n_listed:,} that match,"
    st.caption(f"{len(item_ids)}{match_text} of {n_items:,} scored items.")


@cached.cache_by_store(32, "Reading items")
def _load_part(run_id: str, revision: int, text: str, offset: int) -> ItemList:
    return list_items(
        cached.store(),
        run_id,
        ItemFilter(text),
        limit=components.ROWS_PER_PAGE,
        offset=offset,
    )


def _item_cells(
    run_id: str, entry: ListedItem, answer: ListedAnswer, text: str
) -> list[dict[str, Any]]:
    """Return the cells of an item's row; its page lists the items that the search found."""
    query = [("run", run_id), ("item", entry.id)] + ([("q", text)] if text.strip() else [])
    return [
        {"text": shorten(entry.id, 40), "link": PageLink("item", tuple(query))},
        {"text": shorten(entry.question, 110)},
        {"text": answer.text},
        dict(_RIGHT_CELLS[answer.kind]),
        # a suite without chains leaves them to the model
        {"text": str(entry.n_steps) if entry.n_steps else "n/a"},
        {"text": str(entry.n_scores)},
        {"text": str(entry.n_undefined)},
    ]
