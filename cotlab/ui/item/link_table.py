"""A table with real links: one click, in the same tab, also by keyboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import streamlit as st

from cotlab.ui.address import write_address
from cotlab.ui.item.chain import chain_sources

_MODULE_FOLDER = Path(__file__).parent


class TableLink(NamedTuple):
    """A cell that leads to another view of the page Item."""

    text: str
    """What is shown."""
    name: str
    """What a screen reader reads: it says where the link leads."""
    query: Mapping[str, str]
    """What the link changes in the address."""


def render_link_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str | TableLink]],
    *,
    key: str,
    label: str,
    numeric_names: Sequence[str] = (),
) -> None:
    """Show a table of texts and links.

    Parameters
    ----------
    columns : sequence of str
        Heads of the columns.
    rows : sequence of sequence of str or TableLink
        One cell a column.
    key : str
        Key of the component, unique on the page.
    label : str
        Accessible name of the table.
    numeric_names : sequence of str
        Columns that are aligned at the right.
    """
    links = [cell for cells in rows for cell in cells if isinstance(cell, TableLink)]
    numbers = iter(range(len(links)))

    def open_link() -> None:
        number = st.session_state[key].get("opened")
        if isinstance(number, int) and 0 <= number < len(links):
            write_address({"request": None, **links[number].query})  # no request of the view before

    _table_component()(
        key=key,
        data={
            "label": label,
            "columns": list(columns),
            "numeric": [name in numeric_names for name in columns],
            "rows": [[_cell_data(cell, numbers) for cell in cells] for cells in rows],
        },
        on_opened_change=open_link,
    )


def _cell_data(cell: str | TableLink, numbers: Any) -> dict[str, Any]:
    if isinstance(cell, str):
        return {"text": cell}
    href = f"/item?{urlencode(cell.query, quote_via=quote, safe='')}"
    return {"text": cell.text, "name": cell.name, "href": href, "number": next(numbers)}


@cache
def _table_component() -> Any:
    _, rows_js = chain_sources()
    return st.components.v2.component(
        "cotlab_link_table",
        html='<div class="links"></div>',
        css=(_MODULE_FOLDER / "link_table.css").read_text("utf-8"),
        js=rows_js + (_MODULE_FOLDER / "link_table.js").read_text("utf-8"),
    )
