"""One chain as rows of text: its steps with scores, the replies behind a step, its entropy."""

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
    Chain,
    entropy_steps,
    original_step_texts,
    ranking_table,
    scored_chain,
)
from cotlab.core.resources import page
from cotlab.core.types import Item
from cotlab.figures.style import format_number, interval_text, shade
from cotlab.metrics.entropy import CARDS, MAX_ENTROPY
from cotlab.metrics.kit import model_steps
from cotlab.ui import cached, components
from cotlab.ui.text import as_code, shorten

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a block's text, marked with a colour where it has one."""

    text: str
    """The piece's text."""
    shade: str | None = None
    """Colour of the mark, or None."""
    hint: str = ""
    """Tooltip of the mark."""


@dataclass(frozen=True, slots=True)
class Block:
    """One row of text, with a label, a colour and a score."""

    index: int
    """Index of the row, from 0; a selection returns it."""
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
    pieces: tuple[Piece, ...] = ()
    """The text split into pieces, where some of them are marked."""


@cache
def _component() -> Any:
    return st.components.v2.component(
        "cotlab_chain",
        html='<div class="chain"></div>',
        css=(_HERE / "chain_view.css").read_text(),
        js=(_HERE / "chain_view.js").read_text(),
    )


def show_blocks(blocks: Sequence[Block], *, key: str, selected: int | None = None) -> None:
    """Show rows that cannot be selected."""
    _component()(
        key=key,
        data={"blocks": [asdict(b) for b in blocks], "clickable": False, "selected": selected},
    )


def pick_block(blocks: Sequence[Block], *, key: str, selected: int | None = None) -> int | None:
    """Show rows that can be selected by mouse or keyboard, and return the selected index."""
    chosen = (
        st.session_state.get(key, {}).get("selected", selected)
        if key in st.session_state
        else selected
    )
    result = _component()(
        key=key,
        data={"blocks": [asdict(b) for b in blocks], "clickable": True, "selected": chosen},
        default={"selected": selected},
        on_selected_change=lambda: None,
    )
    value = result.selected
    return int(value) if value is not None else None


def run_item_chain(row: dict[str, Any], item: Item, scored: pd.DataFrame) -> Chain:
    """Return the chain that an item's scores are about: the suite's or the model's."""
    return scored_chain(
        item, scored, cached.run_plan(row["id"]).subject.form, cached.exchanges, cached.responses
    )


def chain_texts(row: dict[str, Any], item: Item) -> list[str]:
    """Return the steps that were ablated: the suite's, or those of the model's own reply."""
    plan = cached.run_plan(row["id"])
    spec = next((s for s in plan.scorers if s.name == "ablation"), None)
    from_model = spec is not None and spec.params["chain"] == "own"
    return original_step_texts(
        item, cached.view(row).item_scores(item.id), from_model, cached.exchanges
    )


def step_ranking(row: dict[str, Any], item: Item, scores: pd.DataFrame) -> pd.DataFrame:
    """Return each step's text and its mean CCS over the draws."""
    return ranking_table(chain_texts(row, item), scores)


def step_blocks(ranked: pd.DataFrame) -> list[Block]:
    """Return one row per step, in reading order, coloured by its CCS."""
    blocks = []
    for r in ranked.sort_values("step").itertuples():
        known = not pd.isna(r.point)
        score = (
            "n/a"
            if not known
            else (format_number(r.point) if pd.isna(r.lo) else interval_text(r.point, r.lo, r.hi))
        )
        hint = f"n/a: {r.reason}" if not known else f"CCS {score}, {r.draws} draw(s)"
        blocks.append(
            Block(r.step, f"{r.step + 1}", r.text, shade(r.point) if known else None, score, hint)
        )
    return blocks


def show_exchange(scores: pd.DataFrame, item: Item, step: int) -> None:
    """Show the baseline reply and the ablated reply side by side, for every draw of one step."""
    st.markdown(f"**Step {step + 1}**: the reply with the full chain, and with the ablated one")
    if scores["evidence"].map(len).max() < 2:
        st.info(f"No request was made for this step: {as_code(str(scores['reason'].iloc[0]))}.")
        return
    keys = tuple({key for evidence in scores["evidence"] for key in evidence})
    logged = cached.exchanges(keys)
    for r in scores.sort_values("sample").itertuples():
        base, ablated = (logged.get(key, (None, None)) for key in list(r.evidence)[:2])
        score_text = f"CCS {format_number(None if pd.isna(r.value) else r.value)}" + (
            f" ({r.reason})" if pd.isna(r.value) else ""
        )
        left, right = st.columns(2)
        for column, title, (request, reply), score in (
            (left, "Baseline", base, ""),
            (right, "Ablated", ablated, score_text),
        ):
            with column:
                show_blocks(
                    [
                        Block(0, title, cached.reply_text(reply), score=score),
                        Block(1, "Prompt", request_text(request)),
                    ],
                    key=f"{title}-{item.id}-{step}-{r.sample}-{r.Index}",
                )
        st.caption(
            f"Draw {int(r.sample) + 1}. Ground truth:"
            f" {'none' if item.answer is None else as_code(shorten(item.answer))}."
        )


