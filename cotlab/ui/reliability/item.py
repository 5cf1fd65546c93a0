"""The page Reliability, one item: its components, diagnoses, red flags and verified links."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import reliability as tables
from cotlab.analysis.tables.chains import link_scores, link_table
from cotlab.core.resources import page
from cotlab.core.types import Item
from cotlab.figures.reliability import COMPONENT_ORDER
from cotlab.figures.style import ORANGE, VERMILLION, format_number
from cotlab.metrics.composite.scorer import RULES
from cotlab.ui import cached, components
from cotlab.ui.item import evidence
from cotlab.ui.item.chain import Block, Piece, run_item_chain, show_blocks
from cotlab.ui.text import as_code, shorten

STRONG = 0.93
"""Penalties with at most this factor are marked in the stronger colour."""


class Hit(NamedTuple):
    """One penalty of a red flag, located in a step's text."""

    lo: int
    """First character of the span."""
    hi: int
    """Character after the span."""
    factor: float
    """Factor of the penalty, below 1."""
    hint: str
    """Rule, factor and reason, as the tooltip shows them."""


def render_item_components(row: dict[str, Any], item: Item) -> None:
    """Show the item's components beside the suite's means, and why some are undefined."""
    rows = tables.component_scores(
        cached.selected_scores(row["id"], int(row["revision"]), tables.METRICS)
    )
    scores = rows[rows["item_id"] == item.id]
    if scores.empty:
        st.info("This item has not been scored for reliability yet.")
        return
    table = tables.item_component_rows(rows, item.id)
    components.show_figure(
        "item_parts",
        table,
        key=f"bars-{item.id}",
        evidence=(page("item"), {"run": row["id"], "item": item.id}),
    )
    _behind(row, item, scores)
    weight = tables.component_scores(_item_scores(row, item), ("weight",))["value"]
    if len(weight) and weight.iloc[0] < 1:
        gone = ", ".join(scores[scores["value"].isna()]["part"])
        st.caption(
            f"r_raw is over {100 * weight.iloc[0]:.0f} % of the weight: without {gone}, the weights"
            " are renormalised."
        )
    features = _item_scores(row, item)
    features = features[features["metric"] == "feature"]
    if features.empty:
        return
    with st.expander("The feature vector of this item"):
        names = [json.loads(text).get("feature", "") for text in features["facet"]]
        frame = pd.DataFrame(
            {
                "feature": names,
                "value": [components.number_text(v) for v in features["value"]],
                "status": features["status"].tolist(),
                "reason": features["reason"].fillna("").tolist(),
                "requests": [len(keys) for keys in features["evidence"]],
                "behind it": _addresses(row, item, features),
            }
        )
        order = [*COMPONENT_ORDER, *(name for name in names if name not in COMPONENT_ORDER)]
        frame = frame.sort_values("feature", key=lambda column: column.map(order.index))
        config = {**_RIGHT, "behind it": evidence.LINK}
        st.dataframe(
            frame,
            hide_index=True,
            key=f"features-{item.id}",
            placeholder=evidence.NO_LINK,
            column_config=config,
        )


def _behind(row: dict[str, Any], item: Item, scores: pd.DataFrame) -> None:
    """Show each component with a link to its requests."""
    frame = pd.DataFrame(
        {
            "part": scores["part"],
            "value": [components.number_text(v) for v in scores["value"]],
            "requests": [len(keys) for keys in scores["evidence"]],
            "behind it": _addresses(row, item, scores),
            "why n/a": [
                _text(reason) if pd.isna(v) else ""
                for reason, v in zip(scores["reason"], scores["value"], strict=True)
            ],
        }
    )
    config = {
        **_RIGHT,
        "behind it": evidence.LINK,
        "part": st.column_config.TextColumn(width="small"),
        "why n/a": _WIDE,
    }
    st.dataframe(
        frame,
        hide_index=True,
        height="content",
        key=f"behind-{item.id}",
        placeholder=evidence.NO_LINK,
        column_config=config,
    )


def _addresses(row: dict[str, Any], item: Item, scores: pd.DataFrame) -> list[str | None]:
    """Return the address of each score's requests; None where it has none."""
    chain_level = {"step": None, "sample": 0}  # components have no step and no draw
    ids = evidence.score_ids(
        scores.assign(**{name: value for name, value in chain_level.items() if name not in scores})
    )
    return [
        evidence.requests_cell(row, item.id, name, keys)
        for name, keys in zip(ids, scores["evidence"], strict=True)
    ]


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value)


