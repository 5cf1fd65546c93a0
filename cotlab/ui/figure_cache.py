"""Registered figures of tables, drawn once for each table and theme."""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.core.registry import FIGURES
from cotlab.figures.style import CARD, DARK

MAX_CACHED_FIGURES = 128
"""Most figures that a server keeps."""


def cached_figure(name: str, table: pd.DataFrame) -> Any:
    """Return a registered figure of a table in the reader's theme; no caller may change it.

    It has no title: `charts.show_title` shows that as text, which the browser breaks at the width
    that there is. ``layout.meta`` has it.

    Most of a repeated view was drawing: a figure is a function of its table alone, so the same
    table and theme give the same figure.
    """
    digest = hashlib.sha256(pickle.dumps(table, protocol=5)).hexdigest()
    return _figure_of_table(name, digest, st.context.theme.type == "dark", table)


@st.cache_resource(show_spinner=False, max_entries=MAX_CACHED_FIGURES)
def _figure_of_table(name: str, digest: str, is_dark: bool, _table: pd.DataFrame) -> Any:
    return FIGURES[name](_table, look=DARK if is_dark else CARD)