def request_text(request: dict[str, Any] | None) -> str:
    """Return the text of a request: its messages, the texts to embed, or premise and hypothesis."""
    if request is None:
        return "n/a: the log holds no text of this request"
    if "messages" not in request:
        return (
            "\n".join(request.get("texts", ()))
            or f"{request.get('premise')}\n\nsupports\n\n{request.get('hypothesis')}"
        )
    return "\n".join(
        [*(m["content"] for m in request["messages"]), request.get("prefix", "")]
    ).strip()


def render_entropy(row: dict[str, Any], item: Item) -> None:
    """Show the entropy by step, the flagged steps and the trend; nothing where it was not measured.

    The chain is shown too where it is the model's own.
    """
    table = cached.view(row).item_scores(item.id)
    scores = table[table["scorer"] == "entropy"]
    if scores.empty:
        return
    st.subheader("Entropy")
    steps = entropy_steps(scores)
    if steps["mean"].isna().all():
        first = scores[scores["metric"] == "step_entropy"]["reason"]
        st.info(f"No step has an entropy: {as_code(str(first.iloc[0]))}.")
        return
    params = next(
        spec.params for spec in cached.run_plan(row["id"]).scorers if spec.name == "entropy"
    )
    components.show_figure(
        "entropy_by_step",
        steps,
        key=f"entropy-{item.id}",
        note=f"A jump: more than {params['jump_nats']:g} nats above the mean of the earlier steps.",
        evidence=(page("item"), {"run": row["id"], "item": item.id}),
    )
    st.markdown(" ".join(flag_lines(scores)))
    with st.container(horizontal=True):
        for card in CARDS:
            components.show_card(card.name)
    if params["chain"] == "own":
        st.caption("The chain that the model wrote, with its log-probabilities:")
        show_blocks(
            entropy_blocks(steps, _model_chain_texts(scores)), key=f"entropy-chain-{item.id}"
        )


def flag_lines(scores: pd.DataFrame) -> list[str]:
    """Return, for each flag, the steps that have it or why none can; then the trend."""
    lines = []
    for metric, label in ENTROPY_FLAGS.items():
        flags = scores[scores["metric"] == metric]
        flagged = [str(int(step) + 1) for step in sorted(flags[flags["value"] == 1]["step"])]
        if flags["value"].isna().all():
            lines.append(f"{label}: n/a, {as_code(str(flags['reason'].iloc[-1]))}.")
        else:
            lines.append(
                f"{label}: at step{'s' * (len(flagged) > 1)} {', '.join(flagged)}."
                if flagged
                else f"{label}: at no step."
            )
    trend = scores[scores["metric"] == "entropy_trend"].iloc[0]
    reason = (
        f", {as_code(str(trend['reason']))}" if pd.isna(trend["value"]) else " (Spearman, −1 to 1)"
    )
    return [*lines, f"Trend over the chain: {components.number_text(trend['value'])}{reason}."]


def entropy_blocks(steps: pd.DataFrame, texts: list[str]) -> list[Block]:
    """Return one row per step, in reading order, coloured by its mean entropy."""
    rows = []
    for r in steps.to_dict("records"):
        known, at = not pd.isna(r["mean"]), int(r["step"])
        score = f"{format_number(r['mean'])} nats" if known else "n/a"
        text = texts[at] if at < len(texts) else "n/a: the log does not hold this reply"
        hint = f"entropy {score}" if known else f"n/a: {r['reason']}"
        rows.append(
            Block(
                at,
                f"{at + 1}",
                text,
                shade(r["mean"], 0.0, MAX_ENTROPY) if known else None,
                score,
                hint,
            )
        )
    return rows


def _model_chain_texts(scores: pd.DataFrame) -> list[str]:
    keys = tuple(dict.fromkeys(key for evidence in scores["evidence"] for key in evidence))
    replies = (reply for _, reply in cached.exchanges(keys).values())
    return next((list(model_steps(str(reply.get("text", "")))) for reply in replies if reply), [])
