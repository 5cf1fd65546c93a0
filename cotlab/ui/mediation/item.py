"""The parts of the page Mediation that are about one item: its tokens, its numbers, its draws."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import mediation as tables
from cotlab.analysis.tables.mediation import Setting
from cotlab.core.types import Item
from cotlab.figures.mediation import metric_label
from cotlab.figures.span_heatmap import span_name
from cotlab.figures.style import ORANGE, VIRIDIS, interval_text
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.item import entropy
from cotlab.ui.item.chain_view import Block, show_blocks
from cotlab.ui.links import page
from cotlab.ui.mediation import spread as mediation_spread
from cotlab.ui.mediation.suite import HEADLINE, IMPORTED, is_published
from cotlab.ui.text import as_code

ROLES = {
    "chain": ("patched", VIRIDIS[3]),
    "question": ("control", ORANGE),
    "cue": ("untouched", None),
    "": ("untouched", None),
}
"""What happens to the tokens of each span, and the colour that says so."""
BETWEEN = "\u00a0· "
"""A line never begins with the dot."""


def render_tokens(row: dict[str, Any], item: Item, setting: Setting) -> None:
    """The text as the model's tokens, in runs of one role: patched, control, or left alone."""
    if is_published(row):
        st.info("Imported: the published rows hold neither the text nor its tokens.")
        return
    scores = data.mediation_scores(
        row["id"], int(row["revision"]), ("baseline_logp", "cmi"), item.id
    )
    keys = tuple(
        dict.fromkeys(key for entries in setting.of(scores)["evidence"] for key in entries)
    )
    entries = data.exchanges(keys)
    replies = (
        entries.get(key, (None, None))[1] for key in keys
    )  # in the order of the evidence: the item's own comes first
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
        f"{len(located['pieces'])} tokens, a dot between two; positions count from 0. The chain's"
        f" states are replaced at the input of each layer of a span ({located['layers']} layers);"
        " control draws take as many positions of the question as the chain has, or all where it"
        " has fewer. The answer's own positions are never touched."
    )


def token_blocks(located: dict[str, Any]) -> list[Block]:
    """Runs of tokens with one role, in reading order."""
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
    """The item's own values of all layers."""
    scores = setting.of(data.mediation_scores(row["id"], int(row["revision"]), None, item.id))
    scores = scores[scores["metric"] != "patch_drop"]
    full_depth = scores[scores["span"].isin(("all", "")) & (scores["keep"] == "")]
    headline = IMPORTED if is_published(row) else HEADLINE
    first = {str(r["metric"]): r for r in full_depth.to_dict("records")}
    bounds = mediation_spread.item_spread_table(row, item, setting)
    bounds = bounds[(bounds["span"] == "all") & bounds["lo"].notna()].set_index("metric")

    def value_text(metric: str) -> str:
        if metric not in first or metric not in bounds.index:
            return parts.number_text(first[metric]["value"]) if metric in first else "n/a"
        return interval_text(
            float(first[metric]["value"]),
            float(bounds.at[metric, "lo"]),
            float(bounds.at[metric, "hi"]),
        )

    parts.show_numbers([(label, value_text(metric)) for metric, label in headline])
    if is_published(row):
        st.caption(
            "Values of this item alone, without an interval: the published rows hold no single"
            " draws."
        )
    else:
        st.caption(
            "Values of this item alone, with an interval over its donors and draws where they can"
            " give one."
        )
    with st.expander("All values of this item"):
        frame = pd.DataFrame(
            {
                "metric": [metric_label(m) for m in scores["metric"]],
                "span": scores["span"],
                "kept": scores["keep"],
                "value": [parts.number_text(v) for v in scores["value"]],
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
    """Raw drops of one span, by part and donor, and as a table; below them the chain's entropy, where it was measured."""
    _drops(row, item, setting)
    entropy.render_entropy(row, item)


def _drops(row: dict[str, Any], item: Item, setting: Setting) -> None:
    drop_scores = setting.of(
        data.mediation_scores(row["id"], int(row["revision"]), ("patch_drop",), item.id)
    )
    if drop_scores.empty:
        if not is_published(row):
            st.info("This item has no patched forward.")
        return
    labels = {
        span: "all layers" if span == "all" else f"layers {span_name(span)}"
        for span in tables.drop_spans(drop_scores)
    }
    span = parts.select_option("Layers", labels, "span") if labels else ""
    visible = drop_scores[drop_scores["span"].isin((span, ""))]
    evidence = (page("item"), {"run": row["id"], "item": item.id})
    parts.show_figure(
        "drops_by_donor", tables.drop_table(drop_scores, span), key="drops", evidence=evidence
    )
    part = visible.iloc[parts.page_slice(len(visible), f"draws-{item.id}-{span}")]
    st.dataframe(
        pd.DataFrame(
            {
                "part": [metric_label(p) for p in part["part"]],
                "kept": part["keep"],
                "donor": part["donor"].replace("", "none"),
                "draw": part["sample"] + 1,
                "value": [parts.number_text(v) for v in part["value"]],
                "reason": part["reason"].fillna(""),
            }
        ),
        hide_index=True,
        key=f"draw-table-{item.id}",
        column_config=_RIGHT,
    )


_RIGHT = {"value": st.column_config.TextColumn(alignment="right")}
