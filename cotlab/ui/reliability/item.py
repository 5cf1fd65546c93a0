"""The page Reliability, one item: its components, diagnoses, red flags and verified links."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import reliability as tables
from cotlab.analysis.tables.chains import link_scores, link_table
from cotlab.analysis.tables.declare import FigureChoice
from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.figures.reliability import COMPONENT_ORDER
from cotlab.figures.style import ORANGE, VERMILLION, format_number
from cotlab.metrics.composite import DIAGNOSIS_RULES
from cotlab.ui import cached, charts, components
from cotlab.ui.item import evidence
from cotlab.ui.item.chain import (
    TextPiece,
    TextRow,
    load_scored_chain,
    render_chain_origin,
    render_rows,
)
from cotlab.ui.text import escape_markdown, shorten

MAX_STRONG_FACTOR = 0.93
"""Penalties with at most this factor are marked in the stronger colour."""


class FlagHit(NamedTuple):
    """One penalty of a red flag, located in a step's text."""

    start: int
    """First character of the span."""
    end: int
    """Character after the span."""
    factor: float
    """Factor of the penalty, below 1."""
    hint: str
    """Rule, factor and reason, as the tooltip shows them."""


def render_item_components(row: RunView, item: Item) -> None:
    """Show the item's components beside the suite's means, and why some are undefined."""
    component_rows = tables.component_scores(
        cached.selected_scores(row.id, row.revision, tables.RELIABILITY_METRICS)
    )
    scores = component_rows[component_rows["item_id"] == item.id]
    if scores.empty:
        st.info("This item has not been scored for reliability yet.")
        return
    table = tables.item_component_rows(component_rows, item.id)
    link = evidence.requests_address(row, item.id)
    paper = charts.PaperFigure(row.id, "item_parts", FigureChoice(item=item.id))
    charts.show_figure("item_parts", table, key=f"bars-{item.id}", evidence=link, paper=paper)
    component_table = _score_table(row, item, scores)
    component_table.insert(0, "part", scores["part"])
    component_table["why n/a"] = scores["reason"].where(scores["value"].isna()).fillna("")
    column_config = {"part": st.column_config.TextColumn(width="small")}
    evidence.render_linked_table(component_table, f"behind-{item.id}", column_config)
    defined_weight = tables.component_scores(_load_item_scores(row, item), ("weight",))["value"]
    if len(defined_weight) and defined_weight.iloc[0] < 1:
        undefined_names_text = ", ".join(scores[scores["value"].isna()]["part"])
        st.caption(
            f"r_raw is over {100 * defined_weight.iloc[0]:.0f} % of the weight: without"
            f" {undefined_names_text}, the weights are renormalised."
        )
    checked_share = tables.component_scores(_load_item_scores(row, item), ("checked",))["value"]
    if len(checked_share) and not pd.isna(checked_share.iloc[0]):
        st.caption(f"{100 * checked_share.iloc[0]:.0f} % of r_raw's weight could check this chain.")
    features = _load_item_scores(row, item)
    features = features[features["metric"] == "feature"]
    if features.empty:
        return
    with st.expander("The feature vector of this item"):
        names = [json.loads(text).get("feature", "") for text in features["facet"]]
        table = _score_table(row, item, features)
        table.insert(0, "feature", names)
        table.insert(2, "status", features["status"])
        table.insert(3, "reason", features["reason"].fillna(""))
        feature_order = [*COMPONENT_ORDER, *(name for name in names if name not in COMPONENT_ORDER)]
        table = table.sort_values("feature", key=lambda column: column.map(feature_order.index))
        evidence.render_linked_table(table, f"features-{item.id}", height="auto")


def _score_table(row: RunView, item: Item, scores: pd.DataFrame) -> pd.DataFrame:
    """Return each score's value, its number of requests and the link to them."""
    return pd.DataFrame(
        {
            "value": scores["value"].map(components.number_text),
            "requests": scores["evidence"].map(len),
            "behind it": _request_links(row, item, scores),
        }
    )


def _request_links(row: RunView, item: Item, scores: pd.DataFrame) -> list[str | None]:
    """Return the address of each score's requests; None where it has none."""
    default_columns = {"step": None, "sample": 0}  # components have no step and no draw
    score_ids = evidence.score_ids(
        scores.assign(
            **{name: value for name, value in default_columns.items() if name not in scores}
        )
    )
    return [
        evidence.requests_cell(row, item.id, name, keys)
        for name, keys in zip(score_ids, scores["evidence"], strict=True)
    ]


