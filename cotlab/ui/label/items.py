"""What a rater reads of an item: its question, the chain that was scored and whose it is, and the model's answer. No score."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.chains import Chain, chain_of
from cotlab.core.types import Form, Item
from cotlab.store import read
from cotlab.text.answers.extract import final_answer
from cotlab.text.prompts.chain import said
from cotlab.ui import cached as data

ANSWERED = ("answer_correct", "baseline_correct")
"""Scores whose first request is the one that the model answered with the whole chain."""
_MOST_KEPT = 2000
"""So many items are kept, whoever read them."""
GONE = "n/a: the log does not hold the reply"


class Shown(NamedTuple):
    """One item as a rater sees it; ``own`` says that the model wrote the chain, ``redacted`` that no text of it was kept."""

    question: str
    steps: tuple[str, ...]
    own: bool
    answer: str
    truth: str | None
    model: str
    redacted: bool = False

    @property
    def whose(self) -> str:
        """Whose chain it is, in words."""
        if self.steps:
            return "The model's own chain, as it replied." if self.own else "The suite's reference chain; the model read it."
        return "n/a: the log does not hold the model's chain." if self.own else "n/a: the item has no chain."

    def rows(self) -> list[tuple[str, str]]:
        """Question, steps, the model's answer and what was expected, each with its name, in reading order."""
        steps = [(f"Step {i + 1}", text) for i, text in enumerate(self.steps)]
        truth = self.truth if self.truth is not None else "n/a: no ground truth"
        return [("Question", self.question), *steps, ("Model's answer", self.answer), ("Right answer", truth)]


def shown(run_id: str, item_id: str) -> Shown:
    """One item of a run, kept once it was read whole; read again when its scores were written anew, as after a resume.

    Raises
    ------
    UnknownName
        If the store has no such run or item.
    """
    kept, place, written = _kept(str(data.store().folder)), (run_id, item_id), read.written_at(data.store(), run_id, item_id)
    held = kept.get(place)
    if held is not None and held[0] == written:
        return held[1]
    found = _read(run_id, item_id)
    if found.steps and found.answer != GONE and not found.redacted:  # what goes on, or was redacted, may bring them yet
        kept[place] = (written, found)
        while len(kept) > _MOST_KEPT:
            kept.pop(next(iter(kept), place), None)
    return found


def asked_of(run_id: str, item_id: str) -> str:
    """The question of an item, where it was shown before; else its id."""
    found = _kept(str(data.store().folder)).get((run_id, item_id))
    return item_id if found is None else found[1].question


@st.cache_resource(show_spinner=False)
def _kept(folder: str) -> dict[tuple[str, str], tuple[int | None, Shown]]:
    return {}


@st.cache_data(show_spinner=False, max_entries=200)
def _run(folder: str, run_id: str) -> tuple[str, str, Form]:
    """Suite, model and prompt form of a run; they never change."""
    row = data.run_row(run_id)
    return str(row["suite"]), str(row["model"]), read.plan_of(row).subject.form


def _read(run_id: str, item_id: str) -> Shown:
    suite, model, form = _run(str(data.store().folder), run_id)
    item = data.item(suite, item_id)
    scores = read.scores(data.store(), run_id, item_id=item_id)
    chain = chain_of(item, scores, form, data.exchanges, data.responses)
    redacted = read.is_redacted(data.store(), suite)
    return Shown(item.question, chain.steps, chain.own, _answer(item, scores, chain), item.answer, model, redacted)


def _answer(item: Item, scores: pd.DataFrame, chain: Chain) -> str:
    """The model's final answer, or all that it said where none can be read out of it."""
    keys = [keys[0] for name in ANSWERED for keys in scores[scores["metric"] == name]["evidence"] if len(keys)]
    key = next(iter(keys), chain.key)
    if key is None:
        return GONE
    request, reply = data.exchanges((key,)).get(key, (None, None))
    if reply is None:
        return GONE
    text = reply.get("text")
    whole = isinstance(text, str) and not reply.get("refused")
    return (final_answer(said((request or {}).get("prefix") or "", str(text))) if whole else None) or data.said(reply)
