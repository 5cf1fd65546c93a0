"""The page Item: its chain, its scores, and the requests and replies behind them."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.chains import MODEL_CHAIN_SCORERS
from cotlab.analysis.tables.reliability import composite_components
from cotlab.core.errors import UnknownName
from cotlab.core.resources import page
from cotlab.core.types import Item
from cotlab.core.vocabulary import CCS_METRICS
from cotlab.metrics.consistency.cards import HIDDEN
from cotlab.store import read
from cotlab.ui import cached, components
from cotlab.ui.item import evidence
from cotlab.ui.item.chain import (
    Block,
    pick_block,
    render_entropy,
    request_text,
    run_item_chain,
    show_blocks,
    show_exchange,
    step_blocks,
    step_ranking,
)
from cotlab.ui.pickers import select_option
from cotlab.ui.text import as_code

ALL = "all"


def item_from_address(
    run_id: str | None, item_id: str | None
) -> tuple[dict[str, Any], Item] | None:
    """Return the run and the item that the address names; None where there is no such item."""
    if not run_id or not item_id:
        return None
    try:
        row = cached.run_row(run_id)
        return row, cached.load_item(row["suite"], item_id)
    except UnknownName:
        return None


def _scores(row: dict[str, Any], item: Item) -> pd.DataFrame:
    """Return the item's scores without those of the hold-out, which must not be tuned on."""
    table = cached.view(row).item_scores(item.id)
    return table[table["metric"] != HIDDEN.name]


def render_item_links(row: dict[str, Any], item: Item) -> None:
    """Show the item's run, its other pages, and buttons to the previous and the next item."""
    st.caption(as_code(f"{item.id} of {row['suite_name']}, {row['model']}, run {row['id']}"))
    if "request" in st.query_params or st.query_params.get("score", ALL) != ALL:
        st.markdown("[Go to the requests behind this number](#requests-and-replies)")
    order = cached.view(row).items
    at = order.index(item.id) if item.id in order else None
    with st.container(horizontal=True):
        st.page_link(
            page("run"), label="Run", icon=":material/monitoring:", query_params={"run": row["id"]}
        )
        evidence.render_run_links(row, item.id)
        for label, icon, step in (("Previous", "arrow_back", -1), ("Next", "arrow_forward", 1)):
            index = at + step if at is not None else -1
            st.button(
                label,
                icon=f":material/{icon}:",
                disabled=not 0 <= index < len(order),
                on_click=_go,
                args=(row["id"], order[index] if 0 <= index < len(order) else ""),
            )


def _go(run_id: str, item_id: str) -> None:
    st.query_params.from_dict({"run": run_id, "item": item_id})


def render_item_chain(row: dict[str, Any], item: Item, step: str | None) -> None:
    """Show the question, the chain coloured by the chosen score, and the answer."""
    if read.is_redacted(cached.store(), row["suite"]):
        st.warning("The texts of this suite were redacted: their SHA-256 is shown instead.")
    st.subheader("Question")
    show_blocks(
        [
            Block(0, "Question", item.question),
            Block(1, "Answer", item.answer if item.answer is not None else "n/a: no ground truth"),
        ],
        key=f"question-{item.id}",
    )
    scores = _scores(row, item)
    pairs = (
        scores[scores["metric"].isin(CCS_METRICS)][["metric", "mode"]]
        .drop_duplicates()
        .itertuples(index=False, name=None)
    )
    choices = [f"{metric} · {mode}" for metric, mode in pairs]
    st.subheader("Chain")
    if not choices:
        _plain_chain(row, item, scores)
        return
    spec = next(spec for spec in cached.run_plan(row["id"]).scorers if spec.name == "ablation")
    st.caption(
        "The model's own chain."
        if spec.params["chain"] == "own"
        else "The suite's reference chain."
    )
    metric, mode = st.selectbox("Shade by", choices, key="item-shade").split(" · ")
    rows = scores[(scores["metric"] == metric) & (scores["mode"] == mode)]
    ranked = step_ranking(row, item, rows)
    if ranked.empty:
        st.info(f"No step has a score here: {as_code(str(rows['reason'].iloc[0]))}.")
        return
    first = (
        int(step)
        if step is not None and step.isdecimal() and int(step) in set(ranked["step"])
        else None
    )
    chosen = pick_block(
        step_blocks(ranked), key=f"item-{row['id']}-{item.id}-{metric}-{mode}", selected=first
    )
    if chosen is not None:
        show_exchange(rows[rows["step"] == chosen], item, chosen)


