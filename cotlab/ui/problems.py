"""How an error is shown on a page: one message, never a traceback."""

from __future__ import annotations

import logging

import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.ui.text import as_code

log = logging.getLogger(__name__)


def show_error(error: Exception) -> bool:
    """Show ``error`` and say that it was shown. The details of a bug go to the server's log."""
    if isinstance(error, CotlabError):
        st.error(as_code(str(error)))
    else:
        log.error("a page failed", exc_info=error)
        st.error(
            f"This page failed ({type(error).__name__}). The server's log has the details; nothing"
            " stored is lost."
        )
    return True
