"""What a page or a caption says with a figure."""

from __future__ import annotations

from typing import Any

from cotlab.figures.text_width import strip_markup


def head(fig: Any) -> str:
    """Title and subtitle as they are read; markup of the figure is left out, that of data stays."""
    meta = fig["layout"]["meta"]
    return " ".join(" ".join([meta["title"], *meta["subtitle"]]).split())


def plain_head(fig: Any) -> str:
    """Title and subtitle as plain text."""
    return strip_markup(head(fig))
