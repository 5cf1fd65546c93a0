"""One chain with its scores: ranking, shaded steps, and the replies behind a step."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.chains import Chain, ablated_texts
from cotlab.analysis.tables.chains import ranking_table as ranking_of
from cotlab.analysis.tables.chains import scored_chain as chain_from
from cotlab.core.types import Item
from cotlab.figures.style import format_number, interval_text, shade
from cotlab.ui import cached as data
from cotlab.ui.item.chain_view import Block, show_blocks
from cotlab.ui.text import as_code, shorten


def run_item_chain(row: dict[str, Any], item: Item, scored: pd.DataFrame) -> Chain:
    """The chain that some scores of an item are of: the suite's, or the model's own, from the log."""
    return chain_from(
        item, scored, data.run_plan(row["id"]).subject.form, data.exchanges, data.responses
    )


def chain_texts(row: dict[str, Any], item: Item) -> list[str]:
    """The steps that were ablated: the suite's, or, where the run took the model's own, those of its reply."""
    plan = data.run_plan(row["id"])
    spec = next((s for s in plan.scorers if s.name == "ablation"), None)
    from_model = spec is not None and spec.params["chain"] == "own"
    return ablated_texts(item, data.view(row).item_scores(item.id), from_model, data.exchanges)


def step_ranking(row: dict[str, Any], item: Item, scores: pd.DataFrame) -> pd.DataFrame:
    """Each step's CCS with its text, over the draws of the request."""
    return ranking_of(chain_texts(row, item), scores)


def step_blocks(ranked: pd.DataFrame) -> list[Block]:
    """Rows for the chain in reading order."""
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
    """Baseline and ablated reply side by side, for every draw of one step."""
    st.markdown(f"**Step {step + 1}**: the reply with the whole chain, and with the changed one")
    if scores["evidence"].map(len).max() < 2:
        st.info(f"Nothing was asked for this step: {as_code(str(scores['reason'].iloc[0]))}.")
        return
    keys = tuple({key for evidence in scores["evidence"] for key in evidence})
    logged = data.exchanges(keys)
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
                        Block(0, title, data.reply_text(reply), score=score),
                        Block(1, "Asked with", request_text(request)),
                    ],
                    key=f"{title}-{item.id}-{step}-{r.sample}-{r.Index}",
                )
        st.caption(
            f"Draw {int(r.sample) + 1}. Ground truth:"
            f" {'none' if item.answer is None else as_code(shorten(item.answer))}."
        )


def request_text(request: dict[str, Any] | None) -> str:
    """The text a request showed the model: its messages, the texts to embed, or a premise and what it is to support."""
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
