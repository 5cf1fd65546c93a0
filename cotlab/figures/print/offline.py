"""A figure outside the dashboard: as a page of its own that needs no network."""

from __future__ import annotations

import html
from typing import Any

from plotly import __version__

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline';
 img-src data: blob:; font-src data:">
<style>body {{ margin: 24px; background: #fff; color: #1a1a1a; font: 13px/1.45 {font} }}
p {{ max-width: 640px; white-space: pre-wrap }}</style></head><body>
"""


def plotly_version() -> str:
    """Of the Python package."""
    return str(__version__)


def web_page(figure: Any, title: str, caption: str, font: str) -> str:
    """A page with the figure, interactive, and its caption; plotly.js is inside, and nothing is loaded from elsewhere.

    ``title`` and ``caption`` are plain text and escaped here.
    """
    body: str = figure.to_html(
        full_html=False,
        include_plotlyjs=True,
        include_mathjax=False,
        config={"displaylogo": False, "responsive": True},
    )
    head = _HEAD.format(title=html.escape(title), font=html.escape(font))
    return f"{head}{body}\n<p>{html.escape(caption)}</p>\n</body></html>\n"
