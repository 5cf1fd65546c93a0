"""The part of the page Mediation that says how far one item's values move with its donors and draws."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import mediation as tables
from cotlab.analysis.tables.mediation import NATS, Setting
from cotlab.core.types import Item
from cotlab.figures.mediation import metric_label
from cotlab.figures.span_heatmap import span_name, span_order
from cotlab.metrics.mediation.spread import RESAMPLES
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.links import page
from cotlab.ui.mediation.suite import is_published

METRICS = ("cmi", "share", "mass_lost", "drop_cot", "drop_control")


def item_spread_table(row: dict[str, Any], item: Item, setting: Setting) -> pd.DataFrame:
    """Each estimator of this item and setting with its interval over donors and draws; no row where nothing was patched."""
    return _spreads(
        str(data.store().folder),
        row["id"],
        int(row["revision"]),
        item.id,
        setting,
        data.run_plan(row["id"]).seed,
    )


@st.cache_data(show_spinner="Resampling donors and draws", max_entries=64)
def _spreads(
    folder: str, run_id: str, revision: int, item_id: str, setting: Setting, seed: int
) -> pd.DataFrame:
    return tables.spread_table(
        data.mediation_scores(run_id, revision, ("patch_drop",), item_id), setting, item_id, seed
    )


def render_item_density(row: dict[str, Any], item: Item, setting: Setting) -> None:
    """CMI of this item by the share of its positions patched."""
    drops = setting.of(
        data.mediation_scores(row["id"], int(row["revision"]), ("patch_drop",), item.id)
    )
    curve = tables.item_density_table(item_spread_table(row, item, setting), drops)
    if curve.empty:
        return
    evidence = (page("item"), {"run": row["id"], "item": item.id})
    parts.show_figure("item_density", curve, key="item-density", evidence=evidence)


def render_item_spread(row: dict[str, Any], item: Item, setting: Setting) -> None:
    """Every span's values of this item with their intervals, all layers first; of published rows without intervals."""
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
            "value [95 % interval]": [parts.estimate_text(r) for r in spread.to_dict("records")],
            "drops": spread["draws"],
            "donors": spread["donors"],
            "resampled, or why not": [_how(r) for r in spread.to_dict("records")],
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
                width=65, help="Patched forwards that the value rests on."
            ),
            "donors": st.column_config.NumberColumn(
                width=70, help="Items whose states were put in the place of this item's."
            ),
            "resampled, or why not": st.column_config.TextColumn(width="large"),
        },
    )
    st.caption(
        f"Percentile bootstrap over the donors and draws of this item alone, {RESAMPLES:,}"
        " resamples: as many donors are drawn again, with replacement, and then as many of each"
        " donor's drops. The intervals say how far a value would move with other donors, not how"
        " sure it is for another item. Donors are few, so an interval is rather too narrow than"
        " too wide. Below 5 drops there is none."
    )


def _how(row: dict[str, Any]) -> str:
    """What was drawn again, or why there is no interval."""
    if isinstance(row["reason"], str):
        return row["reason"]
    return (
        str(row["method"])
        .removeprefix("bootstrap (percentile, ")
        .replace(f", {RESAMPLES} resamples)", "")
    )


def _published(row: dict[str, Any], item: Item, setting: Setting) -> None:
    """The published drops of each layer, and what follows from them."""
    scores = setting.of(data.mediation_scores(row["id"], int(row["revision"]), METRICS, item.id))
    if scores.empty:
        st.info("The file holds no row of this item.")
        return
    rows = []
    for (span, _), group in scores.groupby(["span", "sample"]):
        values = {str(r["metric"]): parts.number_text(r["value"]) for r in group.to_dict("records")}
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