def render_item_diagnoses(row: dict[str, Any], item: Item) -> None:
    """Show each diagnosis: whether it applies, and the numbers that it depends on."""
    scores = _item_scores(row, item)
    rule_rows = tables.diagnosis_scores(scores)
    rows = zip(rule_rows.to_dict("records"), _addresses(row, item, rule_rows), strict=True)
    by_rule = {str(r["rule"]): {**r, "to": to} for r, to in rows}
    if not by_rule:
        return
    st.subheader("Diagnosis")
    lines = []
    for rule in RULES:
        result = by_rule.get(rule.name)
        if result is None:
            continue
        needed = tables.component_scores(scores, rule.needs).set_index("part")["value"]
        numbers = ", ".join(
            f"{name.replace('_', ' ')} {components.number_text(needed.get(name))}"
            for name in rule.needs
        )
        fires = "n/a" if pd.isna(result["value"]) else "fires" if result["value"] else "no"
        reason = "" if pd.isna(result["reason"]) else result["reason"]
        lines.append(
            (
                rule.name.replace("_", " "),
                fires,
                numbers,
                len(result["evidence"]),
                result["to"],
                reason,
            )
        )
    lines.sort(key=lambda line: ("fires", "no", "n/a").index(line[1]))
    frame = pd.DataFrame(
        lines, columns=["rule", "fires", "its numbers", "requests", "behind it", "why n/a"]
    )
    st.dataframe(
        frame,
        hide_index=True,
        height="content",
        key=f"diagnosis-{item.id}",
        placeholder=evidence.NO_LINK,
        column_config={"behind it": evidence.LINK, "why n/a": _WIDE},
    )
    components.show_card("diagnosis")


def render_flags(row: dict[str, Any], item: Item) -> None:
    """Show the chain with every penalty's span marked, and the penalties as a table."""
    scores = _item_scores(row, item)
    scored = scores[scores["scorer"] == "flags"]
    if scored.empty:
        return
    st.subheader("Red flags")
    hits = scored[(scored["metric"] == "flag_penalty") & scored["value"].notna()]
    chain = run_item_chain(row, item, scored)
    texts = chain.steps
    if not texts:
        reasons = scored[scored["metric"] == "flags"]["reason"].dropna()
        reason = str(reasons.iloc[0]) if len(reasons) else "the log does not have all of it"
        st.info(f"No chain to show: {as_code(reason)}.")
        return
    _render_chain_origin(chain.from_model)
    by_step: dict[int, list[Hit]] = {}
    lines = []
    for r, to in zip(hits.to_dict("records"), _addresses(row, item, hits), strict=True):
        facet = json.loads(r["facet"])
        step, rule = int(r["step"]), facet.get("rule", "").replace("_", " ")
        text = texts[step] if step < len(texts) else ""
        lo, hi = (
            (0, len(text)) if pd.isna(r["where_lo"]) else (int(r["where_lo"]), int(r["where_hi"]))
        )
        message = _text(r["reason"]) or facet.get("why", "")
        reason = f": {message}" if message else ""
        by_step.setdefault(step, []).append(
            Hit(lo, hi, float(r["value"]), f"{rule} ×{format_number(r['value'])}{reason}")
        )
        lines.append(
            (
                step + 1,
                rule,
                f"×{format_number(r['value'])}",
                shorten(text[lo:hi], 120),
                message,
                to,
            )
        )
    show_blocks(
        [_block(i, text, by_step.get(i, ())) for i, text in enumerate(texts)],
        key=f"flags-{row['id']}-{item.id}",
    )
    if lines:
        lines.sort(key=lambda line: line[:4])
        frame = pd.DataFrame(lines, columns=["step", "rule", "factor", "text", "why", "behind it"])
        st.dataframe(
            frame,
            hide_index=True,
            height="content",
            key=f"penalties-{item.id}",
            placeholder=evidence.NO_LINK,
            column_config=_FACTOR,
        )
        st.caption(
            "Marked: text that matched a rule; hover for rule and factor. F is the product"
            " of the factors, at least 0.3."
        )
    else:
        st.caption("No red flag matched.")
    gone = scored[(scored["metric"] == "flag_count") & scored["value"].isna()]
    components.plain_list(
        [
            f"n/a, {json.loads(r['facet']).get('rule', '').replace('_', ' ')}: {r['reason']}"
            for r in gone.to_dict("records")
        ]
    )
    components.show_card("flags")


