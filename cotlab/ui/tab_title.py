"""The title of the browser's tab: the page, and the run or item that it shows."""

from __future__ import annotations

from cotlab.analysis.view import RunView
from cotlab.core.errors import StoreError, UnknownName
from cotlab.core.text_safety import printable_line
from cotlab.ui import cached
from cotlab.ui.address import effective_param
from cotlab.ui.item.item_list import item_filter, load_item_list
from cotlab.ui.navigation import PageEntry
from cotlab.ui.pickers import ANY
from cotlab.ui.text import shorten

APP_TITLE = "cotlab"
"""Name of the application: the last part of each title, and the title before a sign-in."""
MAX_NAME_CHARACTERS = 40
"""Characters of a run's or an item's name in a title."""


def tab_title(entry: PageEntry) -> str:
    """Return the title of a page's tab: "Item 4 · faithful-a · cotlab", "Compare · cotlab".

    Only pages that are about one run name it, by its own name where it has one, else by its id;
    pages on which chains are judged blind never do.
    """
    title, names = entry.title, []
    row = _current_run() if _names_run(entry) else None
    if row is not None:
        run_name = _short_name(row.name) or _short_name(row.id)
        if entry.name == "run":
            title = f"{entry.title} {run_name}"
        else:
            names = [run_name]
        if entry.name == "item":
            title = _item_title(entry, row)
    return " · ".join([title, *names, APP_TITLE])


def _names_run(entry: PageEntry) -> bool:
    return not entry.is_blind and (entry.run_param == "run" or entry.name in ("run", "item"))


def _current_run() -> RunView | None:
    """Return the run that the page shows; None where it is none of this store."""
    run_id = effective_param("run")
    if run_id in (None, "", ANY):
        return None
    try:
        return cached.stored_run(str(run_id))
    except (UnknownName, StoreError):  # the page says so
        return None


def _item_title(entry: PageEntry, row: RunView) -> str:
    """Return the name of an item: its number in the run, or its id where it was not scored."""
    item_id = effective_param("item")
    if not item_id:
        return entry.title
    number = load_item_list(row, item_filter(), str(item_id)).number
    name = _short_name(item_id) if number is None else str(number)
    return f"{entry.title} {name}"


def _short_name(text: object) -> str:
    """Return a name on one line, without control characters and of bounded length."""
    return shorten(printable_line(text), MAX_NAME_CHARACTERS)
