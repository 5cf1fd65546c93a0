"""The road of the page Decide, in one line: what is there, and what the next step lacks."""

from __future__ import annotations

import streamlit as st

from cotlab.analysis.verdict.wording import noun_count
from cotlab.store.decisions import review_counts
from cotlab.ui import cached


def render_road() -> None:
    """Show labels, calibrator, policy and decisions, each with a tick or with what is missing."""
    counts = cached.read_once(review_counts)
    steps = (
        (counts["labels"], noun_count(counts["labels"], "label"), "no labels"),
        (counts["calibrated"], "calibrator", "no calibrator"),
        (counts["policies"], "policy", "no policy"),
        (counts["decided"], noun_count(counts["decided"], "decision"), "no decisions"),
    )
    texts = [f"✓ {text}" if n else f"**○ {missing}**" for n, text, missing in steps]
    st.markdown("  →  ".join(texts))