def _block(index: int, text: str, hits: Sequence[Hit]) -> Block:
    hint = "; ".join(hit.hint for hit in hits)
    score = " ".join(f"×{format_number(hit.factor)}" for hit in hits)
    return Block(index, f"{index + 1}", text, None, score, hint, mark_hits(text, hits))


def mark_hits(text: str, hits: Sequence[Hit]) -> tuple[Piece, ...]:
    """Split a text into pieces, those with a penalty coloured. Joined, they are the text."""
    cuts = sorted(
        {0, len(text), *(min(max(0, at), len(text)) for hit in hits for at in (hit.lo, hit.hi))}
    )
    pieces = []
    for lo, hi in zip(cuts, cuts[1:], strict=False):
        over = [hit for hit in hits if hit.lo < hi and hit.hi > lo]
        shade = (
            None
            if not over
            else VERMILLION
            if min(hit.factor for hit in over) <= STRONG
            else ORANGE
        )
        pieces.append(Piece(text[lo:hi], shade, "; ".join(hit.hint for hit in over)))
    return tuple(pieces)


def render_verification_links(row: dict[str, Any], item: Item) -> None:
    """Show the links between steps, and which failed or stayed undecided and why."""
    scores = _item_scores(row, item)
    scored = scores[scores["scorer"] == "verification"]
    if scored.empty:
        return
    st.subheader("Verification")
    chain = run_item_chain(row, item, scored)
    table = link_table(scored, chain.steps).assign(to=_addresses(row, item, link_scores(scored)))
    if table.empty:
        reason = scored["reason"].dropna()
        st.info(
            "No link was checked:"
            f" {as_code(str(reason.iloc[0])) if len(reason) else 'the chain has no link'}."
        )
        return
    _render_chain_origin(chain.from_model)
    components.show_figure(
        "verification_links",
        table,
        key=f"links-{item.id}",
        evidence=(page("item"), {"run": row["id"], "item": item.id}),
    )
    weak = table[table["value"].isna() | (table["value"] < 0.5)]
    if len(weak):
        frame = pd.DataFrame(
            {
                "link": weak["link"],
                "step": weak["step"] + 1,
                "support": [components.number_text(v) for v in weak["value"]],
                "decided by": weak["verifier"],
                "at": [shorten(quote, 80) for quote in weak["quote"]],
                "why undecided": weak["reason"].fillna(""),
                "behind it": weak["to"],
            }
        )
        st.dataframe(
            frame,
            hide_index=True,
            key=f"weak-{item.id}",
            placeholder=evidence.NO_LINK,
            column_config=_SUPPORT,
        )
        st.caption("Links that are undecided or below 0.5.")
        undecided = table[table["value"].isna()]
        for reason, group in undecided.groupby(
            undecided["reason"].fillna("no stored reason"), sort=False
        ):
            named = ", ".join(
                f"step {step + 1} {link}"
                for step, link in zip(group["step"], group["link"], strict=True)
            )
            st.markdown(as_code(f"Undecided: {named}. {str(reason)[:1].upper()}{str(reason)[1:]}."))
    components.show_card("link_support")


def _render_chain_origin(from_model: bool) -> None:
    st.caption("The model's own chain." if from_model else "The suite's reference chain.")


def render_requests_link(row: dict[str, Any], item: Item) -> None:
    """Show a link to all requests and replies of the item."""
    st.page_link(
        page("item"),
        label="Requests and replies",
        icon=":material/fact_check:",
        query_params={"run": row["id"], "item": item.id},
    )


def _item_scores(row: dict[str, Any], item: Item) -> pd.DataFrame:
    return cached.selected_scores(row["id"], int(row["revision"]), item_id=item.id)


_RIGHT = {"value": st.column_config.TextColumn(alignment="right")}
_WIDE = st.column_config.TextColumn("reason", width="large")
_STEP = {"step": st.column_config.NumberColumn(width=60), "behind it": evidence.LINK}
_FACTOR = {"factor": st.column_config.TextColumn(alignment="right", width=80), **_STEP}
_SUPPORT = {"support": st.column_config.TextColumn(alignment="right"), **_STEP}
