"""The chains behind the scores of one item: its own, and those of the paraphrases of its question, side by side."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import reliability as values
from cotlab.analysis.tables.paraphrases import Told, cosine_table, tellings, vectors_of, wordings
from cotlab.core.types import Item
from cotlab.figures.style import number
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.item import evidence
from cotlab.ui.item.chain_view import Block, show_blocks
from cotlab.ui.links import page
from cotlab.ui.text import as_code


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
    names = wordings(found, item)
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


def _blocks(name: str, told: Told) -> list[Block]:
    chain = "\n".join(told.steps) if told.steps else f"n/a: {told.why}"
    answer = told.answer if told.answer is not None else "n/a"
    return [Block(0, name, told.question), Block(1, "Chain", chain), Block(2, "Answer", answer)]
