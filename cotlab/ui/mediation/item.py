"""The tab Mediation, one item: its tokens, values, and intervals over donors and draws."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import mediation as tables
from cotlab.analysis.tables.declare import FigureChoice
from cotlab.analysis.tables.mediation import Setting
from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.figures.mediation import metric_label, span_name, span_sort_key
from cotlab.figures.style import ORANGE, VIRIDIS, interval_text
from cotlab.stats.resample import RESAMPLES
from cotlab.ui import cached, charts, components
from cotlab.ui.item import chain, evidence
from cotlab.ui.item.chain import TextRow, render_rows
from cotlab.ui.mediation.suite import (
    CONTROL_PLACES,
    HEADLINE_METRICS,
    QUESTION_PLACE,
    index_label,
)
from cotlab.ui.pickers import select_option
from cotlab.ui.places import run_link
from cotlab.ui.text import escape_markdown

ROLE_STYLE_BY_SPAN = {
    "chain": ("patched", VIRIDIS[3]),
    "question": ("control", ORANGE),
    "cue": ("untouched", None),
    "": ("untouched", None),
}
"""Role and colour of the tokens of each span."""
TOKEN_SEPARATOR = "\u00a0· "
"""Separator of tokens; a line never starts with the dot."""
SPREAD_METRICS = ("cmi", "share", "mass_lost", "drop_cot", "drop_control")


def render_tokens(run: RunView, item: Item, setting: Setting) -> None:
    """Show the text as the model's tokens, grouped by role: patched, control or untouched."""
    metrics = ("baseline_logp", "cmi")
    scores = cached.mediation_item_scores(run.id, run.revision, metrics, item.id)
    keys = evidence.request_keys(setting.select_rows(scores))
    exchanges = cached.logged_exchanges(tuple(keys))
    # in the order of the evidence: the item's own reply is the first
    replies = (exchanges[key][1] or {} for key in keys if key in exchanges)
    located_tokens = next((reply["located"] for reply in replies if reply.get("located")), None)
    if located_tokens is None:
        reasons = scores["reason"].dropna()
        st.info(
            "The log holds no token positions of this"
            f" item{f': {escape_markdown(str(reasons.iloc[0]))}' if len(reasons) else ''}."
        )
        return
    render_rows(token_rows(located_tokens, setting.control), key=f"tokens-{run.id}-{item.id}")
    st.caption(
        f"{len(located_tokens['pieces'])} tokens, separated by dots; positions count from 1. The"
        " chain's states are replaced at the input of each layer of a span"
        f" ({located_tokens['layers']} layers); those of the control"
        f" {CONTROL_PLACES.get(setting.control, QUESTION_PLACE)}, or at all where they are fewer."
        " The answer's own positions are never touched."
    )


def token_rows(located_tokens: dict[str, Any], control: str) -> list[TextRow]:
    """Return the groups of tokens with one role, in reading order.

    The control ``neutral`` leaves the question alone, ``total`` takes it as all others do.
    """
    span_by_position = {
        int(position): span
        for span, span_positions in zip(
            ROLE_STYLE_BY_SPAN, located_tokens["positions"], strict=False
        )
        for position in span_positions
    }
    tokens = [str(token).replace("\n", "↵") for token in located_tokens["pieces"]]
    token_spans = [span_by_position.get(position, "") for position in range(len(tokens))]
    rows = []
    for i, (group_span, group) in enumerate(
        groupby(range(len(tokens)), key=token_spans.__getitem__)
    ):
        positions = list(group)
        is_untouched = group_span == "question" and control == "neutral"
        role, shade = ROLE_STYLE_BY_SPAN["" if is_untouched else group_span]
        start, end = positions[0], positions[-1]
        position_range = f"{start + 1}–{end + 1}" if end > start else f"{start + 1}"
        text = TOKEN_SEPARATOR.join(tokens[start : end + 1])
        rows.append(
            TextRow(
                i,
                f"{group_span or 'other'}: {role}",
                text,
                shade,
                f"{position_range} ({len(positions)})",
                f"positions {position_range}",
            )
        )
    return rows


def render_item_values(run: RunView, item: Item, setting: Setting) -> None:
    """Show the item's values with all layers patched."""
    scores = setting.select_rows(cached.mediation_item_scores(run.id, run.revision, None, item.id))
    scores = scores[scores["metric"] != "patch_drop"]
    all_layer_scores = scores[scores["span"].isin(("all", "")) & (scores["keep"] == "")]
    score_by_metric = {str(score["metric"]): score for score in all_layer_scores.to_dict("records")}
    intervals = load_item_spread(run, item, setting)
    intervals = intervals[(intervals["span"] == "all") & intervals["lo"].notna()].set_index(
        "metric"
    )

    cmi_reason = tables.item_headline_reason(all_layer_scores, setting)

    def value_text(metric: str) -> str:
        if metric == "cmi" and cmi_reason:
            return "n/a"
        if metric not in score_by_metric or metric not in intervals.index:
            return (
                components.number_text(score_by_metric[metric]["value"])
                if metric in score_by_metric
                else "n/a"
            )
        return interval_text(
            float(score_by_metric[metric]["value"]),
            float(intervals.at[metric, "lo"]),
            float(intervals.at[metric, "hi"]),
        )

    components.show_numbers([(label, value_text(metric)) for metric, label in HEADLINE_METRICS])
    if cmi_reason:
        components.show_escaped_lines([f"{dict(HEADLINE_METRICS)['cmi']}: n/a, {cmi_reason}."])
    st.caption(
        "Values of this item alone, with an interval over its donors and draws where there are"
        " enough of them."
    )
    with st.expander("All values of this item"):
        frame = pd.DataFrame(
            {
                "metric": [metric_label(m) for m in scores["metric"]],
                "span": scores["span"],
                "kept": scores["keep"],
                "value": [components.number_text(v) for v in scores["value"]],
                "status": scores["status"],
                "reason": scores["reason"].fillna(""),
            }
        )
        st.dataframe(
            frame,
            hide_index=True,
            key=f"values-{item.id}",
            column_config={"value": evidence.RIGHT_ALIGNED_COLUMN},
        )
    evidence.render_requests_link(run, item.id)