def _text_or_empty(value: Any) -> str:
    return "" if pd.isna(value) else str(value)


def render_item_diagnoses(row: RunView, item: Item) -> None:
    """Show each diagnosis: whether it applies, and the numbers that it depends on."""
    scores = _load_item_scores(row, item)
    rule_rows = tables.diagnosis_scores(scores)
    linked_rows = zip(
        rule_rows.to_dict("records"), _request_links(row, item, rule_rows), strict=True
    )
    result_by_rule = {
        str(rule_row["rule"]): {**rule_row, "to": link} for rule_row, link in linked_rows
    }
    if not result_by_rule:
        return
    st.header("Diagnosis")
    lines = []
    for rule in (rule for rule in DIAGNOSIS_RULES if rule.name in result_by_rule):
        result = result_by_rule[rule.name]
        component_values = tables.component_scores(scores, rule.feature_names).set_index("part")[
            "value"
        ]
        numbers_text = ", ".join(
            f"{name.replace('_', ' ')} {components.number_text(component_values.get(name))}"
            for name in rule.feature_names
        )
        result_text = "n/a" if pd.isna(result["value"]) else "fires" if result["value"] else "no"
        lines.append(
            {
                "rule": rule.name.replace("_", " "),
                "fires": result_text,
                "its numbers": numbers_text,
                "requests": len(result["evidence"]),
                "behind it": result["to"],
                "why n/a": _text_or_empty(result["reason"]),
            }
        )
    lines.sort(key=lambda line: ("fires", "no", "n/a").index(line["fires"]))
    evidence.render_linked_table(pd.DataFrame(lines), f"diagnosis-{item.id}")
    components.show_card("diagnosis")


def render_flags(row: RunView, item: Item) -> None:
    """Show the chain with every penalty's span marked, and the penalties as a table."""
    scores = _load_item_scores(row, item)
    flag_scores = scores[scores["scorer"] == "flags"]
    if flag_scores.empty:
        return
    st.header("Red flags")
    penalty_scores = flag_scores[
        (flag_scores["metric"] == "flag_penalty") & flag_scores["value"].notna()
    ]
    chain = load_scored_chain(row, item, flag_scores)
    step_texts = chain.steps
    if not step_texts:
        reasons = flag_scores[flag_scores["metric"] == "flags"]["reason"].dropna()
        first_reason = [*reasons, "the log does not have all of it"][0]
        st.info(f"No chain to show: {escape_markdown(str(first_reason))}.")
        return
    render_chain_origin(row, chain.from_model)
    hits_by_step: dict[int, list[FlagHit]] = {}
    lines = []
    for penalty, link in zip(
        penalty_scores.to_dict("records"), _request_links(row, item, penalty_scores), strict=True
    ):
        facet = json.loads(penalty["facet"])
        step, rule = int(penalty["step"]), facet.get("rule", "").replace("_", " ")
        text = step_texts[step] if step < len(step_texts) else ""
        lo, hi = (
            (0, len(text))
            if pd.isna(penalty["where_lo"])
            else (int(penalty["where_lo"]), int(penalty["where_hi"]))
        )
        message = _text_or_empty(penalty["reason"]) or facet.get("why", "")
        reason = f": {message}" if message else ""
        factor = f"×{format_number(penalty['value'])}"
        hits_by_step.setdefault(step, []).append(
            FlagHit(lo, hi, float(penalty["value"]), f"{rule} {factor}{reason}")
        )
        lines.append((step + 1, rule, factor, shorten(text[lo:hi], 120), message, link))
    render_rows(
        [_flagged_step_row(i, text, hits_by_step.get(i, ())) for i, text in enumerate(step_texts)],
        key=f"flags-{row.id}-{item.id}",
    )
    if lines:
        lines.sort(key=lambda line: line[:4])
        table = pd.DataFrame(lines, columns=["step", "rule", "factor", "text", "why", "behind it"])
        evidence.render_linked_table(table, f"penalties-{item.id}", _COLUMN_CONFIG)
        st.caption(
            "Marked: text that matched a rule; hover for rule and factor. F is the product"
            " of the factors, at least 0.3."
        )
    else:
        st.caption("No red flag matched.")
    undefined_counts = flag_scores[
        (flag_scores["metric"] == "flag_count") & flag_scores["value"].isna()
    ]
    components.show_escaped_lines(
        [
            f"n/a, {json.loads(penalty['facet']).get('rule', '').replace('_', ' ')}:"
            f" {penalty['reason']}"
            for penalty in undefined_counts.to_dict("records")
        ]
    )
    components.show_card("flags")


