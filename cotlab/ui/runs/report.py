"""The report of a run as a page to send on, from the page Run."""

from __future__ import annotations

from functools import partial

import streamlit as st

from cotlab.analysis.view import RunView
from cotlab.export.chrome import find_chrome, print_page
from cotlab.export.run_report.page import report_html
from cotlab.ui import cached, components


def render_report_downloads(row: RunView) -> None:
    """Offer the report of a run: HTML, and PDF where a Chrome is there to print it."""
    if not row.revision:
        return
    with st.container(horizontal=True):
        components.download_button("Report", partial(_page_html, row.id), f"{row.id}-report.html")
        if find_chrome() is not None:
            components.download_button(
                "Report (PDF)", partial(_page_pdf, row.id), f"{row.id}-report.pdf"
            )
        else:
            st.caption("PDF: print the report from a browser; no Chrome is installed here.")


def _page_html(run_id: str) -> str:
    return report_html(cached.store(), run_id)


def _page_pdf(run_id: str) -> bytes:
    return print_page(_page_html(run_id))
