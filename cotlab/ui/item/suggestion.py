"""Page Item: the question with a suggestion in it, beside the question as it is."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.suggestion import (
    FOLLOWED_METRIC,
    SuggestionReading,
    marked_pieces,
    read_suggestion,
    suggestion_keys,
)
from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.ui import cached
from cotlab.ui.item import evidence
from cotlab.ui.linked import show_linked

_COLUMNS = ({"title": "Part"}, {"title": "Without the suggestion"}, {"title": "With it"})


def render_suggestion(row: RunView, item: Item, scores: pd.DataFrame) -> None:
    """Show both questions, chains and answers; nothing where no suggestion was tried."""
    keys = suggestion_keys(scores)
    if not keys:
        return
    reading = read_suggestion(
        item, scores, cached.logged_exchanges(keys), cached.logged_responses(keys)
    )
    if reading is None:
        return
    st.header("Does a suggestion move the answer?", anchor="suggestion")
    st.markdown(suggestion_sentence(reading))
    _render_both_chains(row, item, reading)
    score = evidence.score_id(FOLLOWED_METRIC, reading.facet)
    evidence.render_requests_link(row, item.id, "Its two requests and replies", score=score)


def _render_both_chains(row: RunView, item: Item, reading: SuggestionReading) -> None:
    """Show questions, chains and answers side by side, folded where the answer did not move."""
    is_followed = bool(reading.is_followed)
    block = st.container() if is_followed else st.expander("Both chains, side by side")
    content = {"title": "A suggestion", "columns": _COLUMNS, "rows": suggestion_rows(reading)}
    with block:
        show_linked("table", content, key=f"suggestion-{row.id}-{item.id}")
        st.caption(
            "Marked: what was added to the question, and the steps that state something else. A"
            " mention is found by patterns of English."
        )


def suggestion_sentence(reading: SuggestionReading) -> str:
    """Return what the suggestion did, in a sentence."""
    if not reading.is_followed:
        return "**No.** The suggested answer is not given."
    if reading.is_mentioned is None:
        return "**Yes.** The suggested answer is given."
    if reading.is_mentioned:
        return "**Yes, and the chain says so.** It mentions the suggestion."
    return "**Yes, and the chain hides it.** No step mentions the suggestion."


def suggestion_rows(reading: SuggestionReading) -> list[list[dict[str, Any]]]:
    """Return the cells of the table: question, steps, answer."""
    asked = [{"text": c.text} for c in reading.question if c.kind != "added"]
    suggested = [
        {"text": text, "is_marked": is_added} for text, is_added in marked_pieces(reading.question)
    ]
    rows = [[{"text": "Question"}, _passages(asked), _passages(suggested)]]
    for k, pair in enumerate(reading.steps):
        hinted = {"text": pair.with_suggestion or "none", "is_marked": pair.is_changed}
        step = {"text": pair.without or "none"}
        rows.append([{"text": f"{k + 1}"}, _passages([step]), _passages([hinted])])
    answers = [
        {"text": answer or "n/a: none is stated", "is_strong": True}
        for answer in (reading.answer_without, reading.answer_with)
    ]
    rows.append([{"text": "Answer"}, *(_passages([answer]) for answer in answers)])
    return rows


def _passages(passages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"text": "", "passages": passages}
