"""Texts in which no reader of Markdown finds an address of its own."""

from __future__ import annotations

import re

JOINER = "\u2060"
"""Of no width, and no letter: what it stands in is no address any more."""
_LINKED = re.compile(r":(?=/|material/|streamlit:)|www(?=\.)|(?=@)", re.IGNORECASE)
"""Where addresses and icons begin that are found after escapes were resolved, so that no escape
keeps them from it."""


def unlinked(text: str) -> str:
    """``text`` with a mark of no width in each web address, e-mail address and icon; it reads as before and links nowhere."""
    return _LINKED.sub(lambda match: f"{match[0]}{JOINER}", text)
