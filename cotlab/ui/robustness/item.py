"""The page Robustness, one item: what was perturbed, and what the model wrote after it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.core.resources import page
from cotlab.core.types import Item
from cotlab.figures.robustness import (
    MEASURES,
    format_measure,
    order_perturbations,
    perturbation_label,
)
from cotlab.figures.style import ORANGE
from cotlab.metrics.kit import model_steps
from cotlab.text.answers.extract import final_answer
from cotlab.text.prompts.chain import ask_rest
from cotlab.ui import cached, components
from cotlab.ui.item import evidence
from cotlab.ui.item.chain import Block, show_blocks
from cotlab.ui.pickers import select_option
from cotlab.ui.robustness.suite import ALL, CAUSAL, HEADLINE, NONE, robustness_scores
from cotlab.ui.text import as_code, shorten

Exchange = tuple[dict[str, Any] | None, dict[str, Any] | None]
_MARK = "\x00"
QUESTIONS = (("rename_stable", "Other names"), ("number_moves", "Another number"))


def render_steps_table(row: dict[str, Any], item: Item) -> None:
    """List every perturbed step with its divergence and whether the answer changed."""
    scores = _item_scores(row, item)
    if scores.empty:
        st.info("No step of this item was perturbed.")
        return
    unstepped = scores[scores["step"].isna()]
    if not unstepped.empty:
        st.info(f"No step was perturbed: {as_code(str(unstepped['reason'].iloc[0]))}.")
        return
    _render_item_summary(row, item)
    rows: list[tuple[int, int, str, str, str, str]] = []
    for at, group in scores.groupby(["step", "sample", "perturbation"], sort=False):
        step, sample, name = map(str, at)
        by_metric = {str(r["metric"]): r for r in group.to_dict("records")}
        gaps = [str(r["reason"]) for r in by_metric.values() if pd.isna(r["value"])]
        values = [_value(by_metric.get(metric), metric) for metric in MEASURES]
        rows.append(
            (int(step), int(sample), name, values[0], values[1], "; ".join(dict.fromkeys(gaps)))
        )
    order = order_perturbations(r[2] for r in rows)
    rows.sort(key=lambda r: (r[0], order.index(r[2]), r[1]))
    frame = pd.DataFrame(
        {
            "step": [r[0] + 1 for r in rows],
            "perturbation": [perturbation_label(r[2]) for r in rows],
            "draw": [r[1] + 1 for r in rows],
            "divergence": [r[3] for r in rows],
            "answer": [r[4] for r in rows],
            "why n/a": [r[5] for r in rows],
        }
    )
    st.dataframe(
        frame,
        hide_index=True,
        key="item-steps",
        height=min(320, 40 + 35 * len(frame)),
        column_config={
            "divergence": st.column_config.TextColumn(alignment="right"),
            "why n/a": st.column_config.TextColumn("reason", width="large"),
        },
    )


def _render_item_summary(row: dict[str, Any], item: Item) -> None:
    """Show robustness and dispersion of the item, with a link to the requests of each."""
    scores = robustness_scores(row, "robustness", "robustness_dispersion")
    scores = scores[(scores["item_id"] == item.id) & (scores["perturbation"] == ALL)].sort_values(
        ["sample", "metric"]
    )
    names = dict(HEADLINE)
    several_draws = scores["sample"].nunique() > 1
    components.show_numbers(
        [
            (
                names[str(r["metric"])]
                + (f", draw {int(r['sample']) + 1}" if several_draws else ""),
                components.number_text(r["value"]),
            )
            for r in scores.to_dict("records")
        ]
    )
    gone = scores[scores["value"].isna()]
    components.plain_list(
        [f"{names[str(r['metric'])]}: n/a, {r['reason']}." for r in gone.to_dict("records")]
    )
    ids = evidence.score_ids(scores)
    with st.container(horizontal=True):
        for name, r in zip(ids, scores.to_dict("records"), strict=True):
            if len(r["evidence"]) and r["metric"] == "robustness":
                which = f", draw {int(r['sample']) + 1}" if several_draws else ""
                _requests(row, item, name, f"Requests behind R{which} ({len(r['evidence'])})")


def _requests(row: dict[str, Any], item: Item, score: str, label: str) -> None:
    st.page_link(
        page("item"),
        label=label,
        icon=":material/fact_check:",
        query_params=evidence.requests_of(row, item.id, score),
    )


def render_perturbed_steps(row: dict[str, Any], item: Item) -> None:
    """Show, for the chosen step, each perturbation beside the original chain."""
    scores = _item_scores(row, item)
    scores = scores[scores["step"].notna()]
    if scores.empty:
        return
    keys = tuple(
        dict.fromkeys(
            key
            for score_keys in scores["evidence"]
            for key in list(score_keys)[:2] + list(score_keys)[-1:]
        )
    )
    log = cached.exchanges(keys)
    chain = perturbed_chain(item, scores, log)
    labels = {
        str(at): f"{at + 1} · {shorten(_at(chain, at), 80)}"
        for at in sorted(int(s) for s in scores["step"].unique())
    }
    at = int(select_option("Perturbed step", labels, "step"))
    draws = sorted(int(s) + 1 for s in scores["sample"].unique())
    draw = (
        1
        if len(draws) < 2
        else int(st.number_input(f"Draw of {draws[-1]}", 1, draws[-1], 1, key="draw"))
    )
    here = scores[(scores["step"] == at) & (scores["sample"] == draw - 1)]
    form = cached.run_plan(row["id"]).subject.form
    st.text(item.question)
    skipped: dict[str, list[str]] = {}
    first = True
    for name in order_perturbations(here[here["perturbation"] != ALL]["perturbation"]):
        by_metric = {
            str(r["metric"]): r for r in here[here["perturbation"] == name].to_dict("records")
        }
        before, after = _pair(by_metric, log)
        if after is None:
            skipped.setdefault(str(next(iter(by_metric.values()))["reason"]), []).append(
                perturbation_label(name)
            )
            continue
        with st.expander(
            " · ".join(_summary(name, by_metric)),
            expanded=first or name == st.query_params.get("perturbation"),
        ):
            left, right = st.columns(2)
            with left:
                show_blocks(
                    _original(chain, at, before), key=f"original-{item.id}-{at}-{draw}-{name}"
                )
            with right:
                given = perturbed_text(after[0], item.question, chain[:at], form)
                show_blocks(
                    _written(given, at, after, name), key=f"written-{item.id}-{at}-{draw}-{name}"
                )
            with st.container(horizontal=True):
                for metric, label in (
                    ("divergence", "divergence"),
                    ("perturbed_answer_change", "answer"),
                ):
                    if metric in by_metric and len(by_metric[metric]["evidence"]):
                        score = evidence.score_id(metric, by_metric[metric]["facet"], at, draw - 1)
                        _requests(
                            row,
                            item,
                            score,
                            f"Requests behind the {label} ({len(by_metric[metric]['evidence'])})",
                        )
        first = False
    if skipped:
        st.caption(
            as_code(
                "Not measured: "
                + "; ".join(f"{', '.join(names)} ({reason})" for reason, names in skipped.items())
                + "."
            )
        )
    st.caption(
        "Left: the original chain, and the model's answer when it continues from the"
        " original step. Right: the perturbed step, the model's continuation, and its"
        " answer."
    )
    st.page_link(
        page("item"),
        label="Every request and reply of this item",
        icon=":material/fact_check:",
        query_params={"run": row["id"], "item": item.id},
    )


def render_perturbed_questions(row: dict[str, Any], item: Item) -> None:
    """Show the original and the changed question, with their answers."""
    scores = robustness_scores(row, "rename_stable", "number_follows", "number_moves")
    scores = scores[scores["item_id"] == item.id]
    if scores.empty:
        return
    st.subheader("Perturbed questions")
    log = cached.exchanges(
        tuple(dict.fromkeys(key for score_keys in scores["evidence"] for key in score_keys))
    )
    first = scores[scores["sample"] == scores["sample"].min()]
    for metric, title in QUESTIONS:
        records = first[first["metric"] == metric].to_dict("records")
        keys = list(records[0]["evidence"]) if records else []
        if len(keys) < 2:
            reason = as_code(str(records[0]["reason"])) if records else "not measured"
            st.markdown(f"**{title}**: n/a, {reason}")
            continue
        values = [
            f"{dict(CAUSAL)[name].lower()}: {_value(r, name)}"
            for name in _of(metric)
            for r in first[first["metric"] == name].to_dict("records")
        ]
        st.markdown(f"**{title}** · {as_code(' · '.join(values))}")
        for column, key, label in zip(st.columns(2), keys, ("Original", "Changed"), strict=False):
            with column:
                request, reply = log.get(key, (None, None))
                prompt = (
                    request["messages"][0]["content"]
                    if request
                    else "n/a: the log holds no text of this request"
                )
                blocks = [Block(0, label, prompt), *_replied(reply, 0, 1)]
                show_blocks(blocks, key=f"{metric}-{item.id}-{label}")
                evidence.render_request_link(row, item.id, key)


def perturbed_chain(
    item: Item, scores: pd.DataFrame, log: Mapping[str, Exchange]
) -> tuple[str, ...]:
    """Return the steps that were perturbed: the item's, or those of the model's own reply."""
    if json.loads(str(scores["facet"].iloc[0])).get("chain") != "own":
        return tuple(step.text for step in item.steps if step.text.strip())
    keys = (list(score_keys)[-1] for score_keys in scores["evidence"] if len(score_keys))
    reply = next((log[key][1] for key in keys if key in log), None)
    return _steps(reply)


def perturbed_text(
    request: dict[str, Any] | None, question: str, before: Sequence[str], form: Any
) -> str | None:
    """Return the step of a request that follows ``before``; None where there is none."""
    if request is None:
        return None
    prompt = ask_rest(question, (*before, _MARK), form)
    shape = "\n".join([*(message.content for message in prompt.messages), prompt.prefix])
    head, _, tail = shape.partition(_MARK)
    full_text = "\n".join(
        [*(message["content"] for message in request["messages"]), request.get("prefix") or ""]
    )
    known = (
        full_text.startswith(head)
        and full_text.endswith(tail)
        and len(full_text) >= len(head) + len(tail)
    )
    return full_text[len(head) : len(full_text) - len(tail)] if known else None


def _item_scores(row: dict[str, Any], item: Item) -> pd.DataFrame:
    scores = robustness_scores(row, *MEASURES)
    return scores[scores["item_id"] == item.id]


def _of(metric: str) -> tuple[str, ...]:
    return ("rename_stable",) if metric == "rename_stable" else ("number_moves", "number_follows")


def _value(row: dict[Any, Any] | None, metric: str) -> str:
    if row is None:
        return ""
    if pd.isna(row["value"]):
        return "n/a"
    return (
        format_measure(metric, float(row["value"]))
        if metric in MEASURES
        else ("yes" if row["value"] else "no")
    )


def _pair(
    by_metric: Mapping[str, dict[Any, Any]], log: Mapping[str, Exchange]
) -> tuple[Exchange | None, Exchange | None]:
    """Return the exchanges from the original step and from the perturbed one.

    Of the original step itself both are the same.
    """
    moved, apart = (
        list(by_metric[m]["evidence"]) if m in by_metric else []
        for m in ("perturbed_answer_change", "divergence")
    )
    if len(moved) >= 2:
        return log.get(moved[0], (None, None)), log.get(moved[1], (None, None))
    exchange = log.get(apart[0], (None, None)) if apart else None
    return exchange, exchange


def _summary(name: str, by_metric: Mapping[str, dict[Any, Any]]) -> list[str]:
    lines = [f"**{as_code(perturbation_label(name))}**"]
    for metric, label in (("divergence", "divergence"), ("perturbed_answer_change", "answer")):
        if metric in by_metric:
            missing_text = (
                f" ({as_code(str(by_metric[metric]['reason']))})"
                if pd.isna(by_metric[metric]["value"])
                else ""
            )
            lines.append(f"{label} {_value(by_metric[metric], metric)}{missing_text}")
    return lines


def _original(chain: Sequence[str], at: int, before: Exchange | None) -> list[Block]:
    blocks = [
        Block(i, f"{i + 1}", text, hint="the original chain")
        for i, text in enumerate(chain)
        if i >= at
    ]
    if before is not None:
        blocks.append(
            Block(
                len(chain),
                "Answer",
                _answer(before[1]),
                hint="continuing from the original step",
            )
        )
    return blocks or [Block(0, "Chain", "n/a: the log does not hold this reply")]


def _written(given: str | None, at: int, after: Exchange, name: str) -> list[Block]:
    text = given.rstrip("\n") if given is not None else "n/a: the log holds no text of this request"
    first = Block(
        at,
        f"{at + 1}",
        text,
        None if name == NONE else ORANGE,
        hint="the step that the model was given",
    )
    return [first, *_replied(after[1], at + 1, at + 1)]


def _replied(reply: dict[str, Any] | None, at: int, label: int) -> list[Block]:
    """Return the continuation of a reply, its steps numbered from ``label``, and its answer."""
    step_texts = _steps(reply)
    blocks = [
        Block(at + i, f"{label + i + (label > 1 or at > 0)}", text)
        for i, text in enumerate(step_texts)
    ]
    if not step_texts:
        blocks = [Block(at, "Reply", cached.reply_text(reply))]
    return [*blocks, Block(at + len(blocks), "Answer", _answer(reply))]


def _steps(reply: dict[str, Any] | None) -> tuple[str, ...]:
    if reply is None or "text_sha256" in reply or reply.get("refused"):
        return ()
    return model_steps(reply.get("reasoning") or "") or model_steps(str(reply.get("text") or ""))


def _answer(reply: dict[str, Any] | None) -> str:
    if reply is None or "text_sha256" in reply or reply.get("refused"):
        return cached.reply_text(reply)
    answer = final_answer(str(reply.get("text") or ""))
    return answer if answer is not None else "n/a: no answer can be extracted"


def _at(chain: Sequence[str], at: int) -> str:
    return chain[at] if at < len(chain) else "n/a"
