"""One chain as tables: its steps by effect, links, entropy, and the wordings it was asked in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.keys import to_json_value
from cotlab.core.requests import Response
from cotlab.core.types import Form, Item
from cotlab.metrics.ablation.redundancy import FLAGS
from cotlab.metrics.kit import model_chain, model_steps
from cotlab.stats.intervals import wilson
from cotlab.stats.vectors import cosines, pooled
from cotlab.text.answers.extract import final_answer
from cotlab.text.prompts.chain import ask_rest
from cotlab.text.prompts.paraphrase import ask_paraphrase

Exchanges = Callable[
    [tuple[str, ...]], Mapping[str, tuple[dict[str, Any] | None, dict[str, Any] | None]]
]
RANKING_COLUMNS = ["step", "text", "point", "lo", "hi", "draws", "reason"]
MODEL_CHAIN_SCORERS = ("consistency", "diversity")
"""Scorers that ask the model for chains of its own, whatever chain the run is about."""


class Chain(NamedTuple):
    """The chain that scores are of."""

    steps: tuple[str, ...]
    """Its steps; none where the log does not hold the model's own."""
    from_model: bool
    """Whether the model wrote it; else it is the suite's."""
    key: str | None = None
    """Key of the request that gave the model's own."""


def original_step_texts(
    item: Item, scores: pd.DataFrame, from_model: bool, exchanges: Exchanges
) -> list[str]:
    """Return the ablated steps: the item's, or those of the model's reply in the log."""
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
    """Return the chain that scores of an item are of: the suite's, or the model's own.

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
    """Return each step's CCS, the mean over its draws.

    Several draws of a metric of yes and no have a Wilson interval.
    """
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
    return pd.DataFrame(rows, columns=RANKING_COLUMNS)


def link_scores(scored: pd.DataFrame) -> pd.DataFrame:
    """Return the scores ``link_support`` of single links."""
    return scored[(scored["metric"] == "link_support") & scored["step"].notna()]


def link_table(scored: pd.DataFrame, texts: Sequence[str]) -> pd.DataFrame:
    """Return the scores ``link_support`` with link, verifier, and the text that decided them."""
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


ENTROPY_COLUMNS = ["step", "mean", "peak", "flag", "reason"]
ENTROPY_FLAGS = {"entropy_jump": "A jump", "entropy_rise": "A jump after rising entropy"}


def entropy_steps(scores: pd.DataFrame) -> pd.DataFrame:
    """Return one row a step: mean and peak in nats, flag and reason.

    Mean and peak are None where undefined; flag is "", "jump" or "rise"; reason says why the
    mean is missing.
    """
    rows = []
    for step, group in scores[scores["step"].notna()].groupby("step"):
        by_metric = {str(r["metric"]): r for r in group.to_dict("records")}
        mean, peak = (
            by_metric[name]["value"] if name in by_metric else None
            for name in ("step_entropy", "step_entropy_peak")
        )
        raised = [
            name for name in ENTROPY_FLAGS if name in by_metric and by_metric[name]["value"] == 1
        ]
        reason = (
            by_metric["step_entropy"]["reason"]
            if "step_entropy" in by_metric and pd.isna(mean)
            else None
        )
        rows.append(
            (int(step), mean, peak, raised[-1].removeprefix("entropy_") if raised else "", reason)
        )
    return pd.DataFrame(rows, columns=ENTROPY_COLUMNS)


StoredRequest = Mapping[str, Any]


class ParaphraseChain(NamedTuple):
    """One wording of the question, the chain that the model wrote for it, and its answer."""

    question: str
    """The wording."""
    steps: tuple[str, ...]
    """The steps of its chain; none where there is a reason."""
    answer: str | None
    """The answer read from the reply."""
    missing_reason: str
    """Why there is no chain; "" where there is one."""
    key: str = ""
    """Key of the request for the chain."""


def wording_labels(chains: Sequence[ParaphraseChain], item: Item) -> list[str]:
    """Return the name of each wording: as asked, or a paraphrase by its number."""
    return [
        "as asked" if is_original_question(chain.question, item) else f"paraphrase {i}"
        for i, chain in enumerate(chains)
    ]


def paraphrase_chains(
    requests: Mapping[str, StoredRequest | None],
    replies: Mapping[str, Response],
    item: Item,
    form: Form,
) -> list[ParaphraseChain]:
    """Return the wordings with their chains in the order of ``requests``, the item's own first."""
    before, _, after = ask_rest("\0", (), form).messages[0].content.partition("\0")
    rewriting = to_json_value(ask_paraphrase(item.question).messages)
    chains = []
    for key, request in requests.items():
        messages = chain_messages(request)
        if messages and messages != rewriting:
            text = str(messages[0]["content"])
            question = (
                text[len(before) : len(text) - len(after)]
                if text.startswith(before) and text.endswith(after)
                else text
            )
            chains.append(_parse_chain(question, replies.get(key))._replace(key=key))
    return sorted(chains, key=lambda chain: not is_original_question(chain.question, item))


def _parse_chain(question: str, reply: Response | None) -> ParaphraseChain:
    if reply is None:
        return ParaphraseChain(question, (), None, "the log does not hold this reply")
    if reply.refused:
        return ParaphraseChain(question, (), None, "the model refused")
    if reply.finish == "length":
        return ParaphraseChain(question, (), None, "the chain was cut off")
    steps = model_chain(reply)
    return ParaphraseChain(
        question, steps, final_answer(reply.text or ""), "" if steps else "the model wrote no chain"
    )


def embedded_vectors(
    requests: Mapping[str, StoredRequest | None], replies: Mapping[str, Response]
) -> dict[str, tuple[float, ...]]:
    """Return the vector of each text that was embedded."""
    vectors: dict[str, tuple[float, ...]] = {}
    for key, reply in replies.items():
        request = requests.get(key)
        if request is not None and request.get("kind") == "embed" and reply.vectors:
            vectors |= dict(zip(request["texts"], reply.vectors, strict=False))
    return vectors


def cosine_table(
    names: Sequence[str],
    chains: Sequence[ParaphraseChain],
    vectors: Mapping[str, tuple[float, ...]],
) -> pd.DataFrame:
    """Return the cosine of each two chains, pooled over their steps; None with a reason."""
    pooled_vectors = [
        None if set(chain.steps) - set(vectors) else pooled([vectors[step] for step in chain.steps])
        for chain in chains
    ]
    rows = []
    for i, j in combinations(range(len(chains)), 2):
        first, second = pooled_vectors[i], pooled_vectors[j]
        reason = next(
            (
                f"{names[k]}: {chains[k].missing_reason or 'a step has no vector'}"
                for k in (i, j)
                if pooled_vectors[k] is None
            ),
            None,
        )
        value = (
            float(cosines([first, second])[0, 1])
            if first is not None and second is not None
            else None
        )
        rows.append((names[i], names[j], value, reason))
    return pd.DataFrame(rows, columns=["one", "other", "point", "reason"])


def chain_messages(request: StoredRequest | None) -> Any:
    """Return the messages of a request for a whole chain; None of any other request."""
    is_chain_request = (
        request is not None and request.get("kind") == "complete" and not request.get("prefix")
    )
    return request["messages"] if request is not None and is_chain_request else None


def is_original_question(question: str, item: Item) -> bool:
    """Whether a wording is the item's own."""
    return question.strip() == item.question.strip()
