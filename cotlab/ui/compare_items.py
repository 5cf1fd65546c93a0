"""The page Compare, one metric in detail: by category, by item, and the settings that differ."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.compare import Comparison, ComparisonSet, compare_by_category
from cotlab.analysis.paired import RATE_METRIC, PairedRow, changed_values
from cotlab.analysis.readable import readable_value
from cotlab.analysis.tables.comparison import (
    MAX_BARS,
    bar_row,
    metric_unit,
    row_label,
    version_warning,
)
from cotlab.core.keys import canonical_json
from cotlab.figures.style import format_number
from cotlab.ui import cached, charts, components
from cotlab.ui.compare import ComparisonView
from cotlab.ui.components import csv_button
from cotlab.ui.linked import show_linked_frame
from cotlab.ui.metric_names import metric_name
from cotlab.ui.pickers import select_option
from cotlab.ui.places import run_link
from cotlab.ui.text import escape_markdown


class MetricChoice(NamedTuple):
    """The comparison and the metric that are shown in detail."""

    comparison: Comparison
    """One run compared with the base."""
    row: PairedRow
    """The metric, with its difference."""


@cached.cache_by_store(16, "Comparing by category")
def _category_rows(
    run_revisions: tuple[tuple[str, int], ...], _comparison: Comparison, metric: str, facet: str
) -> tuple[PairedRow, ...]:
    pairs = _comparison.pairs
    filtered_comparison = replace(
        _comparison, pairs=pairs[(pairs["metric"] == metric) & (pairs["facet"] == facet)]
    )
    results = compare_by_category(
        cached.store(), ComparisonSet(_comparison.base, (filtered_comparison,), ())
    )
    return results.comparisons[0].rows


def select_compared_metric(view: ComparisonView) -> MetricChoice:
    """Choose the comparison and the metric to show in detail."""
    st.header("One metric in detail")
    with st.container(horizontal=True):
        comparison = next(c for c in view.results.comparisons if c.other == view.pair_run)
        row_by_key = {
            f"{row.metric} {canonical_json(dict(row.facet))}": row for row in comparison.rows
        }
        labels = {key: _metric_label(row, comparison) for key, row in row_by_key.items()}
        p_key_pairs = sorted(
            (2.0 if row.p is None else row.p, key)
            for key, row in row_by_key.items()
            if row.metric == RATE_METRIC
        )
        chosen_key = select_option(
            "Metric", labels, "metric", p_key_pairs[0][1] if p_key_pairs else None
        )
    return MetricChoice(comparison, row_by_key[chosen_key])


def render_category_differences(view: ComparisonView, choice: MetricChoice) -> None:
    """Show the metric's difference within each category."""
    facet = canonical_json(dict(choice.row.facet))
    run_revisions = tuple(
        (i, view.revision_by_run[i]) for i in (choice.comparison.base, choice.comparison.other)
    )
    rows = _category_rows(run_revisions, choice.comparison, choice.row.metric, facet)
    if len(rows) < 2:
        common_category = rows and rows[0].category
        st.caption(
            "All matched items have the same category."
            if common_category
            else "The items have no categories."
        )
        return
    unit = metric_unit(view.card_by_metric, choice.row.metric)
    bars = pd.DataFrame([bar_row(row, row.category or "(no category)", unit) for row in rows])
    bars = bars.assign(of=f"{row_label(choice.row, choice.comparison.rows)} by category")
    page_rows = bars.iloc[components.page_slice(len(bars), "category-bars", MAX_BARS)]
    adjusted_ps = [row.adjusted for row in rows if row.adjusted is not None]
    charts.show_figure(
        "paired_differences",
        page_rows,
        key="categories",
        note=(
            f"{len(adjusted_ps)} tests over the categories; smallest BH p:"
            f" {format_number(min(adjusted_ps)) if adjusted_ps else 'n/a'}."
        ),
        evidence=run_link(choice.comparison.other),
    )


def render_changed_items(view: ComparisonView, choice: MetricChoice) -> None:
    """List the items that improved or regressed, with links to both runs."""
    card = view.card_by_metric.get(choice.row.metric)
    better_direction = card.better if card is not None else "neither"
    changed_items = changed_values(
        choice.comparison.pairs,
        choice.row.metric,
        canonical_json(dict(choice.row.facet)),
        better_direction,
    )
    st.header("Changed items")
    if changed_items.empty:
        st.info("No matched item changed in this metric.")
        return
    counts = changed_items["change"].value_counts().sort_index()
    counts_text = ", ".join(f"{n} {name}" for name, n in counts.items())
    labels = {"all": f"All: {counts_text}", **{str(name): str(name) for name in counts.index}}
    chosen_change = select_option("Show", labels, "change")
    rows = (
        changed_items
        if chosen_change == "all"
        else changed_items[changed_items["change"] == chosen_change]
    )
    page_rows = rows.iloc[components.page_slice(len(rows), "changed-page")]
    frame = pd.DataFrame(
        {
            "item": page_rows["item_id"],
            "category": page_rows["category"],
            "change": page_rows["change"],
            **{
                side: [
                    format_number(readable_value(choice.row.metric, value))
                    for value in page_rows[side]
                ]
                for side in ("base", "other")
            },
            "difference": page_rows["difference"].map(format_number),
        }
    )
    links = {
        side: [run_link(run, "items", item=i) for i in page_rows["item_id"]]
        for side, run in (("base", choice.comparison.base), ("other", choice.comparison.other))
    }
    show_linked_frame(
        "Changed items",
        frame,
        links,
        key=f"changed-{chosen_change}",
        number_names=("base", "other", "difference"),
        help_by_name=dict.fromkeys(links, "Its value; opens the item in that run."),
    )
    csv_button("changed-items", rows, "changed")
    st.caption(
        f"{len(page_rows)} of {len(rows)} changed items, of {choice.row.n} matched; the largest"
        " change first."
    )


def render_missing_items(view: ComparisonView, choice: MetricChoice) -> None:
    """List why items have no value, for each run."""
    reasons_by_side = {"base": choice.row.missing_base, "other": choice.row.missing_other}
    rows = [
        {"side": side, "items": n, "why": reason}
        for side, reasons in reasons_by_side.items()
        for reason, n in reasons.items()
    ]
    if not rows:
        st.caption("No item is missing on either side in this metric.")
        return
    st.header("Missing items")
    components.show_table(pd.DataFrame(rows), "missing")


def render_plan_differences(view: ComparisonView) -> None:
    """List the settings in which the plans differ."""
    for comparison in view.results.comparisons:
        if warning := version_warning(comparison):
            st.warning(escape_markdown(f"{view.short_label(comparison.other)}: {warning}"))
        with st.expander(
            f"Settings that differ: {len(comparison.changes)}"
            f" ({escape_markdown(view.short_label(comparison.other))})"
        ):
            if not comparison.changes:
                st.caption("The two plans are the same.")
            else:
                components.show_table(
                    pd.DataFrame(list(comparison.changes)), f"settings-{comparison.other}"
                )
            with st.container(horizontal=True):
                components.page_link("run", "Base", "monitoring", {"run": comparison.base})
                components.page_link("run", "Other", "monitoring", {"run": comparison.other})


def _metric_label(row: PairedRow, comparison: Comparison) -> str:
    """Return the metric's name for readers, with the facet that distinguishes the row."""
    label = row_label(row, comparison.rows)
    return metric_name(row.metric) + label.removeprefix(row.metric)
