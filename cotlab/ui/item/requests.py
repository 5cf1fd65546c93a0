"""The requests and replies behind an item's scores: of the chosen step, of one score, or all."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.readable import readable_value
from cotlab.analysis.tables.score_groups import item_score_groups, missing_score_reasons
from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.ui import cached, components
from cotlab.ui.address import write_address
from cotlab.ui.item import evidence
from cotlab.ui.item.chain import TextRow, render_rows, request_text
from cotlab.ui.item.reader_data import ChainReading
from cotlab.ui.linked import show_linked_frame
from cotlab.ui.metric_names import metric_name
from cotlab.ui.pickers import select_option
from cotlab.ui.places import run_link
from cotlab.ui.text import escape_markdown

ALL_SCORES = "all"
REQUESTS_KEY = "item-requests"
"""Key of the container of the requests."""


def has_selected_requests() -> bool:
    """Return whether the address names one request, or the requests of one score."""
    return "request" in st.query_params or st.query_params.get("score", ALL_SCORES) != ALL_SCORES


def render_item_requests(
    run: RunView, item: Item, scores: pd.DataFrame, reading: ChainReading | None = None
) -> None:
    """Show the requests and replies behind the scores, folded.

    Those of the step that is read by default, or all of them; those of one score, or a single one,
    where the address says so.
    """
    all_keys = evidence.request_keys(scores)
    is_selected = "request" in st.query_params or "score" in st.query_params
    label = f"Requests and replies: {len(all_keys)}"
    if reading is not None and not is_selected:
        n_changed = reading.n_changed_requests
        n_other = len(reading.keys) - n_changed
        label = (
            f"Requests behind this step: {len(reading.keys)}, {n_changed} with this step changed,"
            f" {n_other} with the chain as it is"
        )
    with (
        st.container(key=REQUESTS_KEY),
        st.expander(label, expanded=is_selected),
    ):
        st.header("Requests and replies", anchor="requests-and-replies")
        if not all_keys:
            st.info("No request was made for this item.")
            return
        if reading is not None and not is_selected:
            keys, selection = list(reading.keys), f"{reading.mode}-{reading.step}"
            if not keys:
                reason = reading.effect.reason or "no reason is stored"
                st.info(escape_markdown(f"No request was made for this step: {reason}."))
            _render_selection_button("All requests of this item")
        else:
            if reading is not None:
                _render_step_button()
            keys, selection = _chosen_requests(scores, all_keys)
            if not keys:
                st.info(escape_markdown(_no_request_reason(scores, selection)))
                return
        _render_exchanges(item, keys, selection, len(all_keys))


def _render_exchanges(item: Item, keys: list[str], selection: str, n_item_requests: int) -> None:
    """Show requests with their replies, a page at a time."""
    page_keys = keys[components.page_slice(len(keys), f"evidence-page-{item.id}-{selection}", 10)]
    exchanges = cached.logged_exchanges(tuple(page_keys))
    for key in page_keys:
        request, reply = exchanges.get(key, (None, None))
        render_rows(_exchange_rows(request, reply), key=f"evidence-{key[:16]}")
        if reply is not None:
            st.caption(escape_markdown(_reply_details_text(reply)))
        with st.expander(f"Request {key[:12]} as stored"):
            stored_exchange = {"request": request, "reply": _summarise_reply(reply)}
            st.code(
                json.dumps(stored_exchange, indent=1, ensure_ascii=False),
                language=None,
                wrap_lines=True,
            )
    total_text = (
        "" if selection == ALL_SCORES else f" behind this choice; the item has {n_item_requests}"
    )
    st.caption(f"{len(page_keys)} of {len(keys)} requests{total_text}.")


def _render_selection_button(label: str) -> None:
    st.button(label, icon=":material/list:", on_click=select_score, args=(ALL_SCORES,))


def _render_step_button() -> None:
    st.button("Those of the chosen step", icon=":material/stairs:", on_click=_select_step_requests)


def _select_step_requests() -> None:
    write_address({"request": None, "score": None})


def _chosen_requests(scores: pd.DataFrame, all_keys: list[str]) -> tuple[list[str], str]:
    """Return the chosen requests, and the name of the choice: all, a score, or a request's key."""
    request_key = st.query_params.get("request")
    if request_key in all_keys:
        _render_selection_button("All requests of this item")
        return [request_key], request_key
    if request_key is not None:
        st.warning(
            f"The request {escape_markdown(request_key[:12])} does not belong to this item; all are"
            " shown."
        )
    score_ids = evidence.score_ids(scores)
    labels = {ALL_SCORES: f"all {len(scores)} scores"}
    groups = {
        group_id: f"{metric_name(group.metric)} · {components.facet_text(group.facet)} · all"
        for group in item_score_groups(scores)
        if (group_id := evidence.score_id(group.metric, group.facet)) not in score_ids
    }
    labels |= groups
    rows = zip(score_ids, scores.itertuples(), value_texts(scores), strict=True)
    for score_id, score, value_text in rows:
        step_text = "" if pd.isna(score.step) else f"step {score.step + 1}"
        label_segments = [metric_name(score.metric), components.facet_text(score.facet), step_text]
        label_segments.append(value_text)
        labels[score_id] = " · ".join(word for word in label_segments if word)
    selection = select_option("Requests behind", labels, "score", ALL_SCORES)
    if selection == ALL_SCORES:
        return all_keys, selection
    group_ids = [
        evidence.score_id(*values) for values in zip(scores["metric"], scores["facet"], strict=True)
    ]
    ids = group_ids if selection in groups else score_ids
    return evidence.request_keys(scores[[name == selection for name in ids]]), selection


