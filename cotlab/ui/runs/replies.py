"""What the replies of a run leave open: those that were cut off, and restated steps."""

from __future__ import annotations

from typing import Any

import streamlit as st

from cotlab.analysis.cut_replies import cut_reply_lines
from cotlab.analysis.reply_notes import stored_restated_steps
from cotlab.analysis.restated_steps import restated_step_lines, restated_step_warnings
from cotlab.analysis.view import RunView
from cotlab.ui import cached
from cotlab.ui.run_notes import cut_reply_report
from cotlab.ui.text import escape_markdown


@cached.cache_by_store(32)
def _restated_report(run_id: str, revision: int, _row: RunView) -> dict[str, Any]:
    return {"restated_steps": stored_restated_steps(cached.cached_run_view(_row))}


def render_reply_notes(row: RunView) -> None:
    """Show how many replies were cut off, and how many restate the step that was removed."""
    report = _restated_report(row.id, row.revision, row) | cut_reply_report(row)
    warnings = restated_step_warnings(report)
    for line in (*cut_reply_lines(report), *warnings):
        st.warning(escape_markdown(line))
    is_silent = bool(warnings) or row.id in cached.unmeasured_runs()
    for line in () if is_silent else restated_step_lines(report):
        st.caption(escape_markdown(line))
