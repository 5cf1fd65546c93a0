"""The page Robustness for a run whose robustness comes from the composite alone."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import reliability as tables
from cotlab.core.types import Item
from cotlab.metrics.composite.scorer import SCORER_OF
from cotlab.ui import cached, components
from cotlab.ui.item import evidence

NAMES = {"R": "R", "R_sd": "Dispersion of D"}


def has_only_composite(row: dict[str, Any]) -> bool:
    """Return whether the composite measured robustness without the robustness scorer."""
    return "R" in evidence.missing_components(row)


def render_composite_suite(row: dict[str, Any]) -> None:
    """Show robustness and dispersion over the suite and by item, and how to add the detail."""
    rows = _rows(row)
    if rows.empty:
        st.info("No item has been scored yet.")
        return
    means = tables.component_means(rows, cached.estimates(row["id"], int(row["revision"])))
    if means.empty:
        st.info(
            "The means are estimated when the run ends or is stopped. Single items are in the table"
            " below."
        )
    else:
        by_component = means.set_index("part").to_dict("index")
        components.show_numbers(
            [
                (f"{NAMES[p]}, n = {int(r['n'])}", components.estimate_text(r))
                for p, r in by_component.items()
            ]
        )
        components.plain_list(
            [
                f"{NAMES[p]}: n/a, {r['reason']}."
                for p, r in by_component.items()
                if pd.isna(r["point"])
            ]
        )
        level = float(means["confidence"].iloc[0])
        st.caption(
            f"Means over n items, all perturbations together, with {100 * level:g} % intervals,"
            " from the composite."
        )
    with st.container(horizontal=True):
        for part in NAMES:
            components.show_card({"R": "robustness", "R_sd": "robustness_dispersion"}[part])
    evidence.render_how_to_add(row, "R")
    st.subheader("Items")
    _table(row, rows, "composite-items")


def render_composite_item(row: dict[str, Any], item: Item) -> None:
    """Show the item's robustness and dispersion with their requests."""
    rows = _rows(row)
    _table(row, rows[rows["item_id"] == item.id], "composite-item")
    evidence.render_how_to_add(row, "R")


def _rows(row: dict[str, Any]) -> pd.DataFrame:
    scores = cached.selected_scores(row["id"], int(row["revision"]), ("feature",))
    return tables.component_scores(scores[scores["scorer"] != SCORER_OF["R"]], tuple(NAMES))


def _table(row: dict[str, Any], rows: pd.DataFrame, key: str) -> None:
    wide = {part: rows[rows["part"] == part].set_index("item_id") for part in NAMES}
    names = wide["R"].index.tolist()
    names = names[components.page_slice(len(names), f"{key}-page")]
    of = wide["R"].loc[names]
    ids = [
        evidence.score_id(metric, facet)
        for metric, facet in zip(of["metric"], of["facet"], strict=True)
    ]
    spread = wide["R_sd"]["value"].reindex(names)
    reasons = [
        "" if not pd.isna(v) else str(r) for v, r in zip(of["value"], of["reason"], strict=True)
    ]
    frame = pd.DataFrame(
        {
            "item": names,
            "R": [components.number_text(v) for v in of["value"]],
            NAMES["R_sd"]: [components.number_text(v) for v in spread],
            "requests": [len(keys) for keys in of["evidence"]],
            "behind it": [
                evidence.requests_cell(row, *arguments)
                for arguments in zip(names, ids, of["evidence"], strict=True)
            ],
            "why n/a": reasons,
        }
    )
    right = st.column_config.TextColumn(alignment="right")
    st.dataframe(
        frame,
        hide_index=True,
        key=key,
        placeholder=evidence.NO_LINK,
        height="content" if len(frame) < 13 else 460,
        column_config={
            "R": right,
            NAMES["R_sd"]: right,
            "behind it": evidence.LINK,
            "why n/a": st.column_config.TextColumn("reason", width="large"),
        },
    )
