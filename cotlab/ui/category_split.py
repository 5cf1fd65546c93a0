"""Says on pages of one run that a mean over all its items hides two kinds of items."""

from __future__ import annotations

import streamlit as st

from cotlab.analysis.verdict.category_split import category_shares
from cotlab.analysis.verdict.measures import RunEvidence
from cotlab.analysis.verdict.wording import percent
from cotlab.analysis.view import RunView
from cotlab.store.recorded_models import short_model_name
from cotlab.ui.text import escape_markdown, shorten
from cotlab.ui.verdict import run_verdict


def render_category_split(row: RunView, *, names_run: bool = False) -> None:
    """Say that means over all items are of categories in which the answers behave differently.

    Nothing where the verdict found none. ``names_run`` begins with the model, on pages of several
    runs.
    """
    result = run_verdict(row)
    text = None if result is None else category_split_text(result.evidence)
    if text is not None:
        name = shorten(short_model_name(row.model), 40)
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
