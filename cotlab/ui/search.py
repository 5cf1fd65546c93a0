"""The page Search: what to search for, in which items, and the hits."""

from __future__ import annotations

from typing import Any

import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.core.resources import page_path
from cotlab.store import read
from cotlab.store.search import (
    HITS_PER_PAGE,
    MAX_SEARCH_CHARACTERS,
    SearchHit,
    SearchQuery,
    hit_passage,
    search_texts,
)
from cotlab.ui import cached, components
from cotlab.ui.address import bind_switch, bind_text, report_unknown_value, write_address
from cotlab.ui.item.step_address import step_query
from cotlab.ui.linked import PageLink, show_linked
from cotlab.ui.pickers import ANY, run_labels, select_option, without_archived
from cotlab.ui.text import escape_markdown, shorten

_PAGE_PARAMS = ("page",)
"""Parameters of the address that belong to the previous search."""
ANSWER_LABELS = {ANY: "right or wrong", "right": "right", "wrong": "wrong"}
FLIPPED_LABELS = {ANY: "any answer", "yes": "another answer", "no": "the same answer"}
COLUMNS = (
    {"title": "Item", "is_nowrap": True},
    {"title": "Found in"},
    {"title": "Text"},
    {"title": "Run"},
)
"""Columns of the table of hits."""
FACETS_NOTE = (
    "Answer: to the unchanged chain, by every score of it. After a changed step: another answer"
    " after at least one change, or the same after each that was measured. Items without them are"
    " found only where that is not chosen. Redacted texts are not searched."
)


def pick_query() -> SearchQuery | None:
    """Choose what to search for; None (with a message) without a text."""
    rows = cached.stored_runs()
    if not rows:
        components.render_empty_state("No run is stored yet.", page_path("new_run"), "Start one")
        return None
    text = st.text_input(
        "Text",
        max_chars=MAX_SEARCH_CHARACTERS,
        placeholder="a word, a number, a part of a sentence",
        **bind_text("q", MAX_SEARCH_CHARACTERS, _PAGE_PARAMS),
    )
    with st.container(horizontal=True):
        has_full_word = st.checkbox("Whole words", **bind_switch("full-word", False, _PAGE_PARAMS))
        listed_rows = without_archived(rows, "run")
    run_labels_by_id = {ANY: "all runs", **run_labels(listed_rows)}
    run = select_option("Run", run_labels_by_id, "run", ANY, _PAGE_PARAMS)
    answer_column, flipped_column, category_column = st.columns(3)
    with answer_column:
        answer = select_option("Answer", ANSWER_LABELS, "answer", ANY, _PAGE_PARAMS)
    with flipped_column:
        flipped = select_option(
            "After a changed step", FLIPPED_LABELS, "flipped", ANY, _PAGE_PARAMS
        )
    with category_column:
        categories = {ANY: "all", **{name: name for name in cached.read_once(read.list_domains)}}
        category = select_option("Category", categories, "category", ANY, _PAGE_PARAMS)
    if not text or not text.strip():
        st.info("Type a text: upper and lower case are the same.")
        st.caption(FACETS_NOTE)
        return None
    facets: dict[str, Any] = {
        name: None if value == ANY else value
        for name, value in (
            ("run", run),
            ("answer", answer),
            ("flipped", flipped),
            ("category", category),
        )
    }
    archived = any(row.is_archived for row in listed_rows)
    return SearchQuery(text, **facets, full_word=has_full_word, archived=archived)


def render_hits(query: SearchQuery) -> None:
    """Show one page of the hits, each with a link to its item."""
    count_slot = st.container()
    offset = _page_offset()
    try:
        result = search_texts(cached.store(), query, offset=offset)
        if result.n_hits and not result.hits:
            st.warning("The address asks for a page behind the last one; the first is shown.")
            offset = 0
            result = search_texts(cached.store(), query)
    except CotlabError as error:
        st.error(escape_markdown(str(error)))
        return
    count_slot.markdown(f"**{result.n_hits:,} hit{'' if result.n_hits == 1 else 's'}**")
    if not result.n_hits:
        st.info("Nothing was found. Fewer letters, or fewer conditions, find more.")
    else:
        rows = [_hit_cells(hit, query) for hit in result.hits]
        content = {"title": "Hits", "columns": COLUMNS, "rows": rows}
        show_linked("table", content, key="search-hits")
        _render_page_choice(result.n_hits, offset)
    st.caption(FACETS_NOTE)


def _hit_cells(hit: SearchHit, query: SearchQuery) -> list[dict[str, Any]]:
    """Return the cells of a hit's row."""
    before, match, after = hit_passage(hit, query)
    address = [("run", hit.run), ("item", hit.item_id)]
    if hit.step is not None and (hit.is_reference_run or hit.part == "reply"):
        address += step_query(hit.step).items()
    if hit.key is not None:
        address.append(("request", hit.key))
    part_text = hit.part if hit.step is None else f"{hit.part}, step {hit.step + 1}"
    passages = [
        {"text": before},
        {"text": match, "is_marked": True},
        {"text": after if hit.text is not None else "n/a: the log does not hold this reply"},
    ]
    return [
        {
            "text": shorten(hit.item_id, 40),
            "small": shorten(hit.category, 30),
            "link": PageLink("item", tuple(address)),
        },
        {"text": part_text},
        {"text": "", "passages": passages},
        {"text": hit.run},
    ]


def _page_offset() -> int:
    text = st.query_params.get("page", "1")
    number = int(text) if text.isdecimal() and len(text) < 9 else 0
    if number < 1:
        report_unknown_value("page", text)
    return (max(1, number) - 1) * HITS_PER_PAGE


def _render_page_choice(n_hits: int, offset: int) -> None:
    """Choose among several pages of hits; the address has the page."""
    n_pages = -(-n_hits // HITS_PER_PAGE)
    if n_pages < 2:
        return

    def store_choice() -> None:
        write_address({"page": str(st.session_state["search-page"])})

    st.session_state["search-page"] = offset // HITS_PER_PAGE + 1
    st.number_input(
        f"Page of {n_pages:,}", 1, n_pages, key="search-page", on_change=store_choice, width=180
    )
