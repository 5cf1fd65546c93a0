"""The head of the page Item: the run, the question as the title, the answers, the neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.step_replies import ModelAnswers, answer_scores, model_answers
from cotlab.analysis.tables.suggestion import question_pieces
from cotlab.core.resources import page_path
from cotlab.core.types import Item
from cotlab.store import read
from cotlab.ui import cached
from cotlab.ui.item import evidence
from cotlab.ui.item.chain import chain_sources
from cotlab.ui.text import escape_markdown, shorten

LABEL_KEYS = {"l": "item-label"}
"""Key of the keyboard → key of the container of the link to the page Label."""
_MODULE_FOLDER = Path(__file__).parent
_SIGNS = {"right": "✓", "wrong": "✕", "unknown": ""}


def render_item_header(
    row: dict[str, Any],
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
        cached.parse_plan(row["plan"]).subject,
        scores,
        cached.logged_exchanges(tuple(keys)),
        cached.logged_responses(tuple(keys)),
    )
    position_text, queries = _neighbour_queries(row, item)
    component_key = f"header-{row['id']}-{item.id}"

    def open_neighbour() -> None:
        query = queries.get(str(st.session_state[component_key].get("neighbour")))
        if query is not None:
            st.query_params.from_dict(query)

    _header_component()(
        key=component_key,
        data={
            "place": position_text,
            "neighbours": _neighbour_links(queries),
            "heading": item.question,
            "heading_pieces": question_pieces(item.question),
            "facts": item_facts(item, answers, len(steps), is_model_chain),
        },
        on_neighbour_change=open_neighbour,
    )
    if read.is_suite_redacted(cached.store(), row["suite"]):
        st.warning("The texts of this suite were redacted: their SHA-256 is shown instead.")


def _render_context(row: dict[str, Any], item: Item) -> None:
    """Show which run this is, and links to its other pages."""
    plan = cached.parse_plan(row["plan"])
    texts = [f"**{escape_markdown(shorten(str(row['model'])))}**"]
    if row["name"]:
        texts.insert(0, f"**{escape_markdown(str(row['name']))}**")
    texts += [escape_markdown(shorten(str(row[name]))) for name in ("suite_name", "id")]
    repeats_text = f"{plan.repeats} {'reply' if plan.repeats == 1 else 'replies'} each"
    texts.append(f"{row['n_items']} items, {repeats_text}, temperature {plan.temperature:g}")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(" · ".join(texts), width="stretch")
        st.page_link(page_path("run"), label="Run", query_params={"run": row["id"]})
        evidence.render_run_links(row, item.id)
        query = {"base": row["id"], "item": item.id}
        st.page_link(page_path("compare"), label="Compare", query_params=query)
        with st.container(key=LABEL_KEYS["l"], width="content"):
            st.page_link(page_path("label"), label="Label")


def _neighbour_queries(row: dict[str, Any], item: Item) -> tuple[str, dict[str, dict[str, str]]]:
    """Return which item this is, and the query of each neighbour by its key on the keyboard."""
    item_ids = cached.cached_run_view(row).items
    if item.id not in item_ids:
        return shorten(item.id), {}
    position = item_ids.index(item.id)
    queries = {}
    for key, index in (("k", position - 1), ("j", position + 1)):
        if 0 <= index < len(item_ids):
            queries[key] = {"run": row["id"], "item": item_ids[index]}
            if mode := st.query_params.get("change"):
                queries[key]["change"] = mode
    return f"Item {position + 1} of {len(item_ids)} · {shorten(item.id)}", queries


def _neighbour_links(queries: Mapping[str, Mapping[str, str]]) -> list[dict[str, str]]:
    """Return the links to the neighbours, as the component shows them."""
    return [
        {
            "key": key,
            "label": label,
            "arrow": arrow,
            "href": f"/item?{urlencode(queries[key], quote_via=quote)}" if key in queries else "",
        }
        for key, label, arrow in (("k", "Previous", "←"), ("j", "Next", "→"))
    ]


@cache
def _header_component() -> Any:
    _, rows_js = chain_sources()
    return st.components.v2.component(
        "cotlab_item_header",
        html='<div class="head"></div>',
        css=(_MODULE_FOLDER / "header.css").read_text("utf-8"),
        js=rows_js + (_MODULE_FOLDER / "header.js").read_text("utf-8"),
    )


def item_facts(
    item: Item, answers: ModelAnswers, n_steps: int, is_model_chain: bool
) -> list[dict[str, Any]]:
    """Return what is known of an item, as the component shows it."""
    right_answer = item.answer if item.answer is not None else "n/a: no ground truth"
    origin = "the model's own" if is_model_chain else "the suite's"
    chain_text = f"Chain: {origin}, {n_steps} step{'s' * (n_steps != 1)}"
    if not n_steps:
        chain_text = "Chain: n/a: " + (
            "the log does not hold the model's own in full"
            if is_model_chain
            else "the item has no reference chain"
        )
    return [
        _fact("", ("Right answer ", False), (right_answer, True)),
        _answers_fact(answers),
        _fact("", (chain_text, False)),
    ]


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
