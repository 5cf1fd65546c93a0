"""Page Item: the question with a suggestion in it, beside the question as it is."""

from __future__ import annotations

from collections.abc import Mapping
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
from cotlab.figures.style import interval_text
from cotlab.review.release.step_hazard import SCORES_MODEL, StepForecast, forecast_steps
from cotlab.store import read
from cotlab.ui import cached
from cotlab.ui.item import evidence
from cotlab.ui.item.chain import TextRow, render_rows
from cotlab.ui.linked import show_linked
from cotlab.ui.text import escape_markdown, shorten

_COLUMNS = ({"title": "Part"}, {"title": "Without the suggestion"}, {"title": "With it"})


def render_suggestion(run: RunView, item: Item, scores: pd.DataFrame) -> None:
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
    _render_both_chains(run, item, reading)
    score = evidence.score_id(FOLLOWED_METRIC, reading.facet)
    evidence.render_requests_link(run, item.id, "Its two requests and replies", score=score)


def _render_both_chains(run: RunView, item: Item, reading: SuggestionReading) -> None:
    """Show questions, chains and answers side by side, folded where the answer did not move."""
    is_followed = bool(reading.is_followed)
    block = st.container() if is_followed else st.expander("Both chains, side by side")
    content = {"title": "A suggestion", "columns": _COLUMNS, "rows": suggestion_rows(reading)}
    with block:
        show_linked("table", content, key=f"suggestion-{run.id}-{item.id}")
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


def render_first_mistake(run: RunView, item: Item) -> None:
    """Show where the step model in use would look first; nothing where no model is in use."""
    if cached.read_once(read.is_suite_redacted, run.suite):
        return
    forecast = forecast_steps(cached.store(), run.id, item, run.suite_name)
    if forecast is None:
        return
    st.header("Look here first")
    if forecast.reason:
        st.caption(escape_markdown(f"n/a: {forecast.reason}."))
        return
    render_rows(
        forecast_rows(forecast),
        key=f"first-mistake-{run.id}-{item.id}",
        selected_index=forecast.located,
    )
    st.markdown(escape_markdown(forecast_sentence(forecast)))
    st.caption(escape_markdown(quality_text(forecast)))


def forecast_rows(forecast: StepForecast) -> list[TextRow]:
    """Return one row per step, tinted by its probability of being the first wrong one."""
    return [
        TextRow(
            index,
            f"{index + 1}",
            shorten(text),
            score=f"{probability:.0%}",
            hint=f"probability {probability:.3f} that the first mistake is in step {index + 1}",
            tint=probability,
        )
        for index, (text, probability) in enumerate(
            zip(forecast.steps, forecast.first, strict=True)
        )
    ]


def forecast_sentence(forecast: StepForecast) -> str:
    """Return which step to read first, and how likely there is no mistake."""
    assert forecast.sound is not None
    likeliest = max(range(len(forecast.first)), key=forecast.first.__getitem__)
    sentence = (
        f"Read step {likeliest + 1} first: the likeliest place of the first mistake,"
        f" {forecast.first[likeliest]:.0%}. No step wrong: {forecast.sound:.0%}."
    )
    if forecast.located is None:
        sentence += " That is too little to name a step as wrong."
    return sentence


def quality_text(forecast: StepForecast) -> str:
    """Return the labels behind the probabilities, and how good they are out of fold."""
    report = forecast.report
    model, counts = report["models"][forecast.model], report["domains"][forecast.domain]
    domain_f1 = model["by_domain"].get(forecast.domain)
    domain_text = "n/a" if domain_f1 is None else f"{100 * domain_f1:.1f}"
    scores_text = ", not what a step claims"
    if forecast.model == SCORES_MODEL:
        scores_text = f", and {', '.join(report['measured_features'])}"
    return (
        f"Version {forecast.version}, fitted on {report['n']} labelled chains,"
        f" {counts['n']} of them of {forecast.domain}. Out of fold its PB-F1 is"
        f" {_percent_text(model['pb_f1'])} of 100, {domain_text} on {forecast.domain}; position and"
        f" length alone have {_percent_text(model['baseline']['pb_f1'])}. It reads position,"
        f" length, wording, numbers and equations{scores_text}: a hint where to look, no verdict."
        " The named step is the first wrong one in"
        f" {_percent_text(model['exact'])} % of the chains with a mistake."
    )


def _percent_text(estimate: Mapping[str, Any]) -> str:
    return interval_text(
        *(None if estimate[key] is None else 100 * estimate[key] for key in ("point", "lo", "hi"))
    )
