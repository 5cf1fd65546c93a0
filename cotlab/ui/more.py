"""The sections below a page's answer: closed at first, and computed only while they are open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from cotlab.ui.address import bind_switch

ITEM_SECTION: dict[str, Any] = {"name": "one", "params": ("item",)}
"""Address of the section of one item on a tab: it is open where the address names an item."""


def render_more(
    title: str, *renderers: Callable[[], object], name: str = "more", params: Sequence[str] = ()
) -> None:
    """Show a section that is computed only while it is open.

    Parameters
    ----------
    title : str
        What is in it.
    *renderers : callable
        Called in order.
    name : str
        The address has the section's state under this name.
    params : sequence of str
        Parameters of the address that belong to the section: it is open where one is given.
    """
    is_requested = any(param in st.query_params for param in params)
    section = st.expander(f"More: {title}", **bind_switch(name, is_requested))
    if section.open:
        with section:
            for render in renderers:
                render()
