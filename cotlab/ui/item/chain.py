"""One chain as rows of text: its steps with their scores, and its entropy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.chains import (
    ENTROPY_FLAGS,
    entropy_steps,
    original_step_texts,
)
from cotlab.analysis.tables.declare import FigureChoice
from cotlab.analysis.view import RunView
from cotlab.core.types import RECORDED_PROVIDER, Item
from cotlab.figures.style import format_number
from cotlab.metrics.entropy import CARDS, MAX_ENTROPY
from cotlab.metrics.model_steps import model_steps
from cotlab.run.scored_chain import ScoredChain, scored_chain
from cotlab.text.differences import TextChange
from cotlab.text.edits.ablations import find_label_end
from cotlab.text.steps import SPLITTER_VERSION
from cotlab.ui import cached, charts, components
from cotlab.ui.components import show_cards
from cotlab.ui.item import evidence
from cotlab.ui.places import run_link
from cotlab.ui.text import escape_markdown

_MODULE_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A part of a block's text, marked with a colour where it has one."""

    text: str
    """The piece's text."""
    shade: str | None = None
    """Colour of the mark, or None."""
    hint: str = ""
    """Tooltip of the mark."""


@dataclass(frozen=True, slots=True)
class TextRow:
    """One row of text, with a label, a colour and a score."""

    index: int
    """Index of the row, from 0."""
    label: str
    """Text before the row, such as the step's number."""
    text: str
    """The row's text, shown literally."""
    shade: str | None = None
    """Colour of the row, or None."""
    score: str = ""
    """Text after the row, such as its score."""
    hint: str = ""
    """Tooltip of the row."""
    pieces: tuple[TextPiece, ...] = ()
    """The text split into pieces, where some of them are marked."""
    tint: float | None = None
    """Magnitude from 0 to 1 that tints the row, in one hue; None for a row without one."""
    pips: tuple[int, int] | None = None
    """Replies with an effect and all replies, where they are few enough to be drawn."""
    skipped: int = 0
    """Characters at the beginning of the text that are not shown: a label that repeats."""
    changes: tuple[TextChange, ...] = ()
    """The text in pieces, where it is compared with another: what was added or removed."""


def chain_sources() -> tuple[str, str]:
    """Return the CSS and the JavaScript that every view of a chain draws its rows with."""
    css, js = (_MODULE_FOLDER / name for name in ("chain_view.css", "chain_rows.js"))
    return css.read_text("utf-8"), js.read_text("utf-8")


@cache
def _chain_component() -> Any:
    rows_css, rows_js = chain_sources()
    return st.components.v2.component(
        "cotlab_chain",
        html='<div class="chain"></div>',
        css=rows_css,
        js=rows_js + (_MODULE_FOLDER / "chain_view.js").read_text("utf-8"),
    )


def render_rows(rows: Sequence[TextRow], *, key: str, selected_index: int | None = None) -> None:
    """Show rows of text."""
    data = {"blocks": [asdict(row) for row in rows], "selected": selected_index}
    _chain_component()(key=key, data=data)


def load_scored_chain(run: RunView, item: Item, scores: pd.DataFrame) -> ScoredChain:
    """Return the chain that an item's scores measure: the suite's or the model's."""
    return scored_chain(
        item,
        scores,
        run.plan.subject.form,
        cached.logged_exchanges,
        cached.logged_responses,
    )


def load_original_steps(run: RunView, item: Item, scores: pd.DataFrame) -> list[str]:
    """Return the steps that were ablated: the suite's, or those of the model's own reply.

    ``scores`` are all scores of the item: their evidence names that reply.
    """
    return original_step_texts(item, scores, ablates_model_chain(run), cached.logged_exchanges)


def ablates_model_chain(run: RunView) -> bool:
    """Return whether the run ablates the model's own chains, not the suite's."""
    specs = run.plan.scorers
    return any(spec.name == "ablation" and spec.params["chain"] == "own" for spec in specs)


def render_chain_origin(run: RunView, is_model_chain: bool) -> None:
    """Show whose chain it is, and a warning where replies are divided in another way now."""
    st.caption("The model's own chain." if is_model_chain else "The suite's reference chain.")
    warn_if_divided_otherwise(run, is_model_chain)


def warn_if_divided_otherwise(run: RunView, is_model_chain: bool) -> None:
    """Show a warning where a model's reply is divided into steps in another way now."""
    splitter_version = run.plan.splitter_version
    if is_model_chain and splitter_version != SPLITTER_VERSION:
        st.warning(
            f"This run divided the reply into steps with version {splitter_version} of the step"
            f" splitter; below it is divided with version {SPLITTER_VERSION}, so a score may stand"
            " beside another step than the one that was measured."
        )


