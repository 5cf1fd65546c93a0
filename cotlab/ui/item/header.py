"""The head of the page Item: the run, the question as the title, the answers, the neighbours."""

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
    Query,
    address_query,
    chips_data,
    item_filter,
    list_sources,
    load_item_list,
    query_href,
    search_text,
    sent_query,
)
from cotlab.ui.item.step_marks import equations_text
from cotlab.ui.linked import PageLink, show_linked
from cotlab.ui.text import shorten

LINKS_KEY = "item-links"
"""Key of the container of the head's links; L on the keyboard opens the one to the page Label."""
_RUN_PARAMS = ("run", "change", *FILTER_PARAMS)
"""Parameters of the address that stay where another item is opened."""
_CHIPS = (
    ("Changed", "changed", "A changed step changed the answer at least once."),
    ("Wrong answer", "wrong", "No more than half of the judged replies are right."),
    (
        "No value",
        "undefined",
        "No value of whether the answer is right, or of a changed step.",
    ),
)
_ANSWERS = {
    True: {"text": "✓", "kind": "right"},
    False: {"text": "✕", "kind": "wrong"},
    None: {"text": "n/a", "kind": "unknown"},
}
_MODULE_FOLDER = Path(__file__).parent
_SIGNS = {"right": "✓", "wrong": "✕", "unknown": ""}


def render_item_header(
    row: RunView,
    item: Item,
    scores: pd.DataFrame,
    steps: Sequence[str],
    is_model_chain: bool,
) -> None:
    """Show run and item with their links, the question as the title, and the answers."""
    _render_context(row, item)
    keys = evidence.request_keys(answer_scores(scores))
    answers = model_answers(
        item,
        row.plan.subject,
        scores,
        cached.logged_exchanges(tuple(keys)),
        cached.logged_responses(tuple(keys)),
    )
    component_key = f"header-{row.id}"  # one a run: the list stays open with the next item
    _header_component()(
        key=component_key,
        data={
            **items_data(row, item.id),
            "heading": item.question,
            "heading_pieces": question_pieces(item.question),
            "facts": item_facts(item, answers, scores, len(steps), is_model_chain),
        },
        on_choice_change=lambda: _store_choice(row, component_key, item.id),
    )
    if cached.read_once(read.is_suite_redacted, row.suite):
        st.warning("The texts of this suite were redacted: their SHA-256 is shown instead.")


def _render_context(row: RunView, item: Item) -> None:
    """Show which run this is, and links to its other pages."""
    plan = row.plan
    names = [shorten(row.model)]
    if row.name:
        names.insert(0, row.name)
    repeats_text = f"{plan.repeats} {'reply' if plan.repeats == 1 else 'replies'} each"
    compare_link = PageLink("compare", (("base", row.id), ("item", item.id)))
    content = {
        "label": "",
        "name": ", ".join(names),
        "facts": [
            *map(shorten, (row.suite_name, row.id)),
            f"{row.n_items:,} items, {repeats_text}, temperature {plan.temperature:g}",
        ],
        "links": [
            {"text": "Run", "link": PageLink("run", (("run", row.id),))},
            *(
                {"text": page.label, "link": page.link}
                for page in evidence.run_page_links(row, item.id)
            ),
            {"text": "Compare", "link": compare_link},
            {"text": "Label", "link": PageLink("label"), "key": "l"},
        ],
    }
    with st.container(key=LINKS_KEY):
        show_linked("context", content, key=f"item-context-{row.id}")


def items_data(row: RunView, item_id: str) -> dict[str, Any]:
    """Return what the component shows of the run's items and of the place of one among them."""
    chosen_filter = item_filter()
    item_list = load_item_list(row, chosen_filter, item_id)
    links: list[Query] = []

    def link_to(other_id: str) -> int:
        links.append(address_query(_RUN_PARAMS, item=other_id))
        return len(links) - 1

    chips: list[tuple[str, str | None, int, str]] = [("All", None, item_list.counts.all, "")]
    chips += [(text, view, getattr(item_list.counts, view), help_) for text, view, help_ in _CHIPS]
    neighbours = {"k": item_list.previous, "j": item_list.next}
    last = item_list.start + len(item_list.items)
    part = f"{item_list.start + 1:,} to {last:,} of {item_list.n_listed:,}"
    pages = {"Earlier": item_list.before_part, "Later": item_list.after_part}
    return {
        "chips": chips_data(chips, chosen_filter.view, links),
        "search": search_text(),
        "search_label": "Search ids and questions",
        "place": _position_text(item_list, chosen_filter, item_id),
        "neighbours": {key: link_to(other) for key, other in neighbours.items() if other},
        "is_filtered": not chosen_filter.is_open,
        "list_title": f"List of {noun_count(item_list.n_listed, 'item')}, search and filters",
        "rows": [
            {
                "number": entry.number,
                "question": shorten(f"{entry.id} · {entry.question}", 200),
                "answers": [_ANSWERS[entry.is_right]],
                "delta": "",
                "selected": entry.id == item_id,
                "link": link_to(entry.id),
            }
            for entry in item_list.items
        ],
        "part": part,
        "pages": {title: link_to(other) for title, other in pages.items() if other},
        "hrefs": [query_href("item", query) for query in links],
    }


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


def _store_choice(row: RunView, component_key: str, current_id: str) -> None:
    """Write the choice that the component sent into the address.

    Another filter keeps the item where it is listed, and opens the first one where it is not; where
    nothing matches, the item stays.
    """
    query = sent_query(component_key, ("item", *FILTER_PARAMS))
    if query is None:
        return
    item_id = current_id
    if "item" not in query:
        item_list = load_item_list(row, item_filter(query), item_id)
        if item_list.rank is None and item_list.n_listed:
            item_id = load_item_list(row, item_filter(query), None).items[0].id
        query["item"] = [item_id]
    if query["item"] != [item_id]:
        query = {name: query[name] for name in (*_RUN_PARAMS, "item") if name in query}
    write_address(query, preserved=())


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
