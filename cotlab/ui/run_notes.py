"""What makes the numbers of a run doubtful, beside them on every page that shows some of them."""

from __future__ import annotations

from typing import Any

import streamlit as st

from cotlab.analysis.cut_replies import cut_reply_lines
from cotlab.analysis.reply_notes import stored_cut_replies
from cotlab.analysis.view import RunView
from cotlab.run.server_check import server_limits
from cotlab.store.server_checks import list_server_checks
from cotlab.ui import cached
from cotlab.ui.text import escape_markdown


def render_run_notes(row: RunView, label: str = "") -> None:
    """Show on a line what the page Run says at length; nothing where nothing is doubtful.

    ``label`` names the run where the page shows several.
    """
    lines = _note_lines(row.id, row.revision)
    if lines:
        st.warning(escape_markdown(" ".join((f"{label}:" if label else "", *lines)).strip()))


def cut_reply_report(row: RunView) -> dict[str, Any]:
    """Return the replies of a run that were cut off, as its report has them."""
    return _cut_reply_report(row.id, row.revision)


@cached.cache_by_store(32)
def _cut_reply_report(run_id: str, revision: int) -> dict[str, Any]:
    return {"cut_replies": stored_cut_replies(RunView.read(cached.store(), run_id))}


@cached.cache_by_store(32)
def _note_lines(run_id: str, revision: int) -> list[str]:
    plan = cached.stored_run(run_id).plan
    doubts = [
        limit.text
        for check in list_server_checks(cached.store(), run_id)
        for limit in server_limits(plan, check)
        if limit.kind == "doubt"
    ]
    return [*dict.fromkeys(doubts), *cut_reply_lines(_cut_reply_report(run_id, revision))]
