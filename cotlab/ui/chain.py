"""One chain with its scores: ranking, shaded steps, and the replies behind a step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.core.keys import plain
from cotlab.core.types import Item
from cotlab.figures.style import interval_text, number, shade
from cotlab.metrics.ablation import own_chain, own_steps
from cotlab.metrics.redundancy import FLAGS
from cotlab.stats.intervals import wilson
from cotlab.text.prompts import ask_rest
from cotlab.ui import data
from cotlab.ui.chain_view import Block, show_blocks
from cotlab.ui.text import as_code, shorten

COLUMNS = ["step", "text", "point", "lo", "hi", "draws", "reason"]
ALWAYS_OWN = ("consistency", "diversity")
"""Scorers that ask the model for chains of its own, whatever chain the run is about."""


class Chain(NamedTuple):
    """A chain that scores are of, whose it is, and the key of the request that gave it where it is the model's own."""

    steps: tuple[str, ...]
    own: bool
    key: str | None = None


def chain_of(row: dict[str, Any], item: Item, scored: pd.DataFrame) -> Chain:
    """The chain that some scores of an item are of: the suite's, or the model's own, from the log.

    The model's own chain has no steps where the log does not hold it.
    """
    facets = {text: json.loads(text).get("chain") for text in scored["facet"].unique()}
    whose = scored["facet"].map(facets)
    other = ~scored["scorer"].isin(ALWAYS_OWN)
    own = scored[(whose == "own") & other] if (other & whose.notna()).any() else scored[whose == "own"]
    if own.empty:
        return Chain(tuple(step.text for step in item.steps), own=False)
    keys = tuple(dict.fromkeys(key for found in own["evidence"] for key in found))
    wanted = plain(ask_rest(item.question, (), data.plan_of(row["id"]).subject.form).messages)
    asked = data.exchanges(keys)
    key = next((key for key in keys if key in asked and whole_chain(asked[key][0]) == wanted), None)
    reply = data.responses((key,)).get(key) if key is not None else None
    return Chain(tuple(own_chain(reply)) if reply is not None else (), own=True, key=key)


def whole_chain(request: Mapping[str, Any] | None) -> Any:
    """The messages of a request for a whole chain; None of any other request."""
    whole = request is not None and request.get("kind") == "complete" and not request.get("prefix")
    return request["messages"] if request is not None and whole else None


def chain_texts(row: dict[str, Any], item: Item) -> list[str]:
    """The steps that were ablated: the suite's, or, where the run took the model's own, those of its reply."""
    plan = data.plan_of(row["id"])
    spec = next((s for s in plan.scorers if s.name == "ablation"), None)
    if spec is None or spec.params["chain"] != "own":
        return [step.text for step in item.steps]
    table = data.scores(row["id"], int(row["revision"]))
    rows = table[(table["item_id"] == item.id) & (table["metric"] == "baseline_correct")]
    keys = tuple(rows["evidence"].iloc[0])[1:] if len(rows) else ()
    for _, reply in data.exchanges(keys).values():
        return list(own_steps((reply or {}).get("reasoning") or "") or own_steps(data.said(reply)))
    return []


def ranking(row: dict[str, Any], item: Item, scores: pd.DataFrame) -> pd.DataFrame:
    """Each step's CCS: the mean over its draws, with a Wilson interval where its scores are yes or no and more than one."""
    texts = chain_texts(row, item)
    rows = []
    for step, group in scores[scores["step"].notna()].groupby("step"):
        values = group["value"].dropna()
        reason = None if len(values) else str(group["reason"].iloc[0])
        point, lo, hi = (float(values.mean()) if len(values) else None), None, None
        if len(values) > 1 and group["metric"].isin(FLAGS).all():
            found = wilson(int(values.sum()), len(values))
            lo, hi = found.lo, found.hi
        text = texts[int(step)] if int(step) < len(texts) else ""
        rows.append((int(step), text, point, lo, hi, len(values), reason))
    return pd.DataFrame(rows, columns=COLUMNS)


def step_blocks(ranked: pd.DataFrame) -> list[Block]:
    """Rows for the chain in reading order."""
    blocks = []
    for r in ranked.sort_values("step").itertuples():
        known = not pd.isna(r.point)
        score = "n/a" if not known else (number(r.point) if pd.isna(r.lo) else interval_text(r.point, r.lo, r.hi))
        hint = f"n/a: {r.reason}" if not known else f"CCS {score}, {r.draws} draw(s)"
        blocks.append(Block(r.step, f"{r.step + 1}", r.text, shade(r.point) if known else None, score, hint))
    return blocks


def show_exchange(scores: pd.DataFrame, item: Item, step: int) -> None:
    """Baseline and ablated reply side by side, for every draw of one step."""
    st.markdown(f"**Step {step + 1}**: the reply with the whole chain, and with the changed one")
    if scores["evidence"].map(len).max() < 2:
        st.info(f"Nothing was asked for this step: {as_code(str(scores['reason'].iloc[0]))}.")
        return
    keys = tuple({key for evidence in scores["evidence"] for key in evidence})
    found = data.exchanges(keys)
    for r in scores.sort_values("sample").itertuples():
        base, told = (found.get(key, (None, None)) for key in list(r.evidence)[:2])
        shown = f"CCS {number(None if pd.isna(r.value) else r.value)}" + (f" ({r.reason})" if pd.isna(r.value) else "")
        left, right = st.columns(2)
        for place, title, (asked, reply), score in ((left, "Baseline", base, ""), (right, "Ablated", told, shown)):
            with place:
                show_blocks(
                    [Block(0, title, data.said(reply), score=score), Block(1, "Asked with", asked_with(asked))],
                    key=f"{title}-{item.id}-{step}-{r.sample}-{r.Index}",
                )
        st.caption(
            f"Draw {int(r.sample) + 1}. Ground truth: {'none' if item.answer is None else as_code(shorten(item.answer))}."
        )


def asked_with(request: dict[str, Any] | None) -> str:
    """The text a request showed the model: its messages, the texts to embed, or a premise and what it is to support."""
    if request is None:
        return "n/a: the log holds no text of this request"
    if "messages" not in request:
        return "\n".join(request.get("texts", ())) or f"{request.get('premise')}\n\nsupports\n\n{request.get('hypothesis')}"
    return "\n".join([*(m["content"] for m in request["messages"]), request.get("prefix", "")]).strip()
