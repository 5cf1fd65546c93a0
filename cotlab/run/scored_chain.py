"""The chain that the scores of an item are of."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.keys import to_json_value
from cotlab.core.requests import Response
from cotlab.core.types import Form, Item
from cotlab.metrics.model_steps import model_reply_steps
from cotlab.text.prompts.chain import continuation_prompt

ReadExchanges = Callable[
    [tuple[str, ...]], Mapping[str, tuple[dict[str, Any] | None, dict[str, Any] | None]]
]
StoredRequest = Mapping[str, Any]
MODEL_CHAIN_SCORERS = ("consistency", "diversity")
"""Scorers that ask the model for chains of its own, whatever chain the run is about."""


class ScoredChain(NamedTuple):
    """The chain that scores are of."""

    steps: tuple[str, ...]
    """Its steps; none where the log does not hold the model's own."""
    from_model: bool
    """Whether the model wrote it; else it is the suite's."""
    key: str | None = None
    """Key of the request that gave the model's own."""


def scored_chain(
    item: Item,
    scores: pd.DataFrame,
    form: Form,
    exchanges: ReadExchanges,
    responses: Callable[[tuple[str, ...]], Mapping[str, Response]],
) -> ScoredChain:
    """Return the chain that scores of an item are of: the suite's, or the model's own.

    The model's own chain has no steps where the log does not hold it.
    """
    source_by_facet = {text: json.loads(text).get("chain") for text in scores["facet"].unique()}
    chain_source = scores["facet"].map(source_by_facet)
    is_on_run_chain = ~scores["scorer"].isin(MODEL_CHAIN_SCORERS)
    model_scores = (
        scores[(chain_source == "own") & is_on_run_chain]
        if (is_on_run_chain & chain_source.notna()).any()
        else scores[chain_source == "own"]
    )
    if model_scores.empty:
        return ScoredChain(tuple(step.text for step in item.steps), from_model=False)
    keys = tuple(dict.fromkeys(key for evidence in model_scores["evidence"] for key in evidence))
    expected_messages = to_json_value(continuation_prompt(item.question, (), form).messages)
    logged_exchanges = exchanges(keys)
    key = next(
        (
            key
            for key in keys
            if key in logged_exchanges
            and chain_messages(logged_exchanges[key][0]) == expected_messages
        ),
        None,
    )
    reply = responses((key,)).get(key) if key is not None else None
    return ScoredChain(
        tuple(model_reply_steps(reply)) if reply is not None else (), from_model=True, key=key
    )


def chain_messages(request: StoredRequest | None) -> Any:
    """Return the messages of a request for a whole chain; None of any other request."""
    if request is None or request.get("kind") != "complete" or request.get("prefix"):
        return None
    return request["messages"]
