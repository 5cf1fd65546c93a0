"""The head of an item: its place in the run, its neighbours, the question and the answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.step_replies import ModelAnswers, answer_scores, model_answers
from cotlab.analysis.tables.suggestion import question_pieces
from cotlab.analysis.verdict.wording import noun_count
from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.metrics.kit import NO_MODEL_CHAIN_REASON
from cotlab.store import read
from cotlab.store.run_items import ItemFilter, ItemList
from cotlab.ui import cached
from cotlab.ui.address import write_address
from cotlab.ui.item import evidence
from cotlab.ui.item.item_list import (
    FILTER_PARAMS,
    address_query,
    item_filter,
    list_sources,
    load_item_list,
    query_href,
    sent_query,
)
from cotlab.ui.item.step_marks import equations_text
from cotlab.ui.places import TAB_PARAM
from cotlab.ui.text import shorten

_RUN_PARAMS = ("run", TAB_PARAM, "change", *FILTER_PARAMS)
"""Parameters of the address that stay where another item is opened."""
_MODULE_FOLDER = Path(__file__).parent
_SIGNS = {"right": "✓", "wrong": "✕", "unknown": ""}


def render_item_header(
    run: RunView,
    item: Item,
    scores: pd.DataFrame,
    steps: Sequence[str],
    is_model_chain: bool,
) -> None:
    """Show the place of an item, its question, and the answers."""
    keys = evidence.request_keys(answer_scores(scores))
    answers = model_answers(
        item,
        run.plan.subject,
        scores,
        cached.logged_exchanges(tuple(keys)),
        cached.logged_responses(tuple(keys)),
    )
    component_key = f"header-{run.id}"
    _header_component()(
        key=component_key,
        data={
            **place_data(run, item.id),
            "heading": item.question,
            "heading_pieces": question_pieces(item.question),
            "facts": item_facts(item, answers, scores, len(steps), is_model_chain),
        },
        on_choice_change=lambda: _store_choice(component_key),
    )
    if cached.read_once(read.is_suite_redacted, run.suite):
        st.warning("The texts of this suite were redacted: their SHA-256 is shown instead.")


def place_data(run: RunView, item_id: str) -> dict[str, Any]:
    """Return what the component shows of the place of an item among those that are listed."""
    chosen_filter = item_filter()
    item_list = load_item_list(run, chosen_filter, item_id)
    neighbours: dict[str, int] = {}
    hrefs: list[str] = []
    for key, other in (("k", item_list.previous), ("j", item_list.next)):
        if other:
            neighbours[key] = len(hrefs)
            hrefs.append(query_href("run", address_query(_RUN_PARAMS, item=other)))
    place = _position_text(item_list, chosen_filter, item_id)
    return {"place": place, "neighbours": neighbours, "hrefs": hrefs}


def _position_text(item_list: ItemList, chosen_filter: ItemFilter, item_id: str) -> str:
    """Return which item of the run this is, and its place among those that are listed."""
    texts = [shorten(item_id)]
    if item_list.number is not None:
        texts.insert(0, f"Item {item_list.number:,} of {item_list.counts.all:,}")
    if not chosen_filter.is_open:
        rank_text = f"not among the {item_list.n_listed:,} that match"
        if item_list.rank is not None:
            rank_text = f"{item_list.rank + 1:,} of {item_list.n_listed:,} that match"
        texts.append(rank_text if item_list.n_listed else "no item matches")
    return " · ".join(texts)


def _store_choice(component_key: str) -> None:
    """Write the neighbour that the component sent into the address."""
    query = sent_query(component_key, ("item",))
    if query is not None and "item" in query:
        write_address({name: query[name] for name in (*_RUN_PARAMS, "item") if name in query}, ())


@cache
def _header_component() -> Any:
    list_css, list_js = list_sources()
    return st.components.v2.component(
        "cotlab_item_header",
        html='<div class="head"></div>',
        css=list_css,
        js=list_js + (_MODULE_FOLDER / "header.js").read_text("utf-8"),
    )


def item_facts(
    item: Item, answers: ModelAnswers, scores: pd.DataFrame, n_steps: int, is_model_chain: bool
) -> list[dict[str, Any]]:
    """Return what is known of an item, as the component shows it."""
    right_answer = item.answer if item.answer is not None else "n/a: no ground truth"
    origin = "the model's own" if is_model_chain else "the suite's"
    chain_text = (
        f"Chain: {origin}, {noun_count(n_steps, 'step')}{equations_text(scores, is_model_chain)}"
    )
    if not n_steps:
        chain_text = f"Chain: n/a: {missing_chain_text(scores, is_model_chain)}"
    return [
        _fact("", ("Right answer ", False), (right_answer, True)),
        _answers_fact(answers),
        _fact("", (chain_text, False)),
    ]


def missing_chain_text(scores: pd.DataFrame, is_model_chain: bool) -> str:
    """Return why an item has no chain to show."""
    if not is_model_chain:
        return "the item has no reference chain"
    of_chain = scores["scorer"].isin(("ablation", "flags", "mediation", "robustness"))
    if NO_MODEL_CHAIN_REASON in set(scores[of_chain]["reason"]):
        return NO_MODEL_CHAIN_REASON
    return "the log does not hold the model's own in full"


def _answers_fact(answers: ModelAnswers) -> dict[str, Any]:
    """Return the fact of the model's answers: each of them, and how many replies are right."""
    if not answers.answers:
        return _fact("unknown", ("Model's answer ", False), (f"n/a: {answers.reason}", False))
    pieces = [("Model's answer ", False)]
    n_replies = sum(count.n_baseline for count in answers.answers)
    for k, count in enumerate(answers.answers):
        pieces += [(", ", False)] * (k > 0) + [(count.answer, True)]
        if len(answers.answers) > 1:
            pieces.append((f" ({count.n_baseline} of {n_replies})", False))
    kind = "unknown"
    if answers.n:
        kind = "right" if 2 * answers.n_right > answers.n else "wrong"
        noun = "reply" if answers.n == 1 else "replies"
        pieces.append((f", right in {answers.n_right} of {answers.n} {noun}", False))
    if answers.reason is not None and answers.n < n_replies:
        pieces.append((f"; not judged: {answers.reason}", False))
    return _fact(kind, *pieces)


def _fact(kind: str, *pieces: tuple[str, bool]) -> dict[str, Any]:
    """Return a fact: its kind, the sign of it, and its pieces of text, strong or not."""
    return {"kind": kind, "sign": _SIGNS.get(kind, ""), "parts": pieces}
