"""The page Validation: what the chosen metric can tell, in the words of a verdict's chip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from cotlab.analysis.verdict.validated import (
    construct_record,
    load_measure_validation,
    measures_tested_by,
    separation,
)
from cotlab.analysis.verdict.wording import capitalised
from cotlab.store.database import store_folder
from cotlab.ui.text import escape_markdown
from cotlab.ui.validation import short_metric_name


def render_claim(latest_report: Mapping[str, Any], metric: str) -> None:
    """Show how well a metric is known to work for what it claims, and on what that rests.

    The words are those of the chips of a verdict, which lead here.
    """
    validation = load_measure_validation(str(store_folder()))
    texts = [validation[measure].text for measure in measures_tested_by(metric)]
    texts.append(separation(latest_report["metrics"][metric]).text)
    lines = [capitalised(text) + "." for text in dict.fromkeys(texts)]
    record = construct_record(metric)
    if record is not None:
        lines[0] += f" This is what it claims ({record['claim']}); data: {record['source']}."
    title = f"**{escape_markdown(short_metric_name(metric))}**"
    with st.container(border=True, key="validation-claim"):
        st.markdown("  \n".join([title, *map(escape_markdown, lines)]))
