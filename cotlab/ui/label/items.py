"""What a rater reads of an item: its question, the chain that was scored and whose it is, and the model's answer. No score."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.chains import Chain, scored_chain
from cotlab.core.types import Form, Item
from cotlab.store import read
from cotlab.text.answers.extract import final_answer
from cotlab.text.prompts.chain import text_after_cue
from cotlab.ui import cached as data

ANSWER_METRICS = ("answer_correct", "baseline_correct")
"""Scores whose first request is the one that the model answered with the whole chain."""
_MAX_CACHED = 2000
"""So many items are kept, whoever read them."""
GONE = "n/a: the log does not hold the reply"


class ItemView(NamedTuple):
    """One item as a rater sees it; ``own`` says that the model wrote the chain, ``redacted`` that no text of it was kept."""

    question: str
    steps: tuple[str, ...]
    from_model: bool
    answer: str
    truth: str | None
    model: str
    redacted: bool = False

    @property
    def chain_origin(self) -> str:
        """Whose chain it is, in words."""
        if self.steps:
            return (
                "The model's own chain, as it replied."
                if self.from_model
                else "The suite's reference chain; the model read it."
            )
        return (
            "n/a: the log does not hold the model's chain."
            if self.from_model
            else "n/a: the item has no chain."
        )

    def rows(self) -> list[tuple[str, str]]:
        """Question, steps, the model's answer and what was expected, each with its name, in reading order."""
        steps = [(f"Step {i + 1}", text) for i, text in enumerate(self.steps)]
        truth = self.truth if self.truth is not None else "n/a: no ground truth"
        return [
            ("Question", self.question),
            *steps,
            ("Model's answer", self.answer),
            ("Right answer", truth),
        ]


def load_item_view(run_id: str, item_id: str) -> ItemView:
    """One item of a run, kept once it was read whole; read again when its scores were written anew, as after a resume.

    Raises
    ------
    UnknownName
        If the store has no such run or item.
    """
    cache, key, written = (
        _view_cache(str(data.store().folder)),
        (run_id, item_id),
        read.written_at(data.store(), run_id, item_id),
    )
    cached = cache.get(key)
    if cached is not None and cached[0] == written:
        return cached[1]
    view = _read(run_id, item_id)
    if (
        view.steps and view.answer != GONE and not view.redacted
    ):  # what goes on, or was redacted, may bring them yet
        cache[key] = (written, view)
        while len(cache) > _MAX_CACHED:
            cache.pop(next(iter(cache), key), None)
    return view


def cached_question(run_id: str, item_id: str) -> str:
    """The question of an item, where it was shown before; else its id."""
    cached = _view_cache(str(data.store().folder)).get((run_id, item_id))
    return item_id if cached is None else cached[1].question


@st.cache_resource(show_spinner=False)
def _view_cache(folder: str) -> dict[tuple[str, str], tuple[int | None, ItemView]]:
    return {}


@st.cache_data(show_spinner=False, max_entries=200)
def _run(folder: str, run_id: str) -> tuple[str, str, Form]:
    """Suite, model and prompt form of a run; they never change."""
    row = data.run_row(run_id)
    return str(row["suite"]), str(row["model"]), read.stored_plan(row).subject.form


def _read(run_id: str, item_id: str) -> ItemView:
    suite, model, form = _run(str(data.store().folder), run_id)
    item = data.load_item(suite, item_id)
    scores = read.select_scores(data.store(), run_id, items=[item_id])
    chain = scored_chain(item, scores, form, data.exchanges, data.responses)
    redacted = read.is_redacted(data.store(), suite)
    return ItemView(
        item.question,
        chain.steps,
        chain.from_model,
        _answer(item, scores, chain),
        item.answer,
        model,
        redacted,
    )


def _answer(item: Item, scores: pd.DataFrame, chain: Chain) -> str:
    """The model's final answer, or all that it said where none can be read out of it."""
    keys = [
        keys[0]
        for name in ANSWER_METRICS
        for keys in scores[scores["metric"] == name]["evidence"]
        if len(keys)
    ]
    key = next(iter(keys), chain.key)
    if key is None:
        return GONE
    request, reply = data.exchanges((key,)).get(key, (None, None))
    if reply is None:
        return GONE
    text = reply.get("text")
    has_text = isinstance(text, str) and not reply.get("refused")
    return (
        final_answer(text_after_cue((request or {}).get("prefix") or "", str(text)))
        if has_text
        else None
    ) or data.reply_text(reply)
