"""One chain as the tables of its figures: its steps by effect, and the links between them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from cotlab.analysis.tables.paraphrases import chain_messages
from cotlab.core.keys import to_json_value
from cotlab.core.requests import Response
from cotlab.core.types import Form, Item
from cotlab.metrics.ablation.redundancy import FLAGS
from cotlab.metrics.kit import model_chain, model_steps
from cotlab.stats.intervals import wilson
from cotlab.text.prompts.chain import ask_rest

Exchanges = Callable[
    [tuple[str, ...]], Mapping[str, tuple[dict[str, Any] | None, dict[str, Any] | None]]
]
COLUMNS = ["step", "text", "point", "lo", "hi", "draws", "reason"]
MODEL_CHAIN_SCORERS = ("consistency", "diversity")
"""Scorers that ask the model for chains of its own, whatever chain the run is about."""


class Chain(NamedTuple):
    """A chain that scores are of, whose it is, and the key of the request that gave it where it is the model's own."""

    steps: tuple[str, ...]
    from_model: bool
    key: str | None = None


def ablated_texts(
    item: Item, scores: pd.DataFrame, from_model: bool, exchanges: Exchanges
) -> list[str]:
    """The steps that were ablated: the item's, or, where the run took the model's ``own``, those of its reply in the log."""
    if not from_model:
        return [step.text for step in item.steps]
    rows = scores[(scores["item_id"] == item.id) & (scores["metric"] == "baseline_correct")]
    keys = tuple(rows["evidence"].iloc[0])[1:] if len(rows) else ()
    for _, reply in exchanges(keys).values():
        body = reply or {}
        return list(
            model_steps(body.get("reasoning") or "") or model_steps(str(body.get("text") or ""))
        )
    return []


def scored_chain(
    item: Item,
    scored: pd.DataFrame,
    form: Form,
    exchanges: Exchanges,
    responses: Callable[[tuple[str, ...]], Mapping[str, Response]],
) -> Chain:
    """The chain that some scores of an item are of: the suite's, or the model's own, from the log.

    The model's own chain has no steps where the log does not hold it.
    """
    facets = {text: json.loads(text).get("chain") for text in scored["facet"].unique()}
    whose = scored["facet"].map(facets)
    other = ~scored["scorer"].isin(MODEL_CHAIN_SCORERS)
    model_scores = (
        scored[(whose == "own") & other]
        if (other & whose.notna()).any()
        else scored[whose == "own"]
    )
    if model_scores.empty:
        return Chain(tuple(step.text for step in item.steps), from_model=False)
    keys = tuple(dict.fromkeys(key for evidence in model_scores["evidence"] for key in evidence))
    expected = to_json_value(ask_rest(item.question, (), form).messages)
    logged = exchanges(keys)
    key = next(
        (key for key in keys if key in logged and chain_messages(logged[key][0]) == expected), None
    )
    reply = responses((key,)).get(key) if key is not None else None
    return Chain(tuple(model_chain(reply)) if reply is not None else (), from_model=True, key=key)


def ranking_table(texts: Sequence[str], scores: pd.DataFrame) -> pd.DataFrame:
    """Each step's CCS: the mean over its draws, with a Wilson interval where its scores are yes or no and more than one."""
    rows = []
    for step, group in scores[scores["step"].notna()].groupby("step"):
        values = group["value"].dropna()
        reason = None if len(values) else str(group["reason"].iloc[0])
        point, lo, hi = (float(values.mean()) if len(values) else None), None, None
        if len(values) > 1 and group["metric"].isin(FLAGS).all():
            interval = wilson(int(values.sum()), len(values))
            lo, hi = interval.lo, interval.hi
        text = texts[int(step)] if int(step) < len(texts) else ""
        rows.append((int(step), text, point, lo, hi, len(values), reason))
    return pd.DataFrame(rows, columns=COLUMNS)


def link_scores(scored: pd.DataFrame) -> pd.DataFrame:
    """The scores ``link_support`` of single links."""
    return scored[(scored["metric"] == "link_support") & scored["step"].notna()]


def link_table(scored: pd.DataFrame, texts: Sequence[str]) -> pd.DataFrame:
    """The scores ``link_support`` with their link, verifier, and the text that decided them."""
    rows = link_scores(scored)
    facets = [json.loads(text) for text in rows["facet"]]
    steps = [int(step) for step in rows["step"]]
    quotes = [
        texts[step][int(lo) : int(hi)] if step < len(texts) and not pd.isna(lo) else ""
        for step, lo, hi in zip(steps, rows["where_lo"], rows["where_hi"], strict=True)
    ]
    known = dict(enumerate(texts))
    table = rows.assign(
        step=steps,
        link=[f.get("link", "") for f in facets],
        verifier=[f.get("verifier", "") for f in facets],
        quote=quotes,
        before=[known.get(step - 1, "") for step in steps],
        text=[known.get(step, "") for step in steps],
    )
    return table[
        ["link", "step", "value", "verifier", "reason", "quote", "before", "text"]
    ].reset_index(drop=True)