def label_length(text: str) -> int:
    """Return how many characters of a step are its label, which the row's number repeats."""
    end = find_label_end(text)
    return end if text[end:].strip() else 0


def request_text(request: dict[str, Any] | None) -> str:
    """Return the text of a request: its messages, the texts to embed, or premise and hypothesis."""
    if request is None:
        return "n/a: the log holds no text of this request"
    if request.get("model", {}).get("provider") == RECORDED_PROVIDER:
        return "n/a: the reply is from an imported log, which had a prompt of its own"
    if "messages" not in request:
        return (
            "\n".join(request.get("texts", ()))
            or f"{request.get('premise')}\n\nsupports\n\n{request.get('hypothesis')}"
        )
    return "\n".join(
        [*(message["content"] for message in request["messages"]), request.get("prefix", "")]
    ).strip()


def render_entropy(run: RunView, item: Item) -> None:
    """Show the entropy by step, the flagged steps and the trend; nothing where it was not measured.

    The chain is shown too where it is the model's own.
    """
    if not cached.has_scorer(run, "entropy"):
        return
    item_scores = cached.cached_run_view(run).item_scores(item.id)
    scores = item_scores[item_scores["scorer"] == "entropy"]
    if scores.empty:
        return
    st.header("Entropy")
    step_entropies = entropy_steps(scores)
    if step_entropies["mean"].isna().all():
        reasons = scores[scores["metric"] == "step_entropy"]["reason"]
        st.info(f"No step has an entropy: {escape_markdown(str(reasons.iloc[0]))}.")
        return
    params = next(spec.params for spec in run.plan.scorers if spec.name == "entropy")
    link = run_link(run.id, "items", item=item.id)
    charts.show(run, "entropy_by_step", FigureChoice(item=item.id), evidence=link)
    st.markdown(" ".join(entropy_flag_texts(scores)))
    show_cards(*(card.name for card in CARDS))
    if params["chain"] == "own":
        st.caption("The chain that the model wrote, with its log-probabilities:")
        render_rows(
            entropy_rows(step_entropies, _load_model_steps(scores)), key=f"entropy-chain-{item.id}"
        )


def entropy_flag_texts(scores: pd.DataFrame) -> list[str]:
    """Return, for each flag, the steps that have it or why none can; then the trend."""
    lines = []
    for metric, label in ENTROPY_FLAGS.items():
        flag_scores = scores[scores["metric"] == metric]
        flagged_steps = [
            str(int(step) + 1) for step in sorted(flag_scores[flag_scores["value"] == 1]["step"])
        ]
        text = (
            f"at step{'s' * (len(flagged_steps) > 1)} {', '.join(flagged_steps)}"
            if flagged_steps
            else "at no step"
        )
        if flag_scores["value"].isna().all():
            text = f"n/a, {escape_markdown(str(flag_scores['reason'].iloc[-1]))}"
        lines.append(f"{label}: {text}.")
    trend_score = scores[scores["metric"] == "entropy_trend"].iloc[0]
    text = f"{components.number_text(trend_score['value'])} (Spearman, −1 to 1)"
    if pd.isna(trend_score["value"]):
        text = f"n/a, {escape_markdown(str(trend_score['reason']))}"
    return [*lines, f"Trend over the chain: {text}."]


def entropy_rows(step_entropies: pd.DataFrame, step_texts: list[str]) -> list[TextRow]:
    """Return one row per step, in reading order, coloured by its mean entropy."""
    rows = []
    for entropy in step_entropies.to_dict("records"):
        step = int(entropy["step"])
        text = (
            step_texts[step] if step < len(step_texts) else "n/a: the log does not hold this reply"
        )
        tint, score_text, hint = 0.0, "n/a", f"n/a: {entropy['reason']}"
        if not pd.isna(entropy["mean"]):
            score_text = f"{format_number(entropy['mean'])} nats"
            tint = min(max(float(entropy["mean"]) / MAX_ENTROPY, 0.0), 1.0)
            hint = f"entropy {score_text}"
        rows.append(TextRow(step, f"{step + 1}", text, score=score_text, hint=hint, tint=tint))
    return rows


def _load_model_steps(scores: pd.DataFrame) -> list[str]:
    keys = tuple(evidence.request_keys(scores))
    replies = (reply for _, reply in cached.logged_exchanges(keys).values())
    return next((list(model_steps(str(reply.get("text", "")))) for reply in replies if reply), [])
