"""The page Robustness, one item: what was perturbed, and what the model wrote after it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.figures.robustness import (
    MEASURE_NAMES,
    format_measure,
    order_perturbations,
    perturbation_label,
)
from cotlab.figures.style import ORANGE
from cotlab.metrics.causal import changed_items
from cotlab.metrics.model_steps import model_steps
from cotlab.text.answers.markers import stated_answer_text
from cotlab.text.answers.targets import answer_to
from cotlab.text.prompts.chain import continuation_prompt
from cotlab.ui import cached, components
from cotlab.ui.item import evidence
from cotlab.ui.item.chain import TextRow, render_rows
from cotlab.ui.item.step_address import STEP_PARAM, STEP_PARAMS, old_step_number
from cotlab.ui.pickers import select_option
from cotlab.ui.robustness.questions import CAUSAL_METRICS
from cotlab.ui.robustness.suite import (
    ALL_PERTURBATIONS,
    HEADLINE_METRICS,
    NO_PERTURBATION,
    load_robustness_scores,
)
from cotlab.ui.text import escape_markdown, shorten

Exchange = tuple[dict[str, Any] | None, dict[str, Any] | None]
_STEP_MARKER = "\x00"
MEASURE_LABELS = {"divergence": "divergence", "perturbed_answer_change": "answer"}
CHANGED_QUESTIONS = (
    ("Other names", ("rename_stable",)),
    ("Another number", ("number_moves", "number_follows")),
)
"""Title and metrics of each changed question; the first metric has its requests."""


def render_steps_table(row: RunView, item: Item) -> None:
    """List every perturbed step with its divergence and whether the answer changed."""
    scores = _load_item_scores(row, item)
    if scores.empty:
        st.info("No step of this item was perturbed.")
        return
    scores_without_step = scores[scores["step"].isna()]
    if not scores_without_step.empty:
        st.info(
            f"No step was perturbed: {escape_markdown(str(scores_without_step['reason'].iloc[0]))}."
        )
        return
    _render_item_summary(row, item)
    perturbations = order_perturbations(scores["perturbation"])
    scores = scores.assign(place=scores["perturbation"].map(perturbations.index))
    rows = []
    for (step, perturbation_index, sample), group in scores.groupby(["step", "place", "sample"]):
        score_by_metric = {str(score["metric"]): score for score in group.to_dict("records")}
        reasons = [
            str(score["reason"]) for score in score_by_metric.values() if pd.isna(score["value"])
        ]
        divergence, answer = (
            _value_text(score_by_metric.get(metric), metric) for metric in MEASURE_NAMES
        )
        rows.append(
            {
                "step": int(step) + 1,
                "perturbation": perturbation_label(perturbations[perturbation_index]),
                "draw": int(sample) + 1,
                "divergence": divergence,
                "answer": answer,
                "why n/a": "; ".join(dict.fromkeys(reasons)),
            }
        )
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        key="item-steps",
        height=min(320, 40 + 35 * len(rows)),
        column_config={
            **evidence.EVIDENCE_COLUMN_CONFIG,
            "divergence": evidence.RIGHT_ALIGNED_COLUMN,
        },
    )


def _render_item_summary(row: RunView, item: Item) -> None:
    """Show robustness and dispersion of the item, with a link to the requests of each."""
    scores = load_robustness_scores(row, "robustness", "robustness_dispersion")
    scores = scores[
        (scores["item_id"] == item.id) & (scores["perturbation"] == ALL_PERTURBATIONS)
    ].sort_values(["sample", "metric"])
    metric_labels = dict(HEADLINE_METRICS)
    has_several_draws = scores["sample"].nunique() > 1
    draw_texts = [
        f", draw {int(sample) + 1}" if has_several_draws else "" for sample in scores["sample"]
    ]
    labels = scores["metric"].map(metric_labels) + draw_texts
    components.show_numbers(
        list(zip(labels, scores["value"].map(components.number_text), strict=True))
    )
    undefined_scores = scores[scores["value"].isna()]
    components.show_escaped_lines(
        [
            f"{metric_labels[str(score['metric'])]}: n/a, {score['reason']}."
            for score in undefined_scores.to_dict("records")
        ]
    )
    scores = scores.assign(score_id=evidence.score_ids(scores), draw=draw_texts)
    with st.container(horizontal=True):
        for score in scores[scores["metric"] == "robustness"].itertuples():
            if len(score.evidence):
                label = f"Requests behind R{score.draw} ({len(score.evidence)})"
                evidence.render_requests_link(row, item.id, label, score=score.score_id)


def render_perturbed_steps(row: RunView, item: Item) -> None:
    """Show, for the chosen step, each perturbation beside the original chain."""
    scores = _load_item_scores(row, item)
    scores = scores[scores["step"].notna()]
    if scores.empty:
        return
    compared_keys = scores["evidence"].map(lambda keys: [*keys[:2], *keys[-1:]])
    exchange_by_key = cached.logged_exchanges(
        tuple(evidence.request_keys(scores.assign(evidence=compared_keys)))
    )
    chain = perturbed_chain(item, scores, exchange_by_key)
    steps = sorted(map(int, scores["step"].unique()))
    labels = {
        str(i + 1): f"{i + 1} · {shorten(chain[i] if i < len(chain) else 'n/a', 80)}" for i in steps
    }
    number = select_option("Perturbed step", labels, STEP_PARAM, old_step_number(), STEP_PARAMS)
    step = int(number) - 1
    draw_numbers = sorted(int(s) + 1 for s in scores["sample"].unique())
    draw = (
        1
        if len(draw_numbers) < 2
        else int(st.number_input(f"Draw of {draw_numbers[-1]}", 1, draw_numbers[-1], 1, key="draw"))
    )
    step_scores = scores[(scores["step"] == step) & (scores["sample"] == draw - 1)]
    prompt_form = row.plan.subject.form
    st.text(item.question)
    perturbations_by_reason: dict[str, list[str]] = {}
    is_first = True
    for perturbation in order_perturbations(
        step_scores[step_scores["perturbation"] != ALL_PERTURBATIONS]["perturbation"]
    ):
        score_by_metric = {
            str(score_row["metric"]): score_row
            for score_row in step_scores[step_scores["perturbation"] == perturbation].to_dict(
                "records"
            )
        }
        original_exchange, perturbed_exchange = _find_exchanges(score_by_metric, exchange_by_key)
        if perturbed_exchange is None:
            perturbations_by_reason.setdefault(
                str(next(iter(score_by_metric.values()))["reason"]), []
            ).append(perturbation_label(perturbation))
            continue
        with st.expander(
            " · ".join(_perturbation_texts(perturbation, score_by_metric)),
            expanded=is_first or perturbation == st.query_params.get("perturbation"),
        ):
            left_column, right_column = st.columns(2)
            with left_column:
                render_rows(
                    _original_rows(item, chain, step, original_exchange),
                    key=f"original-{item.id}-{step}-{draw}-{perturbation}",
                )
            with right_column:
                perturbed_step = perturbed_text(
                    perturbed_exchange[0], item.question, chain[:step], prompt_form
                )
                render_rows(
                    _perturbed_rows(item, perturbed_step, step, perturbed_exchange, perturbation),
                    key=f"written-{item.id}-{step}-{draw}-{perturbation}",
                )
            with st.container(horizontal=True):
                for metric, label in MEASURE_LABELS.items():
                    if metric in score_by_metric and len(score_by_metric[metric]["evidence"]):
                        score_id = evidence.score_id(
                            metric, score_by_metric[metric]["facet"], step, draw - 1
                        )
                        n_requests = len(score_by_metric[metric]["evidence"])
                        link_label = f"Requests behind the {label} ({n_requests})"
                        evidence.render_requests_link(row, item.id, link_label, score=score_id)
        is_first = False
    if perturbations_by_reason:
        reasons = [
            f"{', '.join(names)} ({reason})" for reason, names in perturbations_by_reason.items()
        ]
        st.caption(escape_markdown(f"Not measured: {'; '.join(reasons)}."))
    st.caption(
        "Left: the original chain, and the model's answer when it continues from the"
        " original step. Right: the perturbed step, the model's continuation, and its"
        " answer."
    )
    evidence.render_requests_link(row, item.id, "Every request and reply of this item")


def render_perturbed_questions(row: RunView, item: Item) -> None:
    """Show the original and the changed question, with their answers."""
    scores = load_robustness_scores(row, "rename_stable", "number_follows", "number_moves")
    scores = scores[scores["item_id"] == item.id]
    if scores.empty:
        return
    st.header("Perturbed questions")
    exchange_by_key = cached.logged_exchanges(tuple(evidence.request_keys(scores)))
    items = (item, *changed_items(item, row.plan.seed).items.values())
    first_draw_scores = scores[scores["sample"] == scores["sample"].min()]
    for title, metrics in CHANGED_QUESTIONS:
        records = first_draw_scores[first_draw_scores["metric"] == metrics[0]].to_dict("records")
        keys = list(records[0]["evidence"]) if records else []
        if len(keys) < 2:
            reason = escape_markdown(str(records[0]["reason"])) if records else "not measured"
            st.markdown(f"**{title}**: n/a, {reason}")
            continue
        value_texts = [
            f"{dict(CAUSAL_METRICS)[name].lower()}: {_value_text(score, name)}"
            for name in metrics
            for score in first_draw_scores[first_draw_scores["metric"] == name].to_dict("records")
        ]
        st.markdown(f"**{title}** · {escape_markdown(' · '.join(value_texts))}")
        for column, key, label in zip(st.columns(2), keys, ("Original", "Changed"), strict=False):
            with column:
                request, reply = exchange_by_key.get(key, (None, None))
                prompt = (
                    request["messages"][0]["content"]
                    if request
                    else "n/a: the log holds no text of this request"
                )
                asked_item = next((i for i in items if i.question in prompt), item)
                blocks = [TextRow(0, label, prompt), *_reply_rows(asked_item, reply, 0, 1)]
                render_rows(blocks, key=f"{metrics[0]}-{item.id}-{label}")
                evidence.render_requests_link(row, item.id, "Request and reply", request=key)


def perturbed_chain(
    item: Item, scores: pd.DataFrame, exchange_by_key: Mapping[str, Exchange]
) -> tuple[str, ...]:
    """Return the steps that were perturbed: the item's, or those of the model's own reply."""
    if json.loads(str(scores["facet"].iloc[0])).get("chain") != "own":
        return tuple(step.text for step in item.steps if step.text.strip())
    keys = (list(score_keys)[-1] for score_keys in scores["evidence"] if len(score_keys))
    reply = next((exchange_by_key[key][1] for key in keys if key in exchange_by_key), None)
    return _reply_steps(reply)


def perturbed_text(
    request: dict[str, Any] | None, question: str, previous_steps: Sequence[str], prompt_form: Any
) -> str | None:
    """Return the step of a request that follows ``previous_steps``; None where there is none."""
    if request is None:
        return None
    prompt = continuation_prompt(question, (*previous_steps, _STEP_MARKER), prompt_form)
    template = "\n".join([*(message.content for message in prompt.messages), prompt.prefix])
    head, _, tail = template.partition(_STEP_MARKER)
    contents = [message["content"] for message in request["messages"]]
    full_text = "\n".join([*contents, request.get("prefix") or ""])
    matches_template = full_text.startswith(head) and full_text[len(head) :].endswith(tail)
    return full_text[len(head) : len(full_text) - len(tail)] if matches_template else None


def _load_item_scores(row: RunView, item: Item) -> pd.DataFrame:
    scores = load_robustness_scores(row, *MEASURE_NAMES)
    return scores[scores["item_id"] == item.id]


def _value_text(row: dict[Any, Any] | None, metric: str) -> str:
    if row is None:
        return ""
    if pd.isna(row["value"]):
        return "n/a"
    if metric in MEASURE_NAMES:
        return format_measure(metric, float(row["value"]))
    return "yes" if row["value"] else "no"


def _find_exchanges(
    score_by_metric: Mapping[str, dict[Any, Any]], exchange_by_key: Mapping[str, Exchange]
) -> tuple[Exchange | None, Exchange | None]:
    """Return the exchanges from the original step and from the perturbed one.

    Of the original step itself both are the same.
    """
    keys = list(score_by_metric.get("perturbed_answer_change", {}).get("evidence", ()))[:2]
    if len(keys) < 2:
        keys = list(score_by_metric.get("divergence", {}).get("evidence", ()))[:1] * 2
    if not keys:
        return None, None
    return exchange_by_key.get(keys[0], (None, None)), exchange_by_key.get(keys[1], (None, None))


def _perturbation_texts(
    perturbation: str, score_by_metric: Mapping[str, dict[Any, Any]]
) -> list[str]:
    texts = [f"**{escape_markdown(perturbation_label(perturbation))}**"]
    for metric, label in MEASURE_LABELS.items():
        if metric in score_by_metric:
            score = score_by_metric[metric]
            reason = (
                f" ({escape_markdown(str(score['reason']))})" if pd.isna(score["value"]) else ""
            )
            texts.append(f"{label} {_value_text(score, metric)}{reason}")
    return texts


def _original_rows(
    item: Item, chain: Sequence[str], step: int, exchange: Exchange | None
) -> list[TextRow]:
    rows = [
        TextRow(i, f"{i + 1}", text, hint="the original chain")
        for i, text in enumerate(chain[step:], start=step)
    ]
    if exchange is not None:
        hint = "continuing from the original step"
        rows.append(TextRow(len(chain), "Answer", _reply_answer_text(item, exchange[1]), hint=hint))
    return rows or [TextRow(0, "Chain", "n/a: the log does not hold this reply")]


def _perturbed_rows(
    item: Item, step_text: str | None, step: int, exchange: Exchange, perturbation: str
) -> list[TextRow]:
    text = (
        step_text.rstrip("\n")
        if step_text is not None
        else "n/a: the log holds no text of this request"
    )
    shade = None if perturbation == NO_PERTURBATION else ORANGE
    step_row = TextRow(step, f"{step + 1}", text, shade, hint="the step that the model was given")
    return [step_row, *_reply_rows(item, exchange[1], step + 1, step + 1)]


def _reply_rows(
    item: Item, reply: dict[str, Any] | None, first_index: int, first_label: int
) -> list[TextRow]:
    """Return a reply's continuation, steps numbered from ``first_label``, and its answer."""
    step_texts = _reply_steps(reply)
    rows = [
        TextRow(first_index + i, f"{first_label + i + (first_label > 1 or first_index > 0)}", text)
        for i, text in enumerate(step_texts)
    ]
    if not step_texts:
        rows = [TextRow(first_index, "Reply", cached.reply_text(reply))]
    return [*rows, TextRow(first_index + len(rows), "Answer", _reply_answer_text(item, reply))]


def _reply_steps(reply: dict[str, Any] | None) -> tuple[str, ...]:
    if reply is None or "text_sha256" in reply or reply.get("refused"):
        return ()
    return model_steps(reply.get("reasoning") or "") or model_steps(str(reply.get("text") or ""))


def _reply_answer_text(item: Item, reply: dict[str, Any] | None) -> str:
    if reply is None or "text_sha256" in reply or reply.get("refused"):
        return cached.reply_text(reply)
    text = str(reply.get("text") or "")
    answer = answer_to(item, stated_answer_text(text) if reply.get("finish") == "length" else text)
    return answer if answer is not None else "n/a: the answer is unparsed"
