"""The chains that a model wrote for several wordings of one question, and how alike they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.keys import to_json_value
from cotlab.core.requests import Response
from cotlab.core.types import Form, Item
from cotlab.metrics.kit import model_chain
from cotlab.stats.clusters import cosines, pooled
from cotlab.text.answers.extract import final_answer
from cotlab.text.prompts.chain import ask_rest
from cotlab.text.prompts.paraphrase import ask_paraphrase

StoredRequest = Mapping[str, Any]


class ParaphraseChain(NamedTuple):
    """One wording of the question, the chain that the model wrote for it, and its answer."""

    question: str
    steps: tuple[str, ...]
    answer: str | None
    missing_reason: str
    key: str = ""
    """Of the request that asked for the chain."""


def wording_labels(chains: Sequence[ParaphraseChain], item: Item) -> list[str]:
    """What each wording is called: as asked, or a paraphrase by its number."""
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
    """The wordings whose chains were asked for, in the order of ``requests``, the item's own first."""
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
    """The vector of each text that was embedded."""
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
    """The cosine of each two chains, each the direction of the mean of its steps' vectors; None with the reason."""
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
    """The messages of a request for a whole chain; None of any other request."""
    is_chain_request = (
        request is not None and request.get("kind") == "complete" and not request.get("prefix")
    )
    return request["messages"] if request is not None and is_chain_request else None


def is_original_question(question: str, item: Item) -> bool:
    """Whether a wording is the item's own."""
    return question.strip() == item.question.strip()