def select_request(key: str) -> None:
    """Write a request into the address."""
    write_address({"request": key})


def select_score(score_id: str) -> None:
    """Write a score into the address, in place of a request."""
    write_address({"request": None, "score": score_id})


def _no_request_reason(scores: pd.DataFrame, score_id: str) -> str:
    rows = scores[[name == score_id for name in evidence.score_ids(scores)]]
    reasons = rows[rows["value"].isna()]["reason"].dropna()
    return (
        f"No request was made for this score: {reasons.iloc[0]}."
        if len(reasons)
        else evidence.NO_REQUEST_TEXT
    )


def _exchange_rows(request: dict[str, Any] | None, reply: dict[str, Any] | None) -> list[TextRow]:
    """Return a request and its reply as rows: prompt, prefix, reasoning and reply."""
    request_fields, reply_fields = request or {}, reply or {}
    scored_text = "\n".join(request_fields.get("answers") or [request_fields.get("answer") or ""])
    has_log_p = scored_text and "numbers" in reply_fields
    sections = [
        ("Prompt", request_text(request and {**request, "prefix": ""})),
        ("Assistant prefix", request_fields.get("prefix")),
        ("Scored text", scored_text),
        ("Reasoning", reply_fields.get("reasoning")),
        ("log P (nats)" if has_log_p else "Reply", cached.reply_text(reply)),
    ]
    filled_sections = [(title, str(text)) for title, text in sections if text]
    return [TextRow(i, title, text) for i, (title, text) in enumerate(filled_sections)]


def _reply_details_text(reply: dict[str, Any]) -> str:
    """Describe a reply: the model, the parameters sent and not sent, and the tokens used."""
    sent_parameters = dict(reply.get("sent") or {})
    chain_role = sent_parameters.pop("given", None)
    dropped_parameters = sent_parameters.pop("not_sent", ())
    token_counts = {name: count for name, count in (reply.get("usage") or {}).items() if count}
    parameters_text = ", ".join(
        f"{parameter} {value}"
        for parameter, value in sorted(sent_parameters.items())
        if parameter != "model"
    )
    details = [
        f"answered by {reply['model']}" if reply.get("model") else "",
        f"sent {parameters_text}" if sent_parameters else "",
        (
            f"not sent, because the model does not support it: {', '.join(dropped_parameters)}"
            if dropped_parameters
            else ""
        ),
        {"user": "chain in the user message", "prefix": "chain as the assistant's prefix"}.get(
            chain_role or "", ""
        ),
        ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in token_counts.items()),
        f"finish reason {reply['finish']}" if reply.get("finish") else "",
    ]
    return "; ".join(part for part in details if part)


def _summarise_reply(reply: dict[str, Any] | None) -> dict[str, Any] | None:
    if reply is None:
        return None
    unit_by_field = {"tokens": "tokens with log-probabilities", "vectors": "vectors"}
    return {
        name: f"{len(value)} {unit_by_field[name]}" if name in unit_by_field and value else value
        for name, value in reply.items()
    }


def value_texts(scores: pd.DataFrame) -> list[str]:
    """Return each score's value as text; a step counts from 1."""
    return [
        components.number_text(readable_value(metric, value))
        for metric, value in zip(scores["metric"], scores["value"], strict=True)
    ]


def render_item_scores(run: RunView, item: Item, scores: pd.DataFrame) -> None:
    """Show every score of the item, folded; those without a value by their reasons."""
    n_missing = int(scores["value"].isna().sum())
    missing_text = f"{n_missing} without a value" if n_missing else "none without a value"
    n_metrics = scores["metric"].nunique()
    label = f"All scores of this item: {n_metrics} measure{'s' * (n_metrics != 1)},"
    with st.expander(f"{label} {len(scores)} scores, {missing_text}"):
        _render_score_groups(run, item, scores)
        if "consistency" in set(scores["scorer"]):
            st.caption("Scores and chains of the hold-out are not shown by item.")
        components.csv_button("scores", scores, "scores")


def _render_score_groups(run: RunView, item: Item, scores: pd.DataFrame) -> None:
    """Show one row a measure with a link to its requests, then why others have no value."""
    groups = [group for group in item_score_groups(scores) if group.n]
    if groups:
        frame = pd.DataFrame(
            {
                "Measure": [metric_name(group.metric) for group in groups],
                "Of": [components.facet_text(group.facet) for group in groups],
                "Mean": [
                    components.number_text(readable_value(group.metric, group.mean))
                    for group in groups
                ],
                "Scores": [str(group.n) for group in groups],
                "Requests": [str(group.n_requests or "none") for group in groups],
            }
        )
        links = [
            run_link(
                run.id, "items", item=item.id, score=evidence.score_id(group.metric, group.facet)
            )
            if group.n_requests
            else None
            for group in groups
        ]
        show_linked_frame(
            "Scores by measure",
            frame,
            {"Requests": links},
            key=f"score-groups-{run.id}-{item.id}",
            number_names=frame.columns[2:],
        )
    missing_texts = [
        f"{n} without a value ({', '.join(map(metric_name, metrics))}): {reason}"
        for reason, n, metrics in missing_score_reasons(scores)
    ]
    if missing_texts:
        st.caption(escape_markdown(f"{'; '.join(missing_texts)}."))
