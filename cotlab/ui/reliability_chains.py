"""The chains behind the scores of one item: its own, and those of the paraphrases of its question, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.core.keys import plain
from cotlab.core.requests import Response
from cotlab.core.types import Form, Item
from cotlab.figures.style import number
from cotlab.metrics.ablation import own_chain
from cotlab.stats.clusters import cosines, pooled
from cotlab.text.answers import final_answer
from cotlab.text.prompts import ask_rest
from cotlab.text.reword import ask_paraphrase
from cotlab.ui import data, evidence, parts
from cotlab.ui import reliability_values as values
from cotlab.ui.chain import whole_chain
from cotlab.ui.chain_view import Block, show_blocks
from cotlab.ui.links import page
from cotlab.ui.text import as_code

Asked = Mapping[str, Any]


class Told(NamedTuple):
    """One wording of the question, the chain that the model wrote for it, and its answer."""

    question: str
    steps: tuple[str, ...]
    answer: str | None
    why: str
    key: str = ""
    """Of the request that asked for the chain."""


def paraphrases(row: dict[str, Any], item: Item) -> None:
    """Each wording of the question with its chain, and the cosine of each two chains. Hidden wordings stay hidden."""
    table = data.some_scores(row["id"], int(row["revision"]), item_id=item.id)
    own = values.part_scores(table, ("mu", "sigma", "C")).set_index("part")
    if own.empty:
        return
    st.subheader("Paraphrases")
    halted = "mu" not in own.index or own.at["mu", "status"] == "stopped"  # its evidence is then that of the parts before
    keys = () if halted else tuple(own.at["mu", "evidence"])
    asked, replies = data.exchanges(keys), data.responses(keys)
    requests = {key: asked[key][0] for key in keys if key in asked}
    found = tellings(requests, replies, item, data.plan_of(row["id"]).subject.form)
    if not found:
        why = own["reason"].dropna()
        st.info(f"The log holds no chain of a paraphrase{f': {as_code(str(why.iloc[0]))}' if len(why) else ''}.")
        return
    known = [
        f"{name} {number(None if pd.isna(own.at[part, 'value']) else own.at[part, 'value'])}"
        for name, part in (("μ", "mu"), ("σ", "sigma"), ("C", "C"))
        if part in own.index
    ]
    names = ["as asked" if _same(told.question, item) else f"paraphrase {i}" for i, told in enumerate(found)]
    pairs = cosine_table(names, found, vectors_of(requests, replies))
    if len(pairs):
        parts.show_figure(
            "chain_cosines", pairs, key=f"cosines-{item.id}", note=", ".join(known) + ".",
            evidence=(page("item"), evidence.requests_of(row, item.id, evidence.score_id(*own.loc["mu", ["metric", "facet"]]))),
        )  # fmt: skip
    for at in range(0, len(found), 2):
        for place, i in zip(st.columns(2), range(at, min(at + 2, len(found))), strict=False):
            with place:
                show_blocks(_blocks(names[i], found[i]), key=f"paraphrase-{row['id']}-{item.id}-{i}")
                evidence.request_link(row, item.id, found[i].key)
    st.caption("Paraphrases of the hold-out are not shown: what is looked at can be tuned on.")


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
    return sorted(found, key=lambda told: not _same(told.question, item))


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


def _same(question: str, item: Item) -> bool:
    return question.strip() == item.question.strip()


def _blocks(name: str, told: Told) -> list[Block]:
    chain = "\n".join(told.steps) if told.steps else f"n/a: {told.why}"
    answer = told.answer if told.answer is not None else "n/a"
    return [Block(0, name, told.question), Block(1, "Chain", chain), Block(2, "Answer", answer)]
