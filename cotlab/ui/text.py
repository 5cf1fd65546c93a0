"""Text from suites, models and raters on a page: always as text, never as Markdown or HTML."""

from __future__ import annotations

from cotlab.text.links import unlinked

_MARKDOWN = "\\`*_{}[]<>()#+-.!|$:~@&=^\"'"


def as_code(text: str) -> str:
    """``text`` with every character that Markdown could read escaped, its lines kept, and no address in it a link."""
    return "  \n".join(
        "".join(f"\\{c}" if c in _MARKDOWN else c for c in line)
        for line in unlinked(text).splitlines()
    )


def shorten(text: str, most: int = 80) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
