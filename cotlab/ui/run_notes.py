"""What makes the numbers of a run doubtful, beside them wherever some of them are shown."""

from __future__ import annotations

from typing import Any

import streamlit as st

from cotlab.analysis.reply_notes import cut_reply_lines, stored_cut_replies
from cotlab.analysis.verdict.measures import RunEvidence
from cotlab.analysis.verdict.verdicts import category_shares
from cotlab.analysis.verdict.wording import percent
from cotlab.analysis.view import RunView
from cotlab.run.server_check import server_limits
from cotlab.store.recorded_models import short_model_name
from cotlab.store.server_checks import list_server_checks
from cotlab.ui import cached
from cotlab.ui.text import escape_markdown, shorten
from cotlab.ui.verdict import run_verdict


def render_category_split(run: RunView, *, names_run: bool = False) -> None:
    """Say that means over all items are of categories in which the answers behave differently.

    Nothing where the verdict found none. ``names_run`` begins with the model, on pages of several
    runs.
    """
    result = run_verdict(run)
    text = None if result is None else category_split_text(result.evidence)
    if text is not None:
        name = shorten(short_model_name(run.model), 40)
        st.markdown(escape_markdown(f"{name}: {text}" if names_run else text))


def category_split_text(evidence: RunEvidence) -> str | None:
    """Return the change in both groups of categories, in the unit of the figures: 0 to 1."""
    texts = [
        f"{kind.share.point:.3f} [{kind.share.lo:.3f}, {kind.share.hi:.3f}]"
        f" ({percent(kind.share.point)}) in {kind.items_text}"
        for kind in category_shares(evidence)
    ]
    if not texts:
        return None
    return (
        "A mean over all items hides a difference here. Where a step states something else"
        f" (answer_change, corrupt), the answer changes at {', and at '.join(texts)}. Figures and"
        " tables over all items mix these kinds."
    )


def render_run_notes(run: RunView, label: str = "") -> None:
    """Show on a line what the page Run says at length; nothing where nothing is doubtful.

    ``label`` names the run where the page shows several.
    """
    lines = _note_lines(run.id, run.revision)
    if lines:
        st.warning(escape_markdown(" ".join((f"{label}:" if label else "", *lines)).strip()))


def cut_reply_report(run: RunView) -> dict[str, Any]:
    """Return the replies of a run that were cut off, as its report has them."""
    return _cut_reply_report(run.id, run.revision)


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
