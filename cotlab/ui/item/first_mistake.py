"""The page Item, "Look here first": the probability of each step of being the first wrong one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.figures.style import interval_text
from cotlab.review.release.step_forecast import StepForecast, forecast_steps
from cotlab.review.release.step_hazard import SCORES_MODEL
from cotlab.store import read
from cotlab.ui import cached
from cotlab.ui.item.chain import TextRow, render_rows
from cotlab.ui.text import escape_markdown, shorten


def render_first_mistake(row: RunView, item: Item) -> None:
    """Show where the step model in use would look first; nothing where no model is in use."""
    if cached.read_once(read.is_suite_redacted, row.suite):
        return
    forecast = forecast_steps(cached.store(), row.id, item, row.suite_name)
    if forecast is None:
        return
    st.header("Look here first")
    if forecast.reason:
        st.caption(escape_markdown(f"n/a: {forecast.reason}."))
        return
    render_rows(
        forecast_rows(forecast),
        key=f"first-mistake-{row.id}-{item.id}",
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
