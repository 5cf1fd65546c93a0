"""The entropy of one chain, step by step, as the pages Item and Mediation show it."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.entropy import FLAGS, steps_of
from cotlab.core.types import Item
from cotlab.figures.style import number, shade
from cotlab.metrics.ablation.scorer import own_steps
from cotlab.metrics.entropy import CARDS, MOST
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.item.chain_view import Block, show_blocks
from cotlab.ui.links import page
from cotlab.ui.text import as_code


def trajectory(row: dict[str, Any], item: Item) -> None:
    """The figure, the flagged steps and the trend; the chain too where it is the model's own. Nothing where not measured."""
    table = data.scores(row["id"], int(row["revision"]))
    own = table[(table["item_id"] == item.id) & (table["scorer"] == "entropy")]
    if own.empty:
        return
    st.subheader("Entropy")
    steps = steps_of(own)
    if steps["mean"].isna().all():
        first = own[own["metric"] == "step_entropy"]["reason"]
        st.info(f"No step has an entropy: {as_code(str(first.iloc[0]))}.")
        return
    params = next(spec.params for spec in data.plan_of(row["id"]).scorers if spec.name == "entropy")
    parts.show_figure(
        "entropy_by_step", steps, key=f"entropy-{item.id}",
        note=f"A jump: more than {params['jump_nats']:g} nats above the mean of the earlier steps.",
        evidence=(page("item"), {"run": row["id"], "item": item.id}),
    )  # fmt: skip
    st.markdown(" ".join(flag_lines(own)))
    with st.container(horizontal=True):
        for card in CARDS:
            parts.show_card(card.name)
    if params["chain"] == "own":
        st.caption("The chain that the model wrote when its log-probabilities were asked for:")
        show_blocks(blocks(steps, _own_texts(own)), key=f"entropy-chain-{item.id}")


def flag_lines(own: pd.DataFrame) -> list[str]:
    """For each flag the steps that have it, or why none can; then the trend."""
    lines = []
    for metric, words in FLAGS.items():
        flags = own[own["metric"] == metric]
        found = [str(int(step) + 1) for step in sorted(flags[flags["value"] == 1]["step"])]
        if flags["value"].isna().all():
            lines.append(f"{words}: n/a, {as_code(str(flags['reason'].iloc[-1]))}.")
        else:
            lines.append(f"{words}: at step{'s' * (len(found) > 1)} {', '.join(found)}." if found else f"{words}: at no step.")
    trend = own[own["metric"] == "entropy_trend"].iloc[0]
    why = f", {as_code(str(trend['reason']))}" if pd.isna(trend["value"]) else " (Spearman, −1 to 1)"
    return [*lines, f"Trend over the chain: {parts.number_text(trend['value'])}{why}."]


def blocks(steps: pd.DataFrame, texts: list[str]) -> list[Block]:
    """The chain's steps in reading order, shaded by their mean entropy."""
    found = []
    for r in steps.to_dict("records"):
        known, at = not pd.isna(r["mean"]), int(r["step"])
        score = f"{number(r['mean'])} nats" if known else "n/a"
        text = texts[at] if at < len(texts) else "n/a: the log does not hold this reply"
        hint = f"entropy {score}" if known else f"n/a: {r['reason']}"
        found.append(Block(at, f"{at + 1}", text, shade(r["mean"], 0.0, MOST) if known else None, score, hint))
    return found


def _own_texts(own: pd.DataFrame) -> list[str]:
    keys = tuple(dict.fromkeys(key for found in own["evidence"] for key in found))
    replies = (reply for _, reply in data.exchanges(keys).values())
    return next((list(own_steps(str(reply.get("text", "")))) for reply in replies if reply), [])
