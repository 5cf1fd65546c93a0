"""The parts of the page Robustness that are about one item: what was changed, and what was written after it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.core.types import Item
from cotlab.figures.robustness import MEASURES, in_order, words, yes_no
from cotlab.figures.style import ORANGE
from cotlab.metrics.ablation.scorer import own_steps
from cotlab.text.answers.extract import final_answer
from cotlab.text.prompts.chain import ask_rest
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.item import evidence
from cotlab.ui.item.chain_view import Block, show_blocks
from cotlab.ui.links import page
from cotlab.ui.robustness.suite import ALL, CAUSAL, HEADLINE, NONE, scores_of
from cotlab.ui.text import as_code, shorten

Exchange = tuple[dict[str, Any] | None, dict[str, Any] | None]
_MARK = "\x00"
QUESTIONS = (("rename_stable", "Other names"), ("number_moves", "Another number"))


def table(row: dict[str, Any], item: Item) -> None:
    """Every perturbed step of the item with its divergence and whether the answer moved."""
    own = _own(row, item)
    if own.empty:
        st.info("No step of this item was perturbed.")
        return
    unstepped = own[own["step"].isna()]
    if not unstepped.empty:
        st.info(f"No step was perturbed: {as_code(str(unstepped['reason'].iloc[0]))}.")
        return
    _whole(row, item)
    rows: list[tuple[int, int, str, str, str, str]] = []
    for at, group in own.groupby(["step", "sample", "perturbation"], sort=False):
        step, sample, name = map(str, at)
        told = {str(r["metric"]): r for r in group.to_dict("records")}
        gaps = [str(r["reason"]) for r in told.values() if pd.isna(r["value"])]
        values = [_value(told.get(metric), metric) for metric in MEASURES]
        rows.append((int(step), int(sample), name, values[0], values[1], "; ".join(dict.fromkeys(gaps))))
    order = in_order(r[2] for r in rows)
    rows.sort(key=lambda r: (r[0], order.index(r[2]), r[1]))
    frame = pd.DataFrame(
        {
            "step": [r[0] + 1 for r in rows], "perturbation": [words(r[2]) for r in rows], "draw": [r[1] + 1 for r in rows],
            "divergence": [r[3] for r in rows], "answer": [r[4] for r in rows], "why n/a": [r[5] for r in rows],
        }
    )  # fmt: skip
    st.dataframe(
        frame, hide_index=True, key="item-steps", height=min(320, 40 + 35 * len(frame)),
        column_config={
            "divergence": st.column_config.TextColumn(alignment="right"),
            "why n/a": st.column_config.TextColumn(width="large"),
        },
    )  # fmt: skip


def _whole(row: dict[str, Any], item: Item) -> None:
    """R and dispersion of the whole item, with a link to the requests of each."""
    own = scores_of(row, "robustness", "robustness_dispersion")
    own = own[(own["item_id"] == item.id) & (own["perturbation"] == ALL)].sort_values(["sample", "metric"])
    names = dict(HEADLINE)
    drawn = own["sample"].nunique() > 1
    parts.show_numbers(
        [(names[str(r["metric"])] + (f", draw {int(r['sample']) + 1}" if drawn else ""), parts.number_text(r["value"]))
         for r in own.to_dict("records")]
    )  # fmt: skip
    gone = own[own["value"].isna()]
    parts.plain_list([f"{names[str(r['metric'])]}: n/a, {r['reason']}." for r in gone.to_dict("records")])
    ids = evidence.ids_of(own)
    with st.container(horizontal=True):
        for name, r in zip(ids, own.to_dict("records"), strict=True):
            if len(r["evidence"]) and r["metric"] == "robustness":
                which = f", draw {int(r['sample']) + 1}" if drawn else ""
                _requests(row, item, name, f"Requests behind R{which} ({len(r['evidence'])})")


def _requests(row: dict[str, Any], item: Item, score: str, label: str) -> None:
    st.page_link(
        page("item"), label=label, icon=":material/fact_check:", query_params=evidence.requests_of(row, item.id, score)
    )  # fmt: skip


def steps(row: dict[str, Any], item: Item) -> None:
    """For the chosen step, each perturbation: the chain as it was beside what the model was given and wrote."""
    own = _own(row, item)
    own = own[own["step"].notna()]
    if own.empty:
        return
    keys = tuple(dict.fromkeys(key for found in own["evidence"] for key in list(found)[:2] + list(found)[-1:]))
    log = data.exchanges(keys)
    chain = chain_of(item, own, log)
    labels = {str(at): f"{at + 1} · {shorten(_at(chain, at), 80)}" for at in sorted(int(s) for s in own["step"].unique())}
    at = int(parts.pick("Perturbed step", labels, "step"))
    draws = sorted(int(s) + 1 for s in own["sample"].unique())
    draw = 1 if len(draws) < 2 else int(st.number_input(f"Draw of {draws[-1]}", 1, draws[-1], 1, key="draw"))
    here = own[(own["step"] == at) & (own["sample"] == draw - 1)]
    form = data.plan_of(row["id"]).subject.form
    st.text(item.question)
    skipped: dict[str, list[str]] = {}
    first = True
    for name in in_order(here[here["perturbation"] != ALL]["perturbation"]):
        told = {str(r["metric"]): r for r in here[here["perturbation"] == name].to_dict("records")}
        before, after = _pair(told, log)
        if after is None:
            skipped.setdefault(str(next(iter(told.values()))["reason"]), []).append(words(name))
            continue
        with st.expander(" · ".join(_summary(name, told)), expanded=first or name == st.query_params.get("perturbation")):
            left, right = st.columns(2)
            with left:
                show_blocks(_original(chain, at, before), key=f"original-{item.id}-{at}-{draw}-{name}")
            with right:
                given = perturbed_text(after[0], item.question, chain[:at], form)
                show_blocks(_written(given, at, after, name), key=f"written-{item.id}-{at}-{draw}-{name}")
            with st.container(horizontal=True):
                for metric, label in (("divergence", "divergence"), ("perturbed_answer_change", "answer")):
                    if metric in told and len(told[metric]["evidence"]):
                        score = evidence.score_id(metric, told[metric]["facet"], at, draw - 1)
                        _requests(row, item, score, f"Requests behind the {label} ({len(told[metric]['evidence'])})")
        first = False
    if skipped:
        st.caption(as_code("Not asked: " + "; ".join(f"{', '.join(names)} ({why})" for why, names in skipped.items()) + "."))
    st.caption(
        "Left: the chain as it was, and the answer that the model gives when it goes on from the step as it is. Right: the "
        "perturbed step, what the model wrote after it, and its answer."
    )
    st.page_link(
        page("item"), label="Every request and reply of this item", icon=":material/fact_check:",
        query_params={"run": row["id"], "item": item.id},
    )  # fmt: skip


def questions(row: dict[str, Any], item: Item) -> None:
    """The question as it is and changed, with the answers."""
    own = scores_of(row, "rename_stable", "number_follows", "number_moves")
    own = own[own["item_id"] == item.id]
    if own.empty:
        return
    st.subheader("Perturbed questions")
    log = data.exchanges(tuple(dict.fromkeys(key for found in own["evidence"] for key in found)))
    first = own[own["sample"] == own["sample"].min()]
    for metric, title in QUESTIONS:
        told = first[first["metric"] == metric].to_dict("records")
        keys = list(told[0]["evidence"]) if told else []
        if len(keys) < 2:
            why = as_code(str(told[0]["reason"])) if told else "not asked"
            st.markdown(f"**{title}**: n/a, {why}")
            continue
        shown = [f"{dict(CAUSAL)[name].lower()}: {_value(r, name)}" for name in _of(metric)
                 for r in first[first["metric"] == name].to_dict("records")]  # fmt: skip
        st.markdown(f"**{title}** · {as_code(' · '.join(shown))}")
        for place, key, label in zip(st.columns(2), keys, ("As it is", "Changed"), strict=False):
            with place:
                request, reply = log.get(key, (None, None))
                asked = request["messages"][0]["content"] if request else "n/a: the log holds no text of this request"
                blocks = [Block(0, label, asked), *_replied(reply, 0, 1)]
                show_blocks(blocks, key=f"{metric}-{item.id}-{label}")
                evidence.request_link(row, item.id, key)


def chain_of(item: Item, own: pd.DataFrame, log: Mapping[str, Exchange]) -> tuple[str, ...]:
    """The steps that were perturbed: the item's, or those of the model's own reply."""
    if json.loads(str(own["facet"].iloc[0])).get("chain") != "own":
        return tuple(step.text for step in item.steps if step.text.strip())
    keys = (list(found)[-1] for found in own["evidence"] if len(found))
    reply = next((log[key][1] for key in keys if key in log), None)
    return _steps(reply)


def perturbed_text(request: dict[str, Any] | None, question: str, before: Sequence[str], form: Any) -> str | None:
    """The step that a request gave after ``before``: what stands where the prompt puts it; None where it holds no such text."""
    if request is None:
        return None
    prompt = ask_rest(question, (*before, _MARK), form)
    shape = "\n".join([*(message.content for message in prompt.messages), prompt.prefix])
    head, _, tail = shape.partition(_MARK)
    asked = "\n".join([*(message["content"] for message in request["messages"]), request.get("prefix") or ""])
    known = asked.startswith(head) and asked.endswith(tail) and len(asked) >= len(head) + len(tail)
    return asked[len(head) : len(asked) - len(tail)] if known else None


def _own(row: dict[str, Any], item: Item) -> pd.DataFrame:
    own = scores_of(row, *MEASURES)
    return own[own["item_id"] == item.id]


def _of(metric: str) -> tuple[str, ...]:
    return ("rename_stable",) if metric == "rename_stable" else ("number_moves", "number_follows")


def _value(told: dict[Any, Any] | None, metric: str) -> str:
    if told is None:
        return ""
    if pd.isna(told["value"]):
        return "n/a"
    return yes_no(metric, float(told["value"])) if metric in MEASURES else ("yes" if told["value"] else "no")


def _pair(told: Mapping[str, dict[Any, Any]], log: Mapping[str, Exchange]) -> tuple[Exchange | None, Exchange | None]:
    """The exchanges from the step as it is and from the perturbed one; of the step as it is both are the same."""
    moved, apart = (list(told[m]["evidence"]) if m in told else [] for m in ("perturbed_answer_change", "divergence"))
    if len(moved) >= 2:
        return log.get(moved[0], (None, None)), log.get(moved[1], (None, None))
    found = log.get(apart[0], (None, None)) if apart else None
    return found, found


def _summary(name: str, told: Mapping[str, dict[Any, Any]]) -> list[str]:
    lines = [f"**{as_code(words(name))}**"]
    for metric, label in (("divergence", "divergence"), ("perturbed_answer_change", "answer")):
        if metric in told:
            gap = f" ({as_code(str(told[metric]['reason']))})" if pd.isna(told[metric]["value"]) else ""
            lines.append(f"{label} {_value(told[metric], metric)}{gap}")
    return lines


def _original(chain: Sequence[str], at: int, before: Exchange | None) -> list[Block]:
    blocks = [Block(i, f"{i + 1}", text, hint="the chain as it was") for i, text in enumerate(chain) if i >= at]
    if before is not None:
        blocks.append(Block(len(chain), "Answer", _answer(before[1]), hint="after going on from the step as it is"))
    return blocks or [Block(0, "Chain", "n/a: the log does not hold this reply")]


def _written(given: str | None, at: int, after: Exchange, name: str) -> list[Block]:
    text = given.rstrip("\n") if given is not None else "n/a: the log holds no text of this request"
    first = Block(at, f"{at + 1}", text, None if name == NONE else ORANGE, hint="the step that the model was given")
    return [first, *_replied(after[1], at + 1, at + 1)]


def _replied(reply: dict[str, Any] | None, at: int, label: int) -> list[Block]:
    """What a reply goes on with, numbered from ``label``, and its answer."""
    found = _steps(reply)
    blocks = [Block(at + i, f"{label + i + (label > 1 or at > 0)}", text) for i, text in enumerate(found)]
    if not found:
        blocks = [Block(at, "Reply", data.said(reply))]
    return [*blocks, Block(at + len(blocks), "Answer", _answer(reply))]


def _steps(reply: dict[str, Any] | None) -> tuple[str, ...]:
    if reply is None or "text_sha256" in reply or reply.get("refused"):
        return ()
    return own_steps(reply.get("reasoning") or "") or own_steps(str(reply.get("text") or ""))


def _answer(reply: dict[str, Any] | None) -> str:
    if reply is None or "text_sha256" in reply or reply.get("refused"):
        return data.said(reply)
    found = final_answer(str(reply.get("text") or ""))
    return found if found is not None else "n/a: no answer can be extracted"


def _at(chain: Sequence[str], at: int) -> str:
    return chain[at] if at < len(chain) else "n/a"
