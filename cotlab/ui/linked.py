"""The component of texts that link to pages: verdict, lamps, lists and tables.

Its texts are set as text, never as HTML. A plain click on a link opens the page in this tab and
session; the link has an address too, so that it can be copied or opened in another tab.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.ui.places import PageLink

_FOLDER = Path(__file__).parent
MAX_ROWS = 13
"""Rows of a table of links above which it scrolls."""


@cache
def _linked_component() -> Any:
    return st.components.v2.component(
        "cotlab_linked",
        html='<div class="linked"></div>',
        css=(_FOLDER / "linked_view.css").read_text(),
        js=(_FOLDER / "linked_view.js").read_text(),
    )


def show_linked(
    view: str,
    content: Mapping[str, Any],
    *,
    key: str,
    on_tick: Callable[[list[str]], None] | None = None,
) -> None:
    """Show a view of linked texts; a click opens the page of a link.

    Parameters
    ----------
    view : str
        verdict, lamps, short or table: what ``linked_view.js`` draws.
    content : mapping
        The view's texts, with a ``PageLink`` wherever one of them links.
    key : str
        Key of the component, unique on the page.
    on_tick : callable, optional
        Called with the ids of the ticked rows of a table with ``ticks``, after each change.
    """
    links: list[PageLink] = []
    data = {"view": view, **_with_numbered_links(content, links)}
    data["addresses"] = [link.address for link in links]
    callbacks = {}
    if on_tick is not None:
        callbacks["on_ticked_change"] = partial(_send_ticks, key, on_tick)
    _linked_component()(key=key, data=data, **callbacks)


def show_linked_frame(
    title: str,
    frame: pd.DataFrame,
    links: Mapping[str, Sequence[PageLink | None]],
    *,
    key: str,
    number_names: Iterable[str] = (),
    help_by_name: Mapping[str, str] | None = None,
) -> None:
    """Show a table whose cells link to pages: sorted by a click, read and opened by keyboard.

    Parameters
    ----------
    title : str
        Accessible name of the table.
    frame : pd.DataFrame
        Texts and numbers; a missing value is "n/a".
    links : mapping
        The links of a column's cells, one a row.
    key : str
        Key of the component, unique on the page.
    number_names : iterable of str
        Columns of numbers, with or without interval, which are aligned at the right.
    help_by_name : mapping, optional
        What the head of a column says on hovering.
    """
    numbers, helps = set(number_names), help_by_name or {}
    columns = [
        {"title": str(name), "is_number": name in numbers, "help": helps.get(str(name), "")}
        for name in frame.columns
    ]
    rows = [
        [
            {
                **_frame_cell(value, is_number=name in numbers),
                **({"link": links[name][k]} if name in links else {}),
            }
            for name, value in zip(frame.columns, values, strict=True)
        ]
        for k, values in enumerate(frame.itertuples(index=False, name=None))
    ]
    content: dict[str, Any] = {"title": title, "columns": columns, "rows": rows}
    content |= {"is_sortable": True, "is_dense": True}
    show_linked("table", {**content, "is_tall": len(rows) > MAX_ROWS}, key=key)


def _frame_cell(value: Any, *, is_number: bool) -> dict[str, str]:
    """Return a cell; the interval of a number, or why there is none, is small.

    Where the page is narrow it stands below the number.
    """
    text = value if isinstance(value, str) else "n/a" if pd.isna(value) else str(value)
    if not is_number:
        return {"text": text}
    if text.startswith("n/a: "):
        return {"text": "n/a", "small": text.removeprefix("n/a: ")}
    number, bracket, bounds = text.partition(" [")
    return {"text": number, "small": f"[{bounds}"} if bracket else {"text": text}


def _send_ticks(key: str, on_tick: Callable[[list[str]], None]) -> None:
    ticked_ids = st.session_state[key].get("ticked") or []
    on_tick([row_id for row_id in ticked_ids if isinstance(row_id, str)])


def _with_numbered_links(value: Any, links: list[PageLink]) -> Any:
    """Return the value with each link replaced by its number, and collect the links."""
    if isinstance(value, PageLink):
        links.append(value)
        return len(links) - 1
    if isinstance(value, Mapping):
        return {name: _with_numbered_links(entry, links) for name, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_with_numbered_links(entry, links) for entry in value]
    return value
