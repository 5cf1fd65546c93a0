"""The tab Mediation of a run: its indices over the suite, by layer and position, and one item."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import groupby
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import mediation as tables
from cotlab.analysis.tables.declare import FigureChoice, count_reasons
from cotlab.analysis.tables.mediation import (
    INDEX_METRICS,
    NATS_METRICS,
    Setting,
    all_layer_rows,
    with_facets,
)
from cotlab.analysis.tables.run import mediation_settings
from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.figures.mediation import metric_label, span_name, span_sort_key
from cotlab.figures.style import ORANGE, VIRIDIS, interval_text
from cotlab.stats.resample import RESAMPLES
from cotlab.ui import cached, charts, components
from cotlab.ui.components import render_headline, show_cards
from cotlab.ui.item import chain, evidence
from cotlab.ui.item.chain import TextRow, render_rows
from cotlab.ui.more import ITEM_SECTION, render_more
from cotlab.ui.pickers import select_item, select_option
from cotlab.ui.places import run_link
from cotlab.ui.text import escape_markdown
from cotlab.ui.verdict_number import render_verdict_number

HEADLINE_METRICS = (
    ("cmi", "CMI, all layers"),
    ("mass_lost", "Mass lost"),
    ("no_cot_drop", "No-CoT drop (nats)"),
)
SOURCE_LABELS = {
    "filler": "dots in the chain's place",
    "interchange": "another item's chain",
    "right": "the run without a chain, right-aligned",
    "mean": "mean of the question",
    "literal": "the same index of the run without a chain",
}
CONTROL_LABELS = {
    "other": "control from another item",
    "own": "control from the item's own run",
    "neutral": "control at dots beside the chain",
    "total": "held against question and chain together",
}
CONTROL_PLACES = {
    "neutral": "at as many dots between question and chain, in a text that has them",
    "total": "at question and chain together",
}
"""Where a control replaces states; any other does at as many positions of the question."""
QUESTION_PLACE = "at as many positions of the question"
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


def render_mediation_tab(run: RunView) -> None:
    """Show whether the answer depends on the activations at the chain's positions."""
    render_verdict_number(run.id)
    setting = select_setting(run)
    if setting is None:
        return
    choice = FigureChoice(setting="~".join(setting))
    render_mediation_summary(run, setting)
    render_mediation_warnings(run, setting)
    charts.show(run, "cmi_density", choice)
    render_more(
        "by layer, and all indices",
        *(
            partial(charts.show, run, name, choice)
            for name in ("drop_density", "span_heatmap", "span_heatmap_sources", "layer_profile")
        ),
        partial(render_indices, run, setting, choice),
    )
    render_more("one item", partial(_render_item, run, setting), **ITEM_SECTION)
    render_mediation_notes(setting)


def select_setting(run: RunView) -> Setting | None:
    """Choose a patch source and a control; None (with a message) where nothing is scored."""
    setting_by_key = mediation_settings(cached.cached_run_view(run))
    if not setting_by_key:
        st.info("No item has been scored for mediation yet.")
        return None
    shows_chain = len({(setting.chain, setting.given) for setting in setting_by_key.values()}) > 1
    labels = {key: _setting_label(setting, shows_chain) for key, setting in setting_by_key.items()}
    return setting_by_key[select_option("Source and control", labels, "source")]


def _setting_label(setting: Setting, shows_chain: bool) -> str:
    source = setting.source
    if source in SOURCE_LABELS:
        source += f" ({SOURCE_LABELS[source]})"
    text = f"{source}, {CONTROL_LABELS.get(setting.control, setting.control)}"
    return f"{text} · {setting.chain} chain, given as {setting.given}" if shows_chain else text


def _estimates(run: RunView) -> pd.DataFrame:
    return with_facets(cached.cached_run_view(run).estimates)


def render_mediation_summary(run: RunView, setting: Setting) -> None:
    """Show the main numbers with all layers patched, with intervals and n."""
    estimates = tables.headline_rows(all_layer_rows(setting.select_rows(_estimates(run))))
    if estimates.empty:
        st.info(
            "The means are estimated when the run ends or is stopped. Single items are under One"
            " item."
        )
        return
    render_headline(estimates, HEADLINE_METRICS)
    confidence = float(estimates["confidence"].iloc[0])
    st.caption(f"Means over n items with {100 * confidence:g} % intervals. {_cmi_note(setting)}")
    show_cards(*(metric for metric, _ in HEADLINE_METRICS))


def _cmi_note(setting: Setting) -> str:
    if setting.control == "total":
        return (
            "CMI is the share of the answer's probability that goes with the chain's states, of"
            " what goes with those of question and chain together: 1 also for a chain that needs"
            " its question. An answer that stands in question and chain alike counts as no use of"
            " the chain."
        )
    if setting.control == "other":
        return (
            "CMI is (Δ chain − Δ control) / (Δ chain + Δ control), not below 0: it is 0 for a chain"
            " that needs its question, as for one that is not used, and near 0 at small doses. Mass"
            " lost is neither; nor is CMI with control=total."
        )
    return "CMI is clamped and blind to small doses; mass lost is not."


