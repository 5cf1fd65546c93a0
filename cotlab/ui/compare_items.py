"""The page Compare, one metric in detail: by category, by item, and the settings that differ."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple
from urllib.parse import quote

import pandas as pd
import streamlit as st

from cotlab.analysis.compare import (
    Compared,
    Comparison,
    compare_by_category,
)
from cotlab.analysis.paired import (
    RATE,
    PairedRow,
    changed_values,
)
from cotlab.analysis.tables.comparison import (
    MAX_BARS,
    bar_row,
    row_label,
    unit_of,
)
from cotlab.core.keys import canonical_json
from cotlab.core.resources import page
from cotlab.figures.style import format_number
from cotlab.ui import cached, components
from cotlab.ui.compare import ComparisonView
from cotlab.ui.components import csv_button
from cotlab.ui.pickers import select_option
from cotlab.ui.text import as_code


class Choice(NamedTuple):
    """The comparison and the metric that are shown in detail."""

    comparison: Comparison
    """One run compared with the base."""
    row: PairedRow
    """The metric, with its difference."""


@st.cache_data(show_spinner="Comparing by category", max_entries=16)
def _by_category(
    folder: str, runs: tuple[tuple[str, int], ...], _comparisons: Compared, metric: str, facet: str
) -> Compared:
    filtered = []
    for c in _comparisons.comparisons:
        mask = (c.pairs["metric"] == metric) & (c.pairs["facet"] == facet)
        filtered.append(replace(c, pairs=c.pairs[mask]))
    return compare_by_category(cached.store(), Compared(_comparisons.base, tuple(filtered), ()))


def select_compared_metric(view: ComparisonView) -> Choice:
    """Choose the comparison and the metric to show in detail."""
    st.subheader("One metric in detail")
    with st.container(horizontal=True):
        others = {c.other: view.labels[c.other] for c in view.compared.comparisons}
        other = select_option("Run", others, "with") if len(others) > 1 else next(iter(others))
        comparison = next(c for c in view.compared.comparisons if c.other == other)
        keys = {f"{row.metric} {canonical_json(dict(row.facet))}": row for row in comparison.rows}
        labels = {key: _label(row, comparison) for key, row in keys.items()}
        rates = sorted(
            (2.0 if row.p is None else row.p, key)
            for key, row in keys.items()
            if row.metric == RATE
        )
        chosen = select_option("Metric", labels, "metric", rates[0][1] if rates else None)
    return Choice(comparison, keys[chosen])


def render_category_differences(view: ComparisonView, choice: Choice) -> None:
    """Show the metric's difference within each category."""
    facet = canonical_json(dict(choice.row.facet))
    runs = tuple((i, view.revisions[i]) for i in (choice.comparison.base, choice.comparison.other))
    compared = _by_category(
        str(cached.store().folder),
        runs,
        Compared(view.compared.base, (choice.comparison,), ()),
        choice.row.metric,
        facet,
    )
    rows = compared.comparisons[0].rows
    if len(rows) < 2:
        of = rows[0].category if rows else ""
        st.caption(
            "All matched items have the same category." if of else ("The items have no categories.")
        )
        return
    unit = unit_of(view.cards, choice.row.metric)
    bars = pd.DataFrame([bar_row(row, row.category or "(no category)", unit) for row in rows])
    bars = bars.assign(of=f"{row_label(choice.row, choice.comparison.rows)} by category")
    part = bars.iloc[components.page_slice(len(bars), "category-bars", MAX_BARS)]
    smallest = [row.adjusted for row in rows if row.adjusted is not None]
    components.show_figure(
        "paired_differences",
        part,
        key="categories",
        note=(
            f"{len(smallest)} tests over the categories; smallest BH p:"
            f" {format_number(min(smallest)) if smallest else 'n/a'}."
        ),
        evidence=(page("run"), {"run": choice.comparison.other}),
    )


def render_changed_items(view: ComparisonView, choice: Choice) -> None:
    """List the items that improved or regressed, with links to both runs."""
    card = view.cards.get(choice.row.metric)
    better = card.better if card is not None else "neither"
    moved = changed_values(
        choice.comparison.pairs, choice.row.metric, canonical_json(dict(choice.row.facet)), better
    )
    counts = moved["change"].value_counts().to_dict()
    st.subheader("Changed items")
    if moved.empty:
        st.info("No matched item changed in this metric.")
        return
    counts_text = ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))
    kinds = select_option(
        "Show",
        {"all": f"All: {counts_text}", **{str(name): str(name) for name in sorted(counts)}},
        "change",
    )
    rows = moved if kinds == "all" else moved[moved["change"] == kinds]
    part = rows.iloc[components.page_slice(len(rows), "changed-page")]
    frame = pd.DataFrame(
        {
            "base item": [_item_link(choice.comparison.base, i) for i in part["item_id"]],
            "other item": [_item_link(choice.comparison.other, i) for i in part["item_id"]],
            "item": part["item_id"],
            "category": part["category"],
            "change": part["change"],
            "base": part["base"].map(format_number),
            "other": part["other"].map(format_number),
            "difference": part["difference"].map(format_number),
        }
    )
    right = components.right_aligned("base", "other", "difference")
    st.dataframe(
        frame,
        hide_index=True,
        key=f"changed-{kinds}",
        height="content" if len(frame) < 13 else 460,
        column_config={
            "base item": st.column_config.LinkColumn(
                "base item", display_text="open", width="small"
            ),
            "other item": st.column_config.LinkColumn(
                "other item", display_text="open", width="small"
            ),
            **right,
        },
    )
    csv_button("changed-items", rows, "changed")
    st.caption(
        f"{len(part)} of {len(rows)} changed items, of {choice.row.n} matched; the largest change"
        " first."
    )


def render_missing_items(view: ComparisonView, choice: Choice) -> None:
    """List why items have no value, for each run."""
    rows = [
        {"side": side, "items": n, "why": reason}
        for side, reasons in (
            ("base", choice.row.missing_base),
            ("other", choice.row.missing_other),
        )
        for reason, n in reasons.items()
    ]
    if not rows:
        st.caption("No item is missing on either side in this metric.")
        return
    st.subheader("Missing items")
    st.dataframe(pd.DataFrame(rows), hide_index=True, key="missing")


def render_plan_differences(view: ComparisonView) -> None:
    """List the settings in which the plans differ."""
    for c in view.compared.comparisons:
        with st.expander(
            f"Settings that differ: {len(c.changes)} ({as_code(view.short(c.other))})"
        ):
            if not c.changes:
                st.caption("The two plans are the same.")
            else:
                st.dataframe(
                    pd.DataFrame(
                        [(x.setting, x.base, x.other) for x in c.changes],
                        columns=["setting", "base", "other"],
                    ),
                    hide_index=True,
                    key=f"settings-{c.other}",
                )
            with st.container(horizontal=True):
                for side, run_id in (("Base", c.base), ("Other", c.other)):
                    st.page_link(
                        page("run"),
                        label=side,
                        icon=":material/monitoring:",
                        query_params={"run": run_id},
                    )


def _label(row: PairedRow, comparison: Comparison) -> str:
    """Return the metric's name for readers, with the facet that distinguishes the row."""
    label = row_label(row, comparison.rows)
    return components.metric_name(row.metric) + label.removeprefix(row.metric)


def _item_link(run_id: str, item: str) -> str:
    """Return the address of an item's page."""
    return f"/item?run={quote(run_id, safe='')}&item={quote(item, safe='')}"
