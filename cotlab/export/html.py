"""The frame of every page of HTML that leaves the project: it loads nothing."""

from __future__ import annotations

import html

from cotlab.figures.style import FONT_FAMILY

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; {policy}">
<title>{title}</title>
<style>
body{{margin:0;background:#fff;color:#1a1a1a;font:13px/1.42 {font}}}
{css}
</style></head><body>
{body}
</body></html>
"""


def html_page(title: str, body: str, css: str, *, with_script: bool = False) -> str:
    """Return a page that needs nothing beside it.

    Parameters
    ----------
    title : str
        Plain text, escaped here.
    body, css : str
        Markup; the caller escapes text in it.
    with_script : bool
        Whether scripts in the page itself run, such as those of an interactive figure.
    """
    policy = "style-src 'unsafe-inline'"
    if with_script:
        policy += "; script-src 'unsafe-inline'; img-src data: blob:; font-src data:"
    return _PAGE.format(
        policy=policy, title=html.escape(title), font=FONT_FAMILY, css=css, body=body
    )
