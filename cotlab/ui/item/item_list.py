"""A list of items on a page: its filters, neighbours and links, all of them in the address.

An item and Compare each have a component whose script begins with ``item_list.js``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

import streamlit as st

from cotlab.analysis.view import RunView
from cotlab.store.run_items import ITEM_VIEWS, ItemFilter, ItemList, list_items
from cotlab.ui import cached
from cotlab.ui.address import known_param
from cotlab.ui.item.chain import chain_sources

ROWS_PER_LIST = 12
"""Items of a list that are shown at a time."""
MAX_SEARCH_CHARS = 200
"""Longest text that a list is searched for."""
FILTER_PARAMS = ("show", "q")
"""Parameters of the address: the chosen chip, and the text to search for."""
Query = dict[str, list[str]]
_FOLDER = Path(__file__).parent


def address_query(preserved: Collection[str] | None = None, /, **changes: str | None) -> Query:
    """Return the parameters of the address with other values; None removes one.

    ``preserved`` names the parameters that stay, by default all.
    """
    query = {
        name: st.query_params.get_all(name)
        for name in st.query_params
        if preserved is None or name in preserved
    }
    for name, value in changes.items():
        query.pop(name, None)
        if value is not None:
            query[name] = [value]
    return query


def query_href(page: str, query: Query) -> str:
    """Return the address of a page with its parameters."""
    return f"/{page}?{urlencode(query, doseq=True, quote_via=quote)}"


def sent_query(component_key: str, params: Iterable[str]) -> Query | None:
    """Return the address after what a component sent; None where it sent no choice.

    A choice is the address of a link, of which only ``params`` are read, or a text to search for.
    Either may leave out the item.
    """
    choice = st.session_state[component_key].get("choice") or {}
    address, search = choice.get("address"), choice.get("search")
    if isinstance(address, str):
        sent = parse_qs(address)
        names = {name: sent[name][0] if name in sent else None for name in params}
        return address_query(**names)
    if isinstance(search, str):
        return address_query(q=search[:MAX_SEARCH_CHARS] or None, item=None)
    return None


def search_text() -> str:
    """Return the text that the address searches for."""
    return str(st.query_params.get("q", ""))[:MAX_SEARCH_CHARS]


def chips_data(
    chips: Sequence[tuple[str, str | None, int, str]], selected: str | None, links: list[Query]
) -> list[dict[str, Any]]:
    """Return what a component shows of the chips.

    Parameters
    ----------
    chips : sequence of (str, str or None, int, str)
        Of each chip the text, its value in the address (None for all), how many items it has, and
        what it says on hovering.
    selected : str or None
        Value of the chosen chip.
    links : list of Query
        The component's links, to which those of the chips are added.
    """
    data = []
    for text, value, n, help_text in chips:
        link = None
        if n or value == selected:
            links.append(address_query(show=value, item=None))
            link = len(links) - 1
        data.append(
            {
                "text": text,
                "count": n,
                "selected": value == selected,
                "link": link,
                "help": help_text,
            }
        )
    return data


def list_sources() -> tuple[str, str]:
    """Return the CSS and the JavaScript with which a component shows a list of items."""
    rows_css, rows_js = chain_sources()
    css = (_FOLDER / "header.css").read_text("utf-8") + rows_css
    css += (_FOLDER / "item_list.css").read_text("utf-8")
    return css, rows_js + (_FOLDER / "item_list.js").read_text("utf-8")


def item_filter() -> ItemFilter:
    """Return which items of a run are listed, by the address."""
    view = known_param("show", ITEM_VIEWS)
    words = " ".join(search_text().split())
    return ItemFilter(words, next((name for name in ITEM_VIEWS if name == view), None))


def load_item_list(run: RunView, chosen_filter: ItemFilter, item_id: str | None) -> ItemList:
    """Return the part of a run's list on which an item stands."""
    return _list_at_revision(run.id, run.revision, chosen_filter, item_id)


@cached.cache_by_store(64, "Reading items")
def _list_at_revision(
    run_id: str, revision: int, chosen_filter: ItemFilter, item_id: str | None
) -> ItemList:
    return list_items(cached.store(), run_id, chosen_filter, item=item_id, limit=ROWS_PER_LIST)
