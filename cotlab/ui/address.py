"""Widgets whose value is part of the page's address.

Streamlit's own binding takes the values out of the address that is left, so that the browser's
back button comes to a page without them; and it writes labels instead of ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import streamlit as st

T = TypeVar("T")


def bind_to_address(
    name: str, default: T, parse: Callable[[str], T | None], format_value: Callable[[T], str] = str
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
    """
    requested = st.query_params.get(name)
    value = None if requested is None else parse(requested)
    st.session_state[name] = default if value is None else value

    def store_value() -> None:
        chosen = st.session_state[name]
        if chosen == default:
            st.query_params.pop(name, None)
        else:
            st.query_params[name] = format_value(chosen)

    return {"key": name, "on_change": store_value}


def bind_switch(name: str, default: bool) -> dict[str, Any]:
    """Return key and callback of a yes-or-no widget; the address has "true" or "false"."""
    return bind_to_address(
        name, default, {"true": True, "false": False}.get, lambda value: str(value).lower()
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


def bind_whole_number(name: str, lo: int, hi: int) -> dict[str, Any]:
    """Return key and callback of a widget of a whole number, by default the lowest."""

    def parse(text: str) -> int | None:
        return int(text) if text.isdecimal() and lo <= int(text[:9]) <= hi else None

    return bind_to_address(name, lo, parse)


def bind_choice(name: str, options: Sequence[str], default: str | None = None) -> dict[str, Any]:
    """Return key and callback of a widget of one of ``options``, by default the first."""
    return bind_to_address(
        name,
        options[0] if default is None else default,
        lambda text: text if text in options else None,
    )


def bind_text(name: str) -> dict[str, Any]:
    """Return key and callback of a widget of any text, by default empty."""
    return bind_to_address(name, "", str)


def show_tabs(labels: Sequence[str], name: str = "view") -> Sequence[Any]:
    """Show tabs of which only the open one is computed; the address has its label."""
    return st.tabs(list(labels), **bind_choice(name, labels))
