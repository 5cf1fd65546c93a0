"""Text on a page: escaping, shortening, and error messages."""

from __future__ import annotations

import logging

import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.core.text_safety import unlinked

_MARKDOWN = "\\`*_{}[]<>()#+-.!|$:~@&=^\"'"


def as_code(text: str) -> str:
    """Escape a text so that Markdown shows it literally, with its lines and without links."""
    return "  \n".join(
        "".join(f"\\{c}" if c in _MARKDOWN else c for c in line)
        for line in unlinked(text).splitlines()
    )


def shorten(text: str, most: int = 80) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


log = logging.getLogger(__name__)


def show_error(error: Exception) -> bool:
    """Show an error as one message without a traceback, and return True.

    The details of a bug go to the server's log.
    """
    if isinstance(error, CotlabError):
        st.error(as_code(str(error)))
    else:
        log.error("a page failed", exc_info=error)
        st.error(
            f"This page failed ({type(error).__name__}). The server's log has the details; nothing"
            " stored is lost."
        )
    return True
