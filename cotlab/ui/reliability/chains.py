"""The chains behind the scores of one item: its own, and those of the paraphrases of its question, side by side."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import reliability as values
from cotlab.analysis.tables.chains import (
    ParaphraseChain,
    cosine_table,
    embedded_vectors,
    paraphrase_chains,
    wording_labels,
)
from cotlab.core.types import Item
from cotlab.figures.style import format_number
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.item import evidence
from cotlab.ui.item.chain_view import Block, show_blocks
from cotlab.ui.links import page
from cotlab.ui.text import as_code


def render_paraphrases(row: dict[str, Any], item: Item) -> None:
    """Each wording of the question with its chain, and the cosine of each two chains. Hidden wordings stay hidden."""
    table = data.selected_scores(row["id"], int(row["revision"]), item_id=item.id)
    scores = values.component_scores(table, ("mu", "sigma", "C")).set_index("part")
    if scores.empty:
        return
    st.subheader("Paraphrases")
    halted = (
        "mu" not in scores.index or scores.at["mu", "status"] == "stopped"
    )  # its evidence is then that of the parts before
    keys = () if halted else tuple(scores.at["mu", "evidence"])
    logged, replies = data.exchanges(keys), data.responses(keys)
    requests = {key: logged[key][0] for key in keys if key in logged}
    chains = paraphrase_chains(requests, replies, item, data.run_plan(row["id"]).subject.form)
    if not chains:
        reasons = scores["reason"].dropna()
        st.info(
            "The log holds no chain of a"
            f" paraphrase{f': {as_code(str(reasons.iloc[0]))}' if len(reasons) else ''}."
        )
        return
    known = [
        f"{name}"
        f" {format_number(None if pd.isna(scores.at[part, 'value']) else scores.at[part, 'value'])}"
        for name, part in (("μ", "mu"), ("σ", "sigma"), ("C", "C"))
        if part in scores.index
    ]
    names = wording_labels(chains, item)
    pairs = cosine_table(names, chains, embedded_vectors(requests, replies))
    if len(pairs):
        parts.show_figure(
            "chain_cosines",
            pairs,
            key=f"cosines-{item.id}",
            note=", ".join(known) + ".",
            evidence=(
                page("item"),
                evidence.requests_of(
                    row, item.id, evidence.score_id(*scores.loc["mu", ["metric", "facet"]])
                ),
            ),
        )
    for at in range(0, len(chains), 2):
        for column, i in zip(st.columns(2), range(at, min(at + 2, len(chains))), strict=False):
            with column:
                show_blocks(
                    _blocks(names[i], chains[i]), key=f"paraphrase-{row['id']}-{item.id}-{i}"
                )
                evidence.render_request_link(row, item.id, chains[i].key)
    st.caption("Paraphrases of the hold-out are not shown: what is looked at can be tuned on.")


def _blocks(name: str, paraphrase: ParaphraseChain) -> list[Block]:
    chain = "\n".join(paraphrase.steps) if paraphrase.steps else f"n/a: {paraphrase.missing_reason}"
    answer = paraphrase.answer if paraphrase.answer is not None else "n/a"
    return [
        Block(0, name, paraphrase.question),
        Block(1, "Chain", chain),
        Block(2, "Answer", answer),
    ]
