"""Tables of one chain: steps by effect, links, entropy, and paraphrased questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import pandas as pd

from cotlab.analysis.view import LoggedExchange, with_facet_columns
from cotlab.core.keys import to_json_value
from cotlab.core.requests import Response
from cotlab.core.types import Form, Item
from cotlab.metrics.ablation import FLAG_METRICS
from cotlab.metrics.model_steps import model_reply_steps, model_steps
from cotlab.run.scored_chain import ReadExchanges, StoredRequest, chain_messages
from cotlab.stats.intervals import wilson
from cotlab.stats.vectors import cosines, pooled
from cotlab.text.answers.targets import answer_to
from cotlab.text.prompts.chain import continuation_prompt
from cotlab.text.prompts.paraphrase import paraphrase_prompt

RANKING_COLUMNS = ["step", "text", "point", "lo", "hi", "draws", "reason"]


def original_step_texts(
    item: Item, scores: pd.DataFrame, from_model: bool, exchanges: ReadExchanges
) -> list[str]:
    """Return the ablated steps: the item's, or those of the model's reply in the log."""
    if not from_model:
        return [step.text for step in item.steps]
    rows = scores[(scores["item_id"] == item.id) & (scores["metric"] == "baseline_correct")]
    keys = tuple(rows["evidence"].iloc[0])[1:] if len(rows) else ()
    return reply_step_texts(exchanges(keys).values())


def reply_step_texts(exchanges: Iterable[LoggedExchange]) -> list[str]:
    """Return the steps of the first reply, of its reasoning where that has any; none without it."""
    for _, reply in exchanges:
        reply_body = reply or {}
        return list(
            model_steps(reply_body.get("reasoning") or "")
            or model_steps(str(reply_body.get("text") or ""))
        )
    return []


def ranking_table(texts: Sequence[str], scores: pd.DataFrame) -> pd.DataFrame:
    """Return each step's CCS, the mean over its draws.

    Several draws of a metric of yes and no have a Wilson interval.
    """
    rows = []
    for step, group in scores[scores["step"].notna()].groupby("step"):
        values = group["value"].dropna()
        reason = None if len(values) else str(group["reason"].iloc[0])
        point, lo, hi = (float(values.mean()) if len(values) else None), None, None
        if len(values) > 1 and group["metric"].isin(FLAG_METRICS).all():
            interval = wilson(int(values.sum()), len(values))
            lo, hi = interval.lo, interval.hi
        text = texts[int(step)] if int(step) < len(texts) else ""
        rows.append((int(step), text, point, lo, hi, len(values), reason))
    return pd.DataFrame(rows, columns=RANKING_COLUMNS)


def link_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores ``link_support`` of single links."""
    return scores[(scores["metric"] == "link_support") & scores["step"].notna()]


def link_table(scores: pd.DataFrame, texts: Sequence[str]) -> pd.DataFrame:
    """Return the scores ``link_support`` with link, verifier, and the text that decided them."""
    rows = with_facet_columns(link_scores(scores), "link", "verifier")
    steps = [int(step) for step in rows["step"]]
    quoted_texts = [
        texts[step][int(lo) : int(hi)] if step < len(texts) and not pd.isna(lo) else ""
        for step, lo, hi in zip(steps, rows["where_lo"], rows["where_hi"], strict=True)
    ]
    text_by_step = dict(enumerate(texts))
    table = rows.assign(
        step=steps,
        quote=quoted_texts,
        before=[text_by_step.get(step - 1, "") for step in steps],
        text=[text_by_step.get(step, "") for step in steps],
    ).reset_index(drop=True)
    return table[["link", "step", "value", "verifier", "reason", "quote", "before", "text"]]


ENTROPY_COLUMNS = ["step", "mean", "peak", "flag", "reason"]
ENTROPY_FLAGS = {"entropy_jump": "A jump", "entropy_rise": "A jump after rising entropy"}


def entropy_steps(scores: pd.DataFrame) -> pd.DataFrame:
    """Return one row a step: mean and peak in nats, flag and reason.

    Mean and peak are None where undefined; flag is "", "jump" or "rise"; reason says why the
    mean is missing.
    """
    rows = []
    for step, group in scores[scores["step"].notna()].groupby("step"):
        row_by_metric = {str(r["metric"]): r for r in group.to_dict("records")}
        value_by_metric = {name: row["value"] for name, row in row_by_metric.items()}
        mean_value, peak_value = (
            value_by_metric.get(name) for name in ("step_entropy", "step_entropy_peak")
        )
        flags = [
            name.removeprefix("entropy_")
            for name in ENTROPY_FLAGS
            if value_by_metric.get(name) == 1
        ]
        is_undefined = "step_entropy" in value_by_metric and pd.isna(mean_value)
        reason = row_by_metric["step_entropy"]["reason"] if is_undefined else None
        rows.append((int(step), mean_value, peak_value, flags[-1] if flags else "", reason))
    return pd.DataFrame(rows, columns=ENTROPY_COLUMNS)


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
    prompt_prefix, _, prompt_suffix = (
        continuation_prompt("\0", (), form).messages[0].content.partition("\0")
    )
    rewrite_messages = to_json_value(paraphrase_prompt(item.question).messages)
    chains = []
    for key, request in requests.items():
        messages = chain_messages(request)
        if messages and messages != rewrite_messages:
            text = str(messages[0]["content"])
            question = (
                text[len(prompt_prefix) : len(text) - len(prompt_suffix)]
                if text.startswith(prompt_prefix) and text.endswith(prompt_suffix)
                else text
            )
            chains.append(_parse_chain(item, question, replies.get(key))._replace(key=key))
    return sorted(chains, key=lambda chain: not is_original_question(chain.question, item))


def _parse_chain(item: Item, question: str, reply: Response | None) -> ParaphraseChain:
    if reply is None:
        return ParaphraseChain(question, (), None, "the log does not hold this reply")
    if reply.refused:
        return ParaphraseChain(question, (), None, "the model refused")
    if reply.finish == "length":
        return ParaphraseChain(question, (), None, "the chain was cut off")
    steps = model_reply_steps(reply)
    return ParaphraseChain(
        question,
        steps,
        answer_to(item, reply.text or ""),
        "" if steps else "the model wrote no chain",
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
        first_vector, second_vector = pooled_vectors[i], pooled_vectors[j]
        value = reason = None
        if first_vector is not None and second_vector is not None:
            value = float(cosines([first_vector, second_vector])[0, 1])
        else:
            k = i if first_vector is None else j
            reason = f"{names[k]}: {chains[k].missing_reason or 'a step has no vector'}"
        rows.append((names[i], names[j], value, reason))
    return pd.DataFrame(rows, columns=["one", "other", "point", "reason"])


def is_original_question(question: str, item: Item) -> bool:
    """Return whether a wording is the item's original question."""
    return question.strip() == item.question.strip()
