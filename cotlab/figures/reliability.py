"""Components of reliability over a suite and in one item, and rates of diagnoses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.cells import draw_pair_matrix
from cotlab.figures.declare import Row, figure, float_value, in_order, table_records, text_value
from cotlab.figures.layout import apply_style
from cotlab.figures.marks import Mark, missing_notes
from cotlab.figures.rows import (
    add_mean_line,
    add_row_text,
    draw_estimate_rows,
    name_rows,
    set_axis_range,
)

COMPONENT_ORDER = ("C", "R", "V", "D", "F", "r_raw")
"""Components in the order of the source's section 11, the composite last."""
PART_NAMES = {
    "C": "C consistency",
    "R": "R robustness",
    "V": "V verification",
    "D": "D diversity",
    "F": "F flags",
    "r_raw": "r_raw",
}


@figure(
    "reliability_parts",
    columns=("part", "point", "lo", "hi", "n", "n_undefined", "reason"),
    caption=(
        "Mean of each part, and of the composite, over the items where it is defined. C and R are"
        " in [−1, 1], the others in [0, 1]; the parts are different quantities, so their values are"
        " not comparable. None of them shows whether the model used its chain."
    ),
    empty_reason="no part has been estimated.",
)
def reliability_parts(table: pd.DataFrame) -> Any:
    """Draw a row for each part with its interval and n at the right."""
    rows = order_components(table_records(table))
    marks = [Mark("", i, _part_name(row), row) for i, row in enumerate(rows)]
    return draw_estimate_rows(marks, "Parts of reliability (mean over items, no unit)", x="Mean")


@figure(
    "diagnosis_rates",
    columns=("rule", "point", "lo", "hi", "n", "n_undefined", "reason"),
    caption=(
        "Of the items where all numbers of a rule are defined. A rule names a pattern, not its"
        " cause; an item may match several."
    ),
    empty_reason="no diagnosis has been estimated.",
)
def diagnosis_rates(table: pd.DataFrame) -> Any:
    """Draw a row for each rule with its rate and interval."""
    rows = table_records(table)
    marks = [
        Mark("", i, str(row["rule"]).replace("_", " "), row, is_share=True)
        for i, row in enumerate(rows)
    ]
    return draw_estimate_rows(marks, "Items in which each diagnosis fires (%)", x="Items (%)")


@figure(
    "item_parts",
    columns=("part", "value", "mean", "reason"),
    caption="A bar is a single measurement and has no interval.",
    empty_reason="no part has been measured in this item.",
)
def item_parts(table: pd.DataFrame) -> Any:
    """Draw a bar for each part with its number at the right."""
    rows = order_components(table_records(table))
    fig = go.Figure()
    defined_rows = [
        (row_position, row)
        for row_position, row in enumerate(rows)
        if float_value(row, "value") is not None
    ]
    fig.add_bar(
        x=[float(row["value"]) for _, row in defined_rows],
        y=[row_position for row_position, _ in defined_rows],
        orientation="h",
        width=0.62,
        hoverinfo="text",
        marker={"color": style.with_opacity(style.hue(style.ACCENT_COLOUR), 0.75)},
        showlegend=False,
        hovertext=[
            f"<b>{style.escape(_part_name(row))}</b><br>"
            f"{style.format_number(float_value(row, 'value'))}"
            for _, row in defined_rows
        ],
    )
    for row_position, row in enumerate(rows):
        value, mean = float_value(row, "value"), float_value(row, "mean")
        suite_text = f"  (suite {style.format_number(mean)})" if mean is not None else ""
        text = f"{style.format_number(value)}{suite_text}"
        if value is not None and mean is not None:
            add_mean_line(fig, mean, row_position)
        add_row_text(fig, row_position, "n/a" if value is None else text)
    values = [float_value(row, column) for row in rows for column in ("value", "mean")]
    set_axis_range(fig, [value for value in values if value is not None])
    notes = missing_notes(
        (text_value(row, "reason") or "not measured", _part_name(row))
        for row in rows
        if float_value(row, "value") is None
    )
    name_rows(fig, [_part_name(row) for row in rows], 24)
    return apply_style(
        fig,
        "Parts of reliability in this item (no unit)",
        subtitle=["Line: mean of the suite.", *notes],
        x="Value",
        height=90 + 40 * len(rows),
    )


def order_components(rows: Sequence[Row]) -> list[Row]:
    """Sort rows by COMPONENT_ORDER, others last."""
    parts = in_order((row["part"] for row in rows), COMPONENT_ORDER)
    return sorted(rows, key=lambda row: parts.index(str(row["part"])))


def _part_name(row: Row) -> str:
    """Return the display name of a part."""
    return PART_NAMES.get(str(row["part"]), str(row["part"]))


@figure(
    "signal_correlation",
    columns=("one", "other", "point", "lo", "hi", "n", "reason"),
    caption=(
        "Spearman's rank correlation of each two parts over the items where both are defined."
        " Signals that complement each other are near 0; near ±1 one of the two adds nothing. The"
        " correlation does not show which of them is right."
    ),
    empty_reason="fewer than two parts have been measured.",
)
def signal_correlation(table: pd.DataFrame) -> Any:
    """Draw cells from orange (−1) to blue (1) with rho and n."""
    subtitle = [
        "Each cell: rho and number of items; intervals in the data. Blue above 0, orange below,"
        " pale at 0."
    ]
    return draw_pair_matrix(
        table_records(table),
        "Rank correlation of the parts (Spearman's rho, −1 to 1)",
        subtitle,
        "items",
    )


@figure(
    "chain_cosines",
    columns=("one", "other", "point", "reason"),
    caption=(
        "Cosine of each two chains; the vector of a chain is the mean of the unit vectors of its"
        " steps. μ and σ are mean and standard deviation of the cosines. Sentences about one"
        " subject are similar whatever they conclude: see the rescaled consistency."
    ),
    empty_reason="fewer than two chains have a vector.",
)
def chain_cosines(table: pd.DataFrame) -> Any:
    """Draw cells from orange (−1) to blue (1) with the cosine."""
    return draw_pair_matrix(
        table_records(table),
        "Cosine of the chains (−1 to 1)",
        ["One pair of chains a cell: a value, no estimate."],
        "",
    )