def render_mediation_warnings(run: RunView, setting: Setting) -> None:
    """Show what limits the numbers above."""
    scores = cached.cached_run_view(run).scores("control_is_noop", with_evidence=False)
    table = setting.select_rows(with_facets(scores))
    noop_scores = table[(table["span"] == "all") & table["value"].notna()]
    n_noop_items = int((noop_scores["value"] > 0).sum())
    if n_noop_items:
        st.warning(
            f"The control changes nothing in {n_noop_items} of {len(noop_scores)} items: it patches"
            " in the same states. With such a control CMI is 1 for every model, faithful or not."
            " Use the drop and mass lost, or a control from another item."
        )
    if setting.source == "literal":
        st.warning(
            "The source literal is degenerate: up to the chain its states are the same in"
            " both runs, and past the end of the short run there are none. It is there for"
            " comparison; use filler or interchange."
        )
    elif setting.source == "right":
        st.info(
            "The source right has an artefact at single early layers, where states are"
            " patched in from other positions."
        )


def render_indices(run: RunView, setting: Setting, choice: FigureChoice) -> None:
    """Show every index with all layers patched, as a figure, a table, and its definition."""
    charts.show(run, "mediation_indices", choice)
    scores = tables.suite_scores(cached.cached_run_view(run), *INDEX_METRICS, *NATS_METRICS)
    table = tables.indices(scores, _estimates(run), setting)
    if table.empty:
        return
    scores = all_layer_rows(setting.select_rows(scores))
    undefined_reasons = scores[scores["value"].isna()].groupby("metric")["reason"]
    reasons_by_metric = {
        str(metric): [f"{text} ({n})" for text, n in count_reasons(reasons).items()]
        for metric, reasons in undefined_reasons
    }
    for row in table[table["point"].notna() & table["lo"].isna()].itertuples():
        reason = "too few items" if pd.isna(row.reason) else row.reason
        reasons_by_metric.setdefault(row.metric, []).append(f"no interval: {reason}")
    frame = pd.DataFrame(
        {
            "index": [index_label(metric) for metric in table["metric"]],
            "mean [interval]": [components.estimate_text(r) for r in table.to_dict("records")],
            "n": table["n"].tolist(),
            "undefined": table["n_undefined"].tolist(),
            "why undefined": ["; ".join(reasons_by_metric.get(m, ())) for m in table["metric"]],
        }
    )
    components.show_table(frame, "index-table", right_aligned_names=("mean [interval]",))
    with st.expander("Definition of each index"):
        card_by_name = components.metric_cards_by_name()
        for metric in table["metric"]:
            card = card_by_name[metric]
            st.markdown(
                f"**{metric_label(metric)}**: {escape_markdown(card.formula)}. Does not show:"
                f" {escape_markdown(card.not_shown)}"
            )


def index_label(metric: str) -> str:
    """Return the name of an index for a table, with its unit."""
    return f"{metric_label(metric)} (nats)" if metric in NATS_METRICS else metric_label(metric)


def render_mediation_notes(setting: Setting) -> None:
    """Explain what is patched, and what a drop does and does not show."""
    undefined_text = (
        "Items in which question and chain together carry less than 0.01 nat"
        if setting.control == "total"
        else "Items whose two drops add up to less than 0.01 nat"
    )
    st.caption(
        "States at the input of the layers are replaced at the chain's positions (source"
        f" {escape_markdown(setting.source)}) and, as a control,"
        f" {CONTROL_PLACES.get(setting.control, QUESTION_PLACE)}. A drop"
        " shows that log P of the answer depends on these states. The absence"
        " of a drop does not show that the chain is decorative: the answer may also be stored"
        f" elsewhere. {undefined_text} are undefined, not 0."
    )


def _render_item(run: RunView, setting: Setting) -> None:
    item = select_item(run)
    if item is None:
        return
    scores = setting.select_rows(with_facets(cached.cached_run_view(run).item_scores(item.id)))
    spread = _item_spread(run.id, run.revision, item.id, setting)
    choice = FigureChoice(item=item.id, setting="~".join(setting))
    render_tokens(run, item, scores, setting)
    render_item_values(run, item, scores, spread, setting)
    charts.show(run, "item_density", choice, evidence=run_link(run.id, "items", item=item.id))
    render_item_spread(item, spread)
    render_drops(run, item, scores[scores["metric"] == "patch_drop"], choice)
    chain.render_entropy(run, item)


@cached.cache_by_store(64, "Resampling donors and draws")
def _item_spread(run_id: str, revision: int, item_id: str, setting: Setting) -> pd.DataFrame:
    """Return each estimate of an item with its interval over donors and draws."""
    run = cached.stored_run(run_id)
    scores = with_facets(cached.cached_run_view(run).item_scores(item_id))
    return tables.spread_table(scores, setting, item_id, run.plan.seed)