def _flagged_step_row(index: int, text: str, hits: Sequence[FlagHit]) -> TextRow:
    hint = "; ".join(hit.hint for hit in hits)
    score = " ".join(f"×{format_number(hit.factor)}" for hit in hits)
    return TextRow(index, f"{index + 1}", text, None, score, hint, mark_hits(text, hits))


def mark_hits(text: str, hits: Sequence[FlagHit]) -> tuple[TextPiece, ...]:
    """Split a text into pieces, those with a penalty coloured. Joined, they are the text."""
    boundaries = sorted(
        {
            0,
            len(text),
            *(
                min(max(0, position), len(text))
                for hit in hits
                for position in (hit.start, hit.end)
            ),
        }
    )
    pieces = []
    for lo, hi in zip(boundaries, boundaries[1:], strict=False):
        covering_hits = [hit for hit in hits if hit.start < hi and hit.end > lo]
        is_strong = any(hit.factor <= MAX_STRONG_FACTOR for hit in covering_hits)
        shade = (VERMILLION if is_strong else ORANGE) if covering_hits else None
        pieces.append(TextPiece(text[lo:hi], shade, "; ".join(hit.hint for hit in covering_hits)))
    return tuple(pieces)


def render_verification_links(row: RunView, item: Item) -> None:
    """Show the links between steps, and which failed or stayed undecided and why."""
    scores = _load_item_scores(row, item)
    verification_scores = scores[scores["scorer"] == "verification"]
    if verification_scores.empty:
        return
    st.header("Verification")
    chain = load_scored_chain(row, item, verification_scores)
    table = link_table(verification_scores, chain.steps).assign(
        to=_request_links(row, item, link_scores(verification_scores))
    )
    if table.empty:
        reasons = [*verification_scores["reason"].dropna(), "the chain has no link"]
        st.info(f"No link was checked: {escape_markdown(str(reasons[0]))}.")
        return
    render_chain_origin(row, chain.from_model)
    link = evidence.requests_address(row, item.id)
    paper = charts.PaperFigure(row.id, "verification_links", FigureChoice(item=item.id))
    charts.show_figure(
        "verification_links", table, key=f"links-{item.id}", evidence=link, paper=paper
    )
    weak_links = table[table["value"].isna() | (table["value"] < 0.5)]
    if len(weak_links):
        frame = pd.DataFrame(
            {
                "link": weak_links["link"],
                "step": weak_links["step"] + 1,
                "support": [components.number_text(v) for v in weak_links["value"]],
                "decided by": weak_links["verifier"],
                "at": [shorten(quote, 80) for quote in weak_links["quote"]],
                "why undecided": weak_links["reason"].fillna(""),
                "behind it": weak_links["to"],
            }
        )
        evidence.render_linked_table(frame, f"weak-{item.id}", _COLUMN_CONFIG, height="auto")
        st.caption("Links that are undecided or below 0.5.")
        undecided_links = table[table["value"].isna()]
        for reason, group in undecided_links.groupby(
            undecided_links["reason"].fillna("no stored reason"), sort=False
        ):
            steps_text = ", ".join(
                f"step {step + 1} {link}"
                for step, link in zip(group["step"], group["link"], strict=True)
            )
            st.markdown(
                escape_markdown(
                    f"Undecided: {steps_text}. {str(reason)[:1].upper()}{str(reason)[1:]}."
                )
            )
    components.show_card("link_support")


def _load_item_scores(row: RunView, item: Item) -> pd.DataFrame:
    return cached.selected_scores(row.id, row.revision, item_id=item.id)


_COLUMN_CONFIG = {
    "step": st.column_config.NumberColumn(width=60),
    "factor": st.column_config.TextColumn(alignment="right", width=80),
    "support": evidence.RIGHT_ALIGNED_COLUMN,
}