def render_draws(run: RunView, item: Item, setting: Setting) -> None:
    """Show the raw drops of one span of layers, then the chain's entropy where it was measured."""
    _render_drops(run, item, setting)
    chain.render_entropy(run, item)


def _render_drops(run: RunView, item: Item, setting: Setting) -> None:
    drop_scores = _load_drop_scores(run, item, setting)
    if drop_scores.empty:
        st.info("This item has no patched forward pass.")
        return
    labels = {
        span: "all layers" if span == "all" else f"layers {span_name(span)}"
        for span in tables.drop_spans(drop_scores)
    }
    span = select_option("Layers", labels, "span") if labels else ""
    drop_rows = drop_scores[drop_scores["span"].isin((span, ""))]
    choice = FigureChoice(item=item.id, setting="~".join(setting), span=span)
    link = run_link(run.id, "items", item=item.id)
    charts.show(run, "drops_by_donor", choice, evidence=link)
    page_rows = drop_rows.iloc[components.page_slice(len(drop_rows), f"draws-{item.id}-{span}")]
    st.dataframe(
        pd.DataFrame(
            {
                "part": [metric_label(p) for p in page_rows["part"]],
                "kept": page_rows["keep"],
                "donor": page_rows["donor"].replace("", "none"),
                "draw": page_rows["sample"] + 1,
                "value": [components.number_text(v) for v in page_rows["value"]],
                "reason": page_rows["reason"].fillna(""),
            }
        ),
        hide_index=True,
        key=f"draw-table-{item.id}",
        column_config={"value": evidence.RIGHT_ALIGNED_COLUMN},
    )


def _load_drop_scores(run: RunView, item: Item, setting: Setting) -> pd.DataFrame:
    scores = cached.mediation_item_scores(run.id, run.revision, ("patch_drop",), item.id)
    return setting.select_rows(scores)


def load_item_spread(run: RunView, item: Item, setting: Setting) -> pd.DataFrame:
    """Return each estimate of an item with its interval over donors and draws.

    It has no row where nothing was patched.
    """
    return _cached_spread_table(
        str(cached.store().folder),
        run.id,
        run.revision,
        item.id,
        setting,
        run.plan.seed,
    )


@st.cache_data(show_spinner="Resampling donors and draws", max_entries=64)
def _cached_spread_table(
    folder: str, run_id: str, revision: int, item_id: str, setting: Setting, seed: int
) -> pd.DataFrame:
    return tables.spread_table(
        cached.mediation_item_scores(run_id, revision, ("patch_drop",), item_id),
        setting,
        item_id,
        seed,
    )


def render_item_density(run: RunView, item: Item, setting: Setting) -> None:
    """Show the item's CMI by the share of its positions that were patched."""
    link = run_link(run.id, "items", item=item.id)
    choice = FigureChoice(item=item.id, setting="~".join(setting))
    charts.show(run, "item_density", choice, evidence=link)


def render_item_spread(run: RunView, item: Item, setting: Setting) -> None:
    """Show the item's values with intervals for every span of layers, all layers first."""
    spread = load_item_spread(run, item, setting)
    spread = spread[spread["metric"].isin(SPREAD_METRICS)]
    if spread.empty:
        return
    metric_indices = [SPREAD_METRICS.index(metric) for metric in spread["metric"]]
    span_sort_keys = [(-kind, start) for kind, start in map(span_sort_key, spread["span"])]
    spread = spread.assign(
        place=list(zip(span_sort_keys, metric_indices, strict=True))
    ).sort_values("place")
    spread_table = pd.DataFrame(
        {
            "layers": [span_name(str(span)) for span in spread["span"]],
            "value": spread["metric"].map(index_label),
            "value [95 % interval]": [
                components.estimate_text(estimate) for estimate in spread.to_dict("records")
            ],
            "drops": spread["draws"],
            "donors": spread["donors"],
            "resampled, or reason": [
                _resampled_text(estimate) for estimate in spread.to_dict("records")
            ],
        }
    )
    st.dataframe(
        spread_table,
        hide_index=True,
        height=400 if len(spread_table) > 11 else "content",
        key=f"spread-{item.id}",
        column_config={
            "value [95 % interval]": evidence.RIGHT_ALIGNED_COLUMN,
            "layers": st.column_config.TextColumn(width=70),
            "drops": st.column_config.NumberColumn(
                width=65, help="Number of patched forward passes behind the value."
            ),
            "donors": st.column_config.NumberColumn(
                width=70, help="Items whose states replaced this item's."
            ),
            "resampled, or reason": st.column_config.TextColumn(width="large"),
        },
    )
    st.caption(
        f"Percentile bootstrap over the donors and draws of this item alone, {RESAMPLES:,}"
        " resamples: first donors are resampled with replacement, then the drops of each"
        " donor. The intervals show how far a value would move with other donors, not how"
        " certain it is for other items. There are few donors, so intervals tend to be too"
        " narrow. With fewer than 5 drops there is none."
    )


def _resampled_text(row: Mapping[str, Any]) -> str:
    """Return what was resampled, or why there is no interval."""
    if isinstance(row["reason"], str):
        return row["reason"]
    method = str(row["method"]).removeprefix("bootstrap ")
    return method.replace(f" (percentile, {RESAMPLES} resamples)", "")
