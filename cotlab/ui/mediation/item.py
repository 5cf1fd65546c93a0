"""The page Mediation, one item: its tokens, values, and intervals over donors and draws."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import mediation as tables
from cotlab.analysis.tables.mediation import NATS, Setting
from cotlab.core.resources import page
from cotlab.core.types import Item
from cotlab.figures.mediation import metric_label
from cotlab.figures.span_heatmap import span_name, span_order
from cotlab.figures.style import ORANGE, VIRIDIS, interval_text
from cotlab.metrics.mediation.spread import RESAMPLES
from cotlab.ui import cached, components
from cotlab.ui.item import chain
from cotlab.ui.item.chain import Block, show_blocks
from cotlab.ui.mediation.suite import HEADLINE, IMPORTED, is_published
from cotlab.ui.pickers import select_option
from cotlab.ui.text import as_code

ROLES = {
    "chain": ("patched", VIRIDIS[3]),
    "question": ("control", ORANGE),
    "cue": ("untouched", None),
    "": ("untouched", None),
}
"""Role and colour of the tokens of each span."""
BETWEEN = "\u00a0· "
"""Separator of tokens; a line never starts with the dot."""
METRICS = ("cmi", "share", "mass_lost", "drop_cot", "drop_control")


def render_tokens(row: dict[str, Any], item: Item, setting: Setting) -> None:
    """Show the text as the model's tokens, grouped by role: patched, control or untouched."""
    if is_published(row):
        st.info("Imported: the published rows hold neither the text nor its tokens.")
        return
    scores = cached.mediation_scores(
        row["id"], int(row["revision"]), ("baseline_logp", "cmi"), item.id
    )
    keys = tuple(
        dict.fromkeys(key for entries in setting.of(scores)["evidence"] for key in entries)
    )
    entries = cached.exchanges(keys)
    replies = (
        entries.get(key, (None, None))[1] for key in keys
    )  # in the order of the evidence: the item's own reply is the first
    located = next(
        (reply["located"] for reply in replies if reply is not None and reply.get("located")), None
    )
    if located is None:
        reasons = scores["reason"].dropna()
        st.info(
            "The log holds no token positions of this"
            f" item{f': {as_code(str(reasons.iloc[0]))}' if len(reasons) else ''}."
        )
        return
    show_blocks(token_blocks(located), key=f"tokens-{row['id']}-{item.id}")
    st.caption(
        f"{len(located['pieces'])} tokens, separated by dots; positions count from 0. The"
        " chain's states are replaced at the input of each layer of a span"
        f" ({located['layers']} layers); control draws use as many positions of the question"
        " as the chain has, or all if it has fewer. The answer's own positions are never"
        " touched."
    )


def token_blocks(located: dict[str, Any]) -> list[Block]:
    """Return the groups of tokens with one role, in reading order."""
    role = {
        int(at): name for name, at_ in zip(ROLES, located["positions"], strict=False) for at in at_
    }
    pieces = [str(piece).replace("\n", "↵") for piece in located["pieces"]]
    blocks = []
    for i, (name, run) in enumerate(groupby(range(len(pieces)), key=lambda at: role.get(at, ""))):
        at = list(run)
        label, shade = ROLES[name]
        position_range = f"{at[0]}–{at[-1]}" if len(at) > 1 else f"{at[0]}"
        text = BETWEEN.join(pieces[k] for k in at)
        blocks.append(
            Block(
                i,
                f"{name or 'other'}: {label}",
                text,
                shade,
                f"{position_range} ({len(at)})",
                f"positions {position_range}",
            )
        )
    return blocks


