"""Text from suites, models and raters on a page: always as text, never as Markdown or HTML."""

from __future__ import annotations

import re

_MARKDOWN = "\\`*_{}[]<>()#+-.!|$:~@&=^\"'"
_JOINER = "\u2060"
"""Of no width, and no letter: what it stands in is no address any more."""
_LINKED = re.compile(r":(?=/|material/|streamlit:)|www(?=\.)|(?=@)", re.IGNORECASE)
"""Where addresses and icons begin that are found after escapes were resolved, so that no escape keeps them from it."""


def as_code(text: str) -> str:
    """``text`` with every character that Markdown could read escaped, its lines kept, and no address in it a link."""
    parted = _LINKED.sub(lambda found: f"{found[0]}{_JOINER}", text)
    return "  \n".join("".join(f"\\{c}" if c in _MARKDOWN else c for c in line) for line in parted.splitlines())


def shorten(text: str, most: int = 80) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
