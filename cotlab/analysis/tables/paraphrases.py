"""The chains that a model wrote for several wordings of one question, and how alike they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.keys import plain
from cotlab.core.requests import Response
from cotlab.core.types import Form, Item
from cotlab.metrics.ablation.scorer import own_chain
from cotlab.stats.clusters import cosines, pooled
from cotlab.text.answers.extract import final_answer
from cotlab.text.prompts.chain import ask_rest
from cotlab.text.prompts.paraphrase import ask_paraphrase

Asked = Mapping[str, Any]


class Told(NamedTuple):
    """One wording of the question, the chain that the model wrote for it, and its answer."""

    question: str
    steps: tuple[str, ...]
    answer: str | None
    why: str
    key: str = ""
    """Of the request that asked for the chain."""


def wordings(found: Sequence[Told], item: Item) -> list[str]:
    """What each wording is called: as asked, or a paraphrase by its number."""
    return ["as asked" if same(told.question, item) else f"paraphrase {i}" for i, told in enumerate(found)]


def tellings(requests: Mapping[str, Asked | None], replies: Mapping[str, Response], item: Item, form: Form) -> list[Told]:
    """The wordings whose chains were asked for, in the order of ``requests``, the item's own first."""
    before, _, after = ask_rest("\0", (), form).messages[0].content.partition("\0")
    rewriting = plain(ask_paraphrase(item.question).messages)
    found = []
    for key, request in requests.items():
        messages = whole_chain(request)
        if messages and messages != rewriting:
            text = str(messages[0]["content"])
            question = text[len(before) : len(text) - len(after)] if text.startswith(before) and text.endswith(after) else text
            found.append(_told(question, replies.get(key))._replace(key=key))
    return sorted(found, key=lambda told: not same(told.question, item))


def _told(question: str, reply: Response | None) -> Told:
    if reply is None:
        return Told(question, (), None, "the log does not hold this reply")
    if reply.refused:
        return Told(question, (), None, "the model refused")
    if reply.finish == "length":
        return Told(question, (), None, "the chain was cut off")
    steps = own_chain(reply)
    return Told(question, steps, final_answer(reply.text or ""), "" if steps else "the model wrote no chain")


def vectors_of(requests: Mapping[str, Asked | None], replies: Mapping[str, Response]) -> dict[str, tuple[float, ...]]:
    """The vector of each text that was embedded."""
    found: dict[str, tuple[float, ...]] = {}
    for key, reply in replies.items():
        request = requests.get(key)
        if request is not None and request.get("kind") == "embed" and reply.vectors:
            found |= dict(zip(request["texts"], reply.vectors, strict=False))
    return found


def cosine_table(names: Sequence[str], found: Sequence[Told], vectors: Mapping[str, tuple[float, ...]]) -> pd.DataFrame:
    """The cosine of each two chains, each the direction of the mean of its steps' vectors; None with the reason."""
    whole = [None if set(told.steps) - set(vectors) else pooled([vectors[step] for step in told.steps]) for told in found]
    rows = []
    for i, j in combinations(range(len(found)), 2):
        one, other = whole[i], whole[j]
        why = next((f"{names[k]}: {found[k].why or 'a step has no vector'}" for k in (i, j) if whole[k] is None), None)
        value = float(cosines([one, other])[0, 1]) if one is not None and other is not None else None
        rows.append((names[i], names[j], value, why))
    return pd.DataFrame(rows, columns=["one", "other", "point", "reason"])


def whole_chain(request: Asked | None) -> Any:
    """The messages of a request for a whole chain; None of any other request."""
    whole = request is not None and request.get("kind") == "complete" and not request.get("prefix")
    return request["messages"] if request is not None and whole else None


def same(question: str, item: Item) -> bool:
    """Whether a wording is the item's own."""
    return question.strip() == item.question.strip()