def _plain_chain(row: dict[str, Any], item: Item, scores: pd.DataFrame) -> None:
    """Show the chain without scores, and who wrote it."""
    chain = run_item_chain(row, item, scores)
    if chain.steps:
        show_blocks(
            [Block(i, f"{i + 1}", text) for i, text in enumerate(chain.steps)],
            key=f"plain-{row['id']}-{item.id}",
        )
    elif chain.from_model:
        st.info(
            "n/a: the scores are of the model's own chain, and the log does not hold it in full."
        )
    else:
        st.info("n/a: the item has no reference chain.")
    note = (
        "The model's own chain, as it replied in this run."
        if chain.from_model
        else "The suite's reference chain."
    )
    always = sorted(set(scores["scorer"]) & set(MODEL_CHAIN_SCORERS))
    if not chain.from_model and (always or composite_components(cached.run_plan(row["id"]))):
        note += (
            " Consistency and diversity are measured on chains that the model wrote; these"
            " are among its requests."
        )
    st.caption(note)
    if chain.key is not None:
        st.button(
            "Its request and reply",
            icon=":material/fact_check:",
            on_click=_select_request,
            args=(chain.key,),
        )


def render_item_scores(row: dict[str, Any], item: Item) -> None:
    """Show every score of the item as a table, with the reason where it is undefined."""
    scores = _scores(row, item)
    render_entropy(row, item)
    st.subheader("Scores")
    frame = pd.DataFrame(
        {
            "metric": scores["metric"].map(components.metric_name),
            "step": scores["step"] + 1,
            "value": [components.number_text(v) for v in scores["value"]],
            "facet": [components.facet_text(text) for text in scores["facet"]],
            "draw": scores["sample"] + 1,
            "status": scores["status"],
            "reason": scores["reason"].fillna(""),
            "requests": scores["evidence"].map(len),
        }
    )
    ids, widget_key = evidence.score_ids(scores), f"item-scores-{row['id']}-{item.id}"

    def chose() -> None:
        ticked = st.session_state[widget_key]["selection"]["rows"]
        st.query_params.pop("request", None)
        st.query_params["score"] = ids[ticked[0]] if ticked else ALL

    st.dataframe(
        frame,
        hide_index=True,
        key=widget_key,
        height="content" if len(frame) <= 10 else 420,
        on_select=chose,
        selection_mode="single-row",
        placeholder="",
        column_config={
            "facet": st.column_config.TextColumn(width=240),
            "value": st.column_config.TextColumn(alignment="right", width=90),
            **{name: st.column_config.NumberColumn(width=60) for name in ("step", "draw")},
            "reason": st.column_config.TextColumn(width=220, help="Why there is no value."),
            "requests": st.column_config.NumberColumn(help="Number of requests behind the value."),
        },
    )
    hidden = (
        " Scores and chains of the hold-out are not shown by item."
        if "consistency" in set(scores["scorer"])
        else ""
    )
    st.caption(f"Select a score to see its requests below. Steps and draws count from 1.{hidden}")
    components.csv_button("scores", scores, "scores")


def render_item_requests(row: dict[str, Any], item: Item) -> None:
    """Show the requests and replies behind the scores.

    All of them by default; those of one score, or a single one, where the address says so.
    """
    scores = _scores(row, item)
    every = _keys(scores)
    st.subheader("Requests and replies")
    if not every:
        st.info("No request was made for this item.")
        return
    keys, which = _chosen(scores, every)
    if not keys:
        st.info(as_code(_no_request_reason(scores, which)))
        return
    part = keys[components.page_slice(len(keys), f"evidence-page-{item.id}-{which}", 10)]
    exchanges = cached.exchanges(tuple(part))
    for key in part:
        request, reply = exchanges.get(key, (None, None))
        show_blocks(_exchange(request, reply), key=f"evidence-{key[:16]}")
        if reply is not None:
            st.caption(as_code(_reply_details(reply)))
        with st.expander(f"Request {key[:12]} as stored"):
            st.code(
                json.dumps(
                    {"request": request, "reply": _without_tokens(reply)},
                    indent=1,
                    ensure_ascii=False,
                ),
                language=None,
            )
    beside = "" if which == ALL else f" behind this choice; the item has {len(every)}"
    st.caption(f"{len(part)} of {len(keys)} requests{beside}.")


