"""The page Robustness for a run whose robustness comes from the composite alone."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import reliability as tables
from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.metrics.composite import SCORER_BY_COMPONENT
from cotlab.ui import cached, components
from cotlab.ui.components import render_headline, show_cards
from cotlab.ui.item import evidence

COMPONENT_LABELS = {"R": "R", "R_sd": "Spread of the divergence"}


def has_only_composite(row: RunView) -> bool:
    """Return whether the composite measured robustness without the robustness scorer."""
    return "R" in evidence.composite_only_components(row)


def render_composite_suite(row: RunView) -> None:
    """Show robustness and dispersion over the suite and by item, and how to add the detail."""
    rows = _load_component_rows(row)
    if rows.empty:
        st.info("No item has been scored yet.")
        return
    means = tables.component_means(rows, cached.load_estimates(row.id, row.revision))
    if means.empty:
        st.info(
            "The means are estimated when the run ends or is stopped. Single items are in the table"
            " below."
        )
    else:
        headline = [(component, COMPONENT_LABELS[component]) for component in means["part"]]
        render_headline(means.assign(metric=means["part"]), headline)
        confidence = float(means["confidence"].iloc[0])
        st.caption(
            f"Means over n items, all perturbations together, with {100 * confidence:g} %"
            " intervals, from the composite."
        )
    show_cards("robustness", "robustness_dispersion")
    evidence.render_missing_detail_help(row, "R")
    st.header("Items")
    _render_item_table(row, rows, "composite-items")


def render_composite_item(row: RunView, item: Item) -> None:
    """Show the item's robustness and dispersion with their requests."""
    rows = _load_component_rows(row)
    _render_item_table(row, rows[rows["item_id"] == item.id], "composite-item")
    evidence.render_missing_detail_help(row, "R")


def _load_component_rows(row: RunView) -> pd.DataFrame:
    scores = cached.selected_scores(row.id, row.revision, ("feature",))
    return tables.component_scores(
        scores[scores["scorer"] != SCORER_BY_COMPONENT["R"]], tuple(COMPONENT_LABELS)
    )


def _render_item_table(row: RunView, rows: pd.DataFrame, key: str) -> None:
    rows_by_component = {
        component: rows[rows["part"] == component].set_index("item_id")
        for component in COMPONENT_LABELS
    }
    page_rows = rows_by_component["R"].iloc[
        components.page_slice(len(rows_by_component["R"]), f"{key}-page")
    ]
    spread = rows_by_component["R_sd"]["value"].reindex(page_rows.index)
    score_ids = map(evidence.score_id, page_rows["metric"], page_rows["facet"])
    table = pd.DataFrame(
        {
            "item": page_rows.index,
            "R": page_rows["value"].map(components.number_text),
            COMPONENT_LABELS["R_sd"]: spread.map(components.number_text),
            "requests": page_rows["evidence"].map(len),
            "behind it": [
                evidence.requests_cell(row, *arguments)
                for arguments in zip(page_rows.index, score_ids, page_rows["evidence"], strict=True)
            ],
            "why n/a": page_rows["reason"].where(page_rows["value"].isna(), ""),
        }
    )
    column_config = dict.fromkeys(COMPONENT_LABELS.values(), evidence.RIGHT_ALIGNED_COLUMN)
    height = "content" if len(table) < 13 else 460
    evidence.render_linked_table(table, key, column_config, height)