def render_tokens(run: RunView, item: Item, scores: pd.DataFrame, setting: Setting) -> None:
    """Show the text as the model's tokens, grouped by role: patched, control or untouched."""
    scores = scores[scores["metric"].isin(("baseline_logp", "cmi"))]
    keys = evidence.request_keys(scores)
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
    groups = groupby(range(len(tokens)), key=token_spans.__getitem__)
    rows = []
    for i, (group_span, group) in enumerate(groups):
        positions = list(group)
        is_untouched = group_span == "question" and control == "neutral"
        role, shade = ROLE_STYLE_BY_SPAN["" if is_untouched else group_span]
        start, end = positions[0], positions[-1]
        position_range = f"{start + 1}–{end + 1}" if end > start else f"{start + 1}"
        text = TOKEN_SEPARATOR.join(tokens[start : end + 1])
        label, score = f"{group_span or 'other'}: {role}", f"{position_range} ({len(positions)})"
        rows.append(TextRow(i, label, text, shade, score, f"positions {position_range}"))
    return rows


def render_item_values(
    run: RunView, item: Item, scores: pd.DataFrame, spread: pd.DataFrame, setting: Setting
) -> None:
    """Show the item's values with all layers patched."""
    scores = scores[scores["metric"] != "patch_drop"]
    all_layer_scores = all_layer_rows(scores)
    value_by_metric = dict(zip(all_layer_scores["metric"], all_layer_scores["value"], strict=True))
    bounded = spread[(spread["span"] == "all") & spread["lo"].notna()]
    bounds_by_metric = {row.metric: (row.lo, row.hi) for row in bounded.itertuples()}
    cmi_reason = tables.item_headline_reason(all_layer_scores, setting)
    numbers = []
    for metric, label in HEADLINE_METRICS:
        value = None if metric == "cmi" and cmi_reason else value_by_metric.get(metric)
        text = components.number_text(value)
        if value is not None and metric in bounds_by_metric and not pd.isna(value):
            text = interval_text(float(value), *bounds_by_metric[metric])
        numbers.append((label, text))
    components.show_numbers(numbers)
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
        components.show_table(frame, f"values-{item.id}", right_aligned_names=("value",))
    evidence.render_requests_link(run, item.id)


def render_item_spread(item: Item, spread: pd.DataFrame) -> None:
    """Show the item's values with intervals for every span of layers, all layers first."""
    spread = spread[spread["metric"].isin(SPREAD_METRICS)]
    if spread.empty:
        return
    span_sort_keys = [(-kind, start) for kind, start in map(span_sort_key, spread["span"])]
    places = zip(span_sort_keys, map(SPREAD_METRICS.index, spread["metric"]), strict=True)
    spread = spread.assign(place=list(places)).sort_values("place")
    records = spread.to_dict("records")
    frame = pd.DataFrame(
        {
            "layers": [span_name(str(span)) for span in spread["span"]],
            "value": spread["metric"].map(index_label),
            "value [95 % interval]": [components.estimate_text(estimate) for estimate in records],
            "drops": spread["draws"],
            "donors": spread["donors"],
            "resampled, or reason": [_resampled_text(estimate) for estimate in records],
        }
    )
    right_aligned_names = ("value [95 % interval]",)
    components.show_table(frame, f"spread-{item.id}", right_aligned_names=right_aligned_names)
    st.caption(
        f"Percentile bootstrap over the donors and draws of this item alone, {RESAMPLES:,}"
        " resamples: first donors are resampled with replacement, then the drops of each"
        " donor. The intervals show how far a value would move with other donors, not how"
        " certain it is for other items. There are few donors, so intervals tend to be too"
        " narrow. With fewer than 5 drops there is none. Drops: patched forward passes; donors:"
        " items whose states replaced this item's."
    )


def _resampled_text(row: Mapping[Any, Any]) -> str:
    """Return what was resampled, or why there is no interval."""
    if isinstance(row["reason"], str):
        return row["reason"]
    method = str(row["method"]).removeprefix("bootstrap ")
    return method.replace(f" (percentile, {RESAMPLES} resamples)", "")


def render_drops(run: RunView, item: Item, scores: pd.DataFrame, choice: FigureChoice) -> None:
    """Show the raw drops of one span of layers."""
    if scores.empty:
        st.info("This item has no patched forward pass.")
        return
    labels = {
        span: "all layers" if span == "all" else f"layers {span_name(span)}"
        for span in tables.drop_spans(scores)
    }
    span = select_option("Layers", labels, "span") if labels else ""
    link = run_link(run.id, "items", item=item.id)
    charts.show(run, "drops_by_donor", choice._replace(span=span), evidence=link)
    rows = scores[scores["span"].isin((span, ""))]
    frame = pd.DataFrame(
        {
            "part": [metric_label(p) for p in rows["part"]],
            "kept": rows["keep"],
            "donor": rows["donor"].replace("", "none"),
            "draw": rows["sample"] + 1,
            "value": [components.number_text(v) for v in rows["value"]],
            "reason": rows["reason"].fillna(""),
        }
    )
    components.show_table(frame, f"draw-table-{item.id}", right_aligned_names=("value",))