def _keys(scores: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(key for evidence_keys in scores["evidence"] for key in evidence_keys))


def _chosen(scores: pd.DataFrame, every: list[str]) -> tuple[list[str], str]:
    """Return the chosen requests, and the name of the choice: all, a score, or a request's key."""
    request_key = st.query_params.get("request")
    if request_key in every:
        st.button("All requests of this item", icon=":material/list:", on_click=_all_requests)
        return [request_key], request_key
    if request_key is not None:
        st.warning(
            f"The request {as_code(request_key[:12])} does not belong to this item; all are shown."
        )
    ids = evidence.score_ids(scores)
    labels = {ALL: f"all {len(scores)} scores"}
    for name, metric, facet, step, value in zip(
        ids, scores["metric"], scores["facet"], scores["step"], scores["value"], strict=True
    ):
        at = "" if pd.isna(step) else f" · step {step + 1}"
        label = " · ".join(
            filter(None, [components.metric_name(metric), components.facet_text(facet)])
        )
        labels[name] = f"{label}{at} · {components.number_text(value)}"
    which = select_option("Requests behind", labels, "score", ALL)
    return (every if which == ALL else _keys(scores[[name == which for name in ids]])), which


def _select_request(key: str) -> None:
    st.query_params["request"] = key


def _all_requests() -> None:
    st.query_params.pop("request", None)
    st.query_params["score"] = ALL


def _no_request_reason(scores: pd.DataFrame, which: str) -> str:
    rows = scores[[name == which for name in evidence.score_ids(scores)]]
    gone = rows[rows["value"].isna()]["reason"].dropna()
    return f"No request was made for this score: {gone.iloc[0]}." if len(gone) else evidence.NONE


def _exchange(request: dict[str, Any] | None, reply: dict[str, Any] | None) -> list[Block]:
    """Return a request and its reply as rows: prompt, prefix, reasoning and reply."""
    prompt = request_text(request and {**request, "prefix": ""})
    scored = (request or {}).get("answers") or [
        text for text in ((request or {}).get("answer"),) if text
    ]
    sections = [
        ("Prompt", prompt),
        ("Assistant prefix", (request or {}).get("prefix")),
        ("Scored text", "\n".join(scored)),
        ("Reasoning", (reply or {}).get("reasoning")),
    ]
    replied = "log P (nats)" if scored and "numbers" in (reply or {}) else "Reply"
    rows = [(title, text) for title, text in sections if text] + [
        (replied, cached.reply_text(reply))
    ]
    return [Block(i, title, str(text)) for i, (title, text) in enumerate(rows)]


def _reply_details(reply: dict[str, Any]) -> str:
    """Describe a reply: the model, the parameters sent and not sent, and the tokens used."""
    sent = dict(reply.get("sent") or {})
    given, dropped = sent.pop("given", None), sent.pop("not_sent", ())
    used = {name: count for name, count in (reply.get("usage") or {}).items() if count}
    details = [
        f"answered by {reply['model']}" if reply.get("model") else "",
        (
            f"sent {', '.join(f'{k} {v}' for k, v in sorted(sent.items()) if k != 'model')}"
            if sent
            else ""
        ),
        f"not sent, because the model does not support it: {', '.join(dropped)}" if dropped else "",
        {"user": "chain in the user message", "prefix": "chain as the assistant's prefix"}.get(
            given or "", ""
        ),
        ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in used.items()),
        f"finish reason {reply['finish']}" if reply.get("finish") else "",
    ]
    return "; ".join(part for part in details if part)


def _without_tokens(reply: dict[str, Any] | None) -> dict[str, Any] | None:
    if reply is None:
        return None
    counted = {"tokens": "tokens with log-probabilities", "vectors": "vectors"}
    return {
        name: f"{len(value)} {counted[name]}" if name in counted and value else value
        for name, value in reply.items()
    }