def render_item_values(row: dict[str, Any], item: Item, setting: Setting) -> None:
    """Show the item's values with all layers patched."""
    scores = setting.of(cached.mediation_scores(row["id"], int(row["revision"]), None, item.id))
    scores = scores[scores["metric"] != "patch_drop"]
    full_depth = scores[scores["span"].isin(("all", "")) & (scores["keep"] == "")]
    headline = IMPORTED if is_published(row) else HEADLINE
    first = {str(r["metric"]): r for r in full_depth.to_dict("records")}
    bounds = item_spread_table(row, item, setting)
    bounds = bounds[(bounds["span"] == "all") & bounds["lo"].notna()].set_index("metric")

    def value_text(metric: str) -> str:
        if metric not in first or metric not in bounds.index:
            return components.number_text(first[metric]["value"]) if metric in first else "n/a"
        return interval_text(
            float(first[metric]["value"]),
            float(bounds.at[metric, "lo"]),
            float(bounds.at[metric, "hi"]),
        )

    components.show_numbers([(label, value_text(metric)) for metric, label in headline])
    if is_published(row):
        st.caption(
            "Values of this item alone, without an interval: the published rows hold no single"
            " draws."
        )
    else:
        st.caption(
            "Values of this item alone, with an interval over its donors and draws where"
            " there are enough of them."
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
        st.dataframe(frame, hide_index=True, key=f"values-{item.id}", column_config=_RIGHT)
    if is_published(row):
        return
    st.page_link(
        page("item"),
        label="Requests and replies",
        icon=":material/fact_check:",
        query_params={"run": row["id"], "item": item.id},
    )


def render_draws(row: dict[str, Any], item: Item, setting: Setting) -> None:
    """Show the raw drops of one span of layers, then the chain's entropy where it was measured."""
    _render_drops(row, item, setting)
    chain.render_entropy(row, item)


def _render_drops(row: dict[str, Any], item: Item, setting: Setting) -> None:
    drop_scores = setting.of(
        cached.mediation_scores(row["id"], int(row["revision"]), ("patch_drop",), item.id)
    )
    if drop_scores.empty:
        if not is_published(row):
            st.info("This item has no patched forward pass.")
        return
    labels = {
        span: "all layers" if span == "all" else f"layers {span_name(span)}"
        for span in tables.drop_spans(drop_scores)
    }
    span = select_option("Layers", labels, "span") if labels else ""
    visible = drop_scores[drop_scores["span"].isin((span, ""))]
    evidence = (page("item"), {"run": row["id"], "item": item.id})
    components.show_figure(
        "drops_by_donor", tables.drop_table(drop_scores, span), key="drops", evidence=evidence
    )
    part = visible.iloc[components.page_slice(len(visible), f"draws-{item.id}-{span}")]
    st.dataframe(
        pd.DataFrame(
            {
                "part": [metric_label(p) for p in part["part"]],
                "kept": part["keep"],
                "donor": part["donor"].replace("", "none"),
                "draw": part["sample"] + 1,
                "value": [components.number_text(v) for v in part["value"]],
                "reason": part["reason"].fillna(""),
            }
        ),
        hide_index=True,
        key=f"draw-table-{item.id}",
        column_config=_RIGHT,
    )


_RIGHT = {"value": st.column_config.TextColumn(alignment="right")}


def item_spread_table(row: dict[str, Any], item: Item, setting: Setting) -> pd.DataFrame:
    """Return each estimate of an item with its interval over donors and draws.

    It has no row where nothing was patched.
    """
    return _cached_spread_table(
        str(cached.store().folder),
        row["id"],
        int(row["revision"]),
        item.id,
        setting,
        cached.run_plan(row["id"]).seed,
    )


@st.cache_data(show_spinner="Resampling donors and draws", max_entries=64)
def _cached_spread_table(
    folder: str, run_id: str, revision: int, item_id: str, setting: Setting, seed: int
) -> pd.DataFrame:
    return tables.spread_table(
        cached.mediation_scores(run_id, revision, ("patch_drop",), item_id), setting, item_id, seed
    )


def render_item_density(row: dict[str, Any], item: Item, setting: Setting) -> None:
    """Show the item's CMI by the share of its positions that were patched."""
    drops = setting.of(
        cached.mediation_scores(row["id"], int(row["revision"]), ("patch_drop",), item.id)
    )
    curve = tables.item_density_table(item_spread_table(row, item, setting), drops)
    if curve.empty:
        return
    evidence = (page("item"), {"run": row["id"], "item": item.id})
    components.show_figure("item_density", curve, key="item-density", evidence=evidence)


def render_item_spread(row: dict[str, Any], item: Item, setting: Setting) -> None:
    """Show the item's values with intervals for every span of layers, all layers first.

    Published rows have no intervals.
    """
    if is_published(row):
        _published(row, item, setting)
        return
    spread = item_spread_table(row, item, setting)
    spread = spread[spread["metric"].isin(METRICS)]
    if spread.empty:
        return
    order = [
        (span_order(span), METRICS.index(metric))
        for span, metric in zip(spread["span"], spread["metric"], strict=True)
    ]
    spread = spread.assign(place=[(-kind, at, metric) for (kind, at), metric in order]).sort_values(
        "place"
    )
    visible = pd.DataFrame(
        {
            "layers": [span_name(str(span)) for span in spread["span"]],
            "value": [_named(m) for m in spread["metric"]],
            "value [95 % interval]": [
                components.estimate_text(r) for r in spread.to_dict("records")
            ],
            "drops": spread["draws"],
            "donors": spread["donors"],
            "resampled, or reason": [_how(r) for r in spread.to_dict("records")],
        }
    )
    st.dataframe(
        visible,
        hide_index=True,
        height=400 if len(visible) > 11 else "content",
        key=f"spread-{item.id}",
        column_config={
            "value [95 % interval]": st.column_config.TextColumn(alignment="right"),
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


def _how(row: dict[str, Any]) -> str:
    """Return what was resampled, or why there is no interval."""
    if isinstance(row["reason"], str):
        return row["reason"]
    return (
        str(row["method"])
        .removeprefix("bootstrap (percentile, ")
        .replace(f", {RESAMPLES} resamples)", "")
    )


def _published(row: dict[str, Any], item: Item, setting: Setting) -> None:
    """Show the published drops of each layer with the values derived from them."""
    scores = setting.of(cached.mediation_scores(row["id"], int(row["revision"]), METRICS, item.id))
    if scores.empty:
        st.info("The file holds no row of this item.")
        return
    rows = []
    for (span, _), group in scores.groupby(["span", "sample"]):
        values = {
            str(r["metric"]): components.number_text(r["value"]) for r in group.to_dict("records")
        }
        reasons = group["reason"].dropna()
        line = {
            "layers": span_name(str(span)),
            **{_named(m): values.get(m, "n/a") for m in METRICS},
        }
        rows.append(
            (
                span_order(str(span)),
                {**line, "why n/a": str(reasons.iloc[0]) if len(reasons) else ""},
            )
        )
    rows.sort(key=lambda pair: pair[0])
    right = st.column_config.TextColumn(alignment="right")
    st.dataframe(
        pd.DataFrame([line for _, line in rows]),
        hide_index=True,
        height=400 if len(rows) > 11 else "content",
        key=f"published-{item.id}",
        column_config={_named(metric): right for metric in METRICS}
        | {_named(m): _drop(m) for m in METRICS if m in NATS},
    )


def _named(metric: str) -> str:
    return f"{metric_label(metric)} (nats)" if metric in NATS else metric_label(metric)


def _drop(metric: str) -> Any:
    label = {"drop_cot": "Δ chain (nats)", "drop_control": "Δ control (nats)"}[metric]
    return st.column_config.TextColumn(label, alignment="right", help=metric_label(metric))
