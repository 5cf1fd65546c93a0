"""The entropy of one chain, step by step, as the pages Item and Mediation show it."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.chains import ENTROPY_FLAGS, entropy_steps
from cotlab.core.types import Item
from cotlab.figures.style import format_number, shade
from cotlab.metrics.ablation.scorer import model_steps
from cotlab.metrics.entropy import CARDS, MAX_ENTROPY
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.item.chain_view import Block, show_blocks
from cotlab.ui.links import page
from cotlab.ui.text import as_code


def render_entropy(row: dict[str, Any], item: Item) -> None:
    """The figure, the flagged steps and the trend; the chain too where it is the model's own. Nothing where not measured."""
    table = data.view(row).item_scores(item.id)
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
        spec.params for spec in data.run_plan(row["id"]).scorers if spec.name == "entropy"
    )
    parts.show_figure(
        "entropy_by_step",
        steps,
        key=f"entropy-{item.id}",
        note=f"A jump: more than {params['jump_nats']:g} nats above the mean of the earlier steps.",
        evidence=(page("item"), {"run": row["id"], "item": item.id}),
    )
    st.markdown(" ".join(flag_lines(scores)))
    with st.container(horizontal=True):
        for card in CARDS:
            parts.show_card(card.name)
    if params["chain"] == "own":
        st.caption("The chain that the model wrote when its log-probabilities were asked for:")
        show_blocks(
            entropy_blocks(steps, _model_chain_texts(scores)), key=f"entropy-chain-{item.id}"
        )


def flag_lines(scores: pd.DataFrame) -> list[str]:
    """For each flag the steps that have it, or why none can; then the trend."""
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
    return [*lines, f"Trend over the chain: {parts.number_text(trend['value'])}{reason}."]


def entropy_blocks(steps: pd.DataFrame, texts: list[str]) -> list[Block]:
    """The chain's steps in reading order, shaded by their mean entropy."""
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
    replies = (reply for _, reply in data.exchanges(keys).values())
    return next((list(model_steps(str(reply.get("text", "")))) for reply in replies if reply), [])
