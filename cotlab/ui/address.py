"""The page's address: what it says, its defaults, and the only place that writes it.

Each write is an entry of the browser's history, so an address is written only when somebody chooses
something, once a choice, and never while a page is drawn: what an address does not say is the
default. Else the browser's back button would need several presses to leave a page.

Streamlit's own binding takes the values out of the address that is left, so that the back button
comes to a page without them; and it writes labels instead of ids.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import streamlit as st

from cotlab.ui.places import PAGE_BY_PLACE, TAB_PARAM, PageLink
from cotlab.ui.text import escape_markdown, shorten

T = TypeVar("T")
STEP_PARAM = "step"
"""Parameter with the number of a step, from 1 as on the screen."""
_DEFAULTS_KEY = "address-defaults"
_UNKNOWN_KEY = "address-unknown"
_PAGE_KEY = "shown-page"
_LINKS_KEY = "links-on-page"


def write_address(
    changes: Mapping[str, str | Sequence[str] | None], preserved: Collection[str] | None = None
) -> None:
    """Write what somebody has just chosen into the address, as one entry of the history.

    Parameters
    ----------
    changes : mapping
        Value or values by parameter; None removes a parameter.
    preserved : collection of str, optional
        The other parameters that stay; by default all of them.
    """
    current = {name: st.query_params.get_all(name) for name in st.query_params}
    query = {
        name: values
        for name, values in current.items()
        if name not in changes and (preserved is None or name in preserved)
    }
    for name, value in changes.items():
        if value is not None:
            query[name] = [value] if isinstance(value, str) else list(value)
    if query != current:
        st.query_params.from_dict(query)


def start_page(name: str) -> None:
    """Note which page is drawn, and forget what was stored while the one before was."""
    st.session_state[_PAGE_KEY] = name
    st.session_state[_LINKS_KEY] = 0
    st.session_state[_DEFAULTS_KEY] = {}
    st.session_state[_UNKNOWN_KEY] = {}


def report_unknown_value(name: str, value: str) -> None:
    """Let the page say that it does not have what its address asks for."""
    st.session_state.setdefault(_UNKNOWN_KEY, {})[name] = value


def render_unknown_values() -> None:
    """Say what of the address the page does not have; nothing where it has all of it."""
    unknown = st.session_state.get(_UNKNOWN_KEY, {})
    if unknown:
        texts = [f"{name} = {shorten(value) or 'nothing'}" for name, value in unknown.items()]
        st.warning(
            f"The address asks for {escape_markdown(', '.join(texts))}, which is not here; the"
            " default is shown."
        )


def known_param(name: str, options: Collection[str]) -> str | None:
    """Return what the address asks for; None where it asks for nothing, or for no option."""
    value: str | None = st.query_params.get(name)
    if value is None or value in options:
        return value
    report_unknown_value(name, value)
    return None


def store_default(name: str, value: str) -> None:
    """Remember what the page shows for a parameter that its address does not have."""
    st.session_state.setdefault(_DEFAULTS_KEY, {})[name] = value


def effective_param(name: str) -> str | None:
    """Return what the page shows for a parameter: of its address, else by default; else None."""
    values = st.query_params.get_all(name)
    value: str | None = st.session_state.get(_DEFAULTS_KEY, {}).get(name)
    return values[0] if values else value


def bind_to_address(
    name: str,
    default: T,
    parse: Callable[[str], T | None],
    format_value: Callable[[T], str] = str,
    cleared_params: Sequence[str] = (),
) -> dict[str, Any]:
    """Return key and callback of a widget whose value is in the address under ``name``.

    The widget gets its value from the address by its key, so it takes no default of its own.

    Parameters
    ----------
    name : str
        Parameter of the address, and key of the widget.
    default : T
        The value without the parameter.
    parse : callable
        Returns the value of a text of the address; None for a text without one.
    format_value : callable
        Returns the text of a value.
    cleared_params : sequence of str
        Parameters that another value removes, as they belong to the previous one.
    """
    requested = st.query_params.get(name)
    value = None if requested is None else parse(requested)
    if requested is not None and value is None:
        report_unknown_value(name, requested)
    st.session_state[name] = default if value is None else value

    def store_value() -> None:
        chosen = st.session_state[name]
        write_address(
            {
                name: None if chosen in (default, None) else format_value(chosen),
                **dict.fromkeys(cleared_params),
            }
        )

    return {"key": name, "on_change": store_value}


def bind_switch(name: str, default: bool, cleared_params: Sequence[str] = ()) -> dict[str, Any]:
    """Return key and callback of a yes-or-no widget; the address has "true" or "false"."""
    return bind_to_address(
        name,
        default,
        {"true": True, "false": False}.get,
        lambda value: str(value).lower(),
        cleared_params,
    )


def bind_number(name: str, default: float, lo: float, hi: float) -> dict[str, Any]:
    """Return key and callback of a widget of a number from ``lo`` to ``hi``."""

    def parse(text: str) -> float | None:
        try:
            value = float(text)
        except ValueError:
            return None
        return value if lo <= value <= hi else None

    return bind_to_address(name, default, parse, "{:g}".format)


def bind_integer(name: str, lo: int, hi: int) -> dict[str, Any]:
    """Return key and callback of a widget of a whole number, by default the lowest."""

    def parse(text: str) -> int | None:
        return int(text) if text.isdecimal() and lo <= int(text[:9]) <= hi else None

    return bind_to_address(name, lo, parse)


def bind_choice(
    name: str, options: Sequence[str], cleared_params: Sequence[str] = ()
) -> dict[str, Any]:
    """Return key and callback of a widget of one of ``options``, by default the first."""
    return bind_to_address(
        name,
        options[0],
        lambda text: text if text in options else None,
        cleared_params=cleared_params,
    )


def bind_text(
    name: str, max_chars: int | None = None, cleared_params: Sequence[str] = ()
) -> dict[str, Any]:
    """Return key and callback of a widget of any text, by default empty."""
    return bind_to_address(name, "", lambda text: text[:max_chars], cleared_params=cleared_params)


def open_tab(page: str, preserved: Collection[str] = ()) -> tuple[str, Any]:
    """Show the tabs of a page; return the name of the open one, and the place of its content.

    Only the open tab is computed. The address has its name; another tab keeps of it what
    ``preserved`` names.
    """
    labels = PAGE_BY_PLACE[page].tabs
    name = known_param(TAB_PARAM, labels) or next(iter(labels))
    st.session_state[TAB_PARAM] = labels[name]

    def store_tab() -> None:
        chosen = next(tab for tab in labels if labels[tab] == st.session_state[TAB_PARAM])
        write_address({TAB_PARAM: chosen}, preserved=preserved)

    tabs = st.tabs(list(labels.values()), key=TAB_PARAM, on_change=store_tab)
    return name, tabs[list(labels).index(name)]


def open_link(link: PageLink) -> None:
    """Open a place of the page that is shown."""
    st.session_state.pop(_LINKS_KEY, None)
    values: dict[str, list[str]] = {}
    for name, value in link.parameters:
        values.setdefault(name, []).append(value)
    write_address(values, preserved=())


def number_of_link() -> int:
    """Return another number with each call, for the key of a link."""
    if _LINKS_KEY not in st.session_state:
        st.rerun()  # a link of this fragment was opened: the whole page follows it
    st.session_state[_LINKS_KEY] = number = int(st.session_state[_LINKS_KEY]) + 1
    return number


def is_current_page(page: str) -> bool:
    """Return whether this page is being drawn."""
    return bool(st.session_state.get(_PAGE_KEY) == page)


def step_query(step: int) -> dict[str, str]:
    """Return the parameter of the address that opens a step, given from 0."""
    return {STEP_PARAM: str(step + 1)}


def requested_step(n_steps: int) -> int | None:
    """Return the step that the address asks for, from 0; None where it asks for none.

    Raises
    ------
    ValueError
        If the address asks for something that is no step of a chain of ``n_steps``.
    """
    text = st.query_params.get(STEP_PARAM)
    if text is None:
        return None
    is_number = text.isascii() and text.isdecimal() and len(text) < 9
    if not is_number or not 1 <= int(text) <= n_steps:
        raise ValueError(f"no step {text!r} among {n_steps}")
    return int(text) - 1
