"""Components of reliability over a suite and in one item, and rates of diagnoses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.cells import Cell, draw_cells
from cotlab.figures.declare import figure
from cotlab.figures.marks import (
    Mark,
    Row,
    draw_rows,
    float_value,
    int_value,
    subtitle_notes,
    table_records,
    text_value,
)
from cotlab.figures.span_heatmap import signed_shade

COMPONENT_ORDER = ("C", "R", "V", "D", "F", "r_raw")
"""Components in the order of the source's section 11, the composite last."""
NAMES = {
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
    empty="no part has been estimated.",
)
def reliability_parts(table: pd.DataFrame) -> Any:
    """Draw a row for each part with its interval and n at the right; n/a with its reason."""
    rows = order_components(table_records(table))
    marks = [
        Mark("", i, NAMES.get(str(row["part"]), str(row["part"])), row)
        for i, row in enumerate(rows)
    ]
    fig = _rows(marks, "Parts of reliability (mean over items, no unit)", "Mean")
    return fig.update_layout(margin={"r": 204})


@figure(
    "diagnosis_rates",
    columns=("rule", "point", "lo", "hi", "n", "n_undefined", "reason"),
    caption=(
        "Share of items in which each rule fires, of those where all of its numbers are defined. A"
        " rule names a pattern, not its cause; an item may match several."
    ),
    empty="no diagnosis has been estimated.",
)
def diagnosis_rates(table: pd.DataFrame) -> Any:
    """Draw a row for each rule with its rate and interval; n/a with its reason."""
    rows = table_records(table)
    marks = [Mark("", i, str(row["rule"]).replace("_", " "), row) for i, row in enumerate(rows)]
    fig = _rows(marks, "Items in which each diagnosis fires (share, 0 to 1)", "Share of items")
    return fig.update_layout(margin={"r": 204})


def _rows(marks: Sequence[Mark], title: str, x: str) -> Any:
    """Draw marks as rows with an axis of values."""
    fig = go.Figure()
    draw_rows(fig, marks)
    _across(fig, [v for mark in marks for v in (mark.point, mark.lo, mark.hi) if v is not None])
    _names(fig, [mark.at for mark in marks])
    return style.apply_style(
        fig, title, subtitle=subtitle_notes(marks, gaps=False), x=x, height=140 + 40 * len(marks)
    )


@figure(
    "item_parts",
    columns=("part", "value", "mean", "reason"),
    caption=(
        "Parts of one item as bars, and the mean of the suite as a line. A bar is a single"
        " measurement and has no interval."
    ),
    empty="no part has been measured in this item.",
)
def item_parts(table: pd.DataFrame) -> Any:
    """Draw a bar for each part with its number; an undefined part has its reason instead."""
    rows = order_components(table_records(table))
    fig = go.Figure()
    known = [(i, row) for i, row in enumerate(rows) if float_value(row, "value") is not None]
    fig.add_bar(
        x=[float(row["value"]) for _, row in known],
        y=[i for i, _ in known],
        orientation="h",
        width=0.62,
        hoverinfo="text",
        marker={"color": style.faded(style.ACCENT, 0.75)},
        showlegend=False,
        hovertext=[
            f"<b>{style.escape(_name(row))}</b><br>{style.format_number(float_value(row, 'value'))}"
            for _, row in known
        ],
    )
    for i, row in enumerate(rows):
        value, mean = float_value(row, "value"), float_value(row, "mean")
        of_suite = f"  (suite {style.format_number(mean)})" if mean is not None else ""
        label, ink = f"{style.format_number(value)}{of_suite}", style.INK
        if value is None:
            label, ink = (
                style.in_lines(f"n/a: {text_value(row, 'reason') or 'not measured'}", 62),
                style.SOFT_INK,
            )
        fig.add_annotation(
            y=i,
            x=1 if value is not None else 0,
            xref="paper",
            xshift=14,
            xanchor="left",
            align="left",
            text=label,
            bgcolor=style.PAPER,
            font={"size": style.TEXT_SIZE - 1, "color": ink},
        )
        if mean is not None and value is not None:
            fig.add_shape(
                type="line",
                x0=mean,
                x1=mean,
                y0=i - 0.4,
                y1=i + 0.4,
                line={"color": style.INK, "width": 2},
            )
    ends = [
        v
        for row in rows
        for v in (float_value(row, "value"), float_value(row, "mean"))
        if v is not None
    ]
    _across(fig, ends)
    _names(fig, [_name(row) for row in rows])
    style.apply_style(
        fig,
        "Parts of reliability in this item (no unit)",
        subtitle="Line: mean of the suite.",
        x="Value",
        height=130 + 40 * len(rows),
    )
    return fig.update_layout(margin={"r": 150})


def order_components(rows: Sequence[Row]) -> list[Row]:
    """Sort rows by COMPONENT_ORDER, others last."""
    return sorted(
        rows,
        key=lambda row: (
            COMPONENT_ORDER.index(str(row["part"]))
            if row["part"] in COMPONENT_ORDER
            else len(COMPONENT_ORDER)
        ),
    )


def _name(row: Row) -> str:
    """Return the display name of a part."""
    return NAMES.get(str(row["part"]), str(row["part"]))


def _across(fig: Any, ends: Sequence[float]) -> None:
    """Set an axis that contains 0, 1 and all values."""
    low, high = min([0.0, *ends]), max([1.0, *ends])
    pad = 0.04 * (high - low)
    fig.update_xaxes(range=[low - (pad if low < 0 else 0.01), high + pad], showgrid=True, nticks=6)


def _names(fig: Any, names: Sequence[str]) -> None:
    """Name the rows."""
    fig.update_yaxes(
        tickvals=list(range(len(names))),
        ticktext=[style.in_lines(name, 24) for name in names],
        ticks="",
        showgrid=False,
        range=[len(names) - 0.4, -0.6],
    )


@figure(
    "signal_correlation",
    columns=("one", "other", "point", "lo", "hi", "n", "reason"),
    caption=(
        "Spearman's rank correlation of each two parts over the items where both are defined."
        " Signals that complement each other are near 0; near ±1 one of the two adds nothing. The"
        " correlation does not show which of them is right."
    ),
    empty="fewer than two parts have been measured.",
)
def signal_correlation(table: pd.DataFrame) -> Any:
    """Draw cells from orange (−1) to blue (1) with rho and n; a hatched cell is n/a."""
    small = [
        "Each cell: rho and number of items; intervals on hover. Blue above 0, orange below, pale"
        " at 0."
    ]
    return _matrix(
        table_records(table),
        "Rank correlation of the parts (Spearman's rho, −1 to 1)",
        small,
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
    empty="fewer than two chains have a vector.",
)
def chain_cosines(table: pd.DataFrame) -> Any:
    """Draw cells from orange (−1) to blue (1) with the cosine; a hatched cell is n/a."""
    return _matrix(
        table_records(table),
        "Cosine of the chains (−1 to 1)",
        ["One pair of chains a cell: a value, no estimate."],
        "",
    )


def _matrix(rows: Sequence[Row], title: str, small: list[str], unit: str) -> Any:
    """Draw the lower triangle of a symmetric table without its diagonal."""
    names = list(dict.fromkeys(str(row[side]) for side in ("one", "other") for row in rows))
    at = {name: i for i, name in enumerate(names)}
    cell_rows = {
        (max(i, j), min(i, j)): row
        for row in rows
        for i, j in [(at[str(row["one"])], at[str(row["other"])])]
    }
    cells, reasons = [], dict[str, list[str]]()
    for (i, j), row in sorted(cell_rows.items()):
        point = float_value(row, "point")
        text = _two(point) + (f"<br>n = {int_value(row, 'n')}" if unit else "")
        cells.append(
            Cell(j, i - 1, signed_shade(point), text, _cell_hover(row, unit), point is not None)
        )
        if point is None:
            reasons.setdefault(text_value(row, "reason") or "not measured", []).append(
                f"{row['one']}–{row['other']}"
            )
    small += [
        style.escape(style.truncate_text(f"n/a ({text}): {', '.join(pairs)}", 200))
        for text, pairs in reasons.items()
    ]
    fig = draw_cells(go.Figure(), cells, names[:-1], names[1:])
    return style.apply_style(fig, title, subtitle=small, height=130 + 46 * max(1, len(names) - 1))


def _two(value: float | None) -> str:
    """Format a correlation with two decimals."""
    return "n/a" if value is None else f"{value:.2f}".replace("-", "−")


def _cell_hover(row: Row, unit: str) -> str:
    """Return the hover text of a cell."""
    head = f"<b>{style.escape(row['one'])} and {style.escape(row['other'])}</b>"
    point = float_value(row, "point")
    if point is None:
        missing = f"n/a: {text_value(row, 'reason') or 'not measured'}"
        return f"{head}<br>{style.in_lines(missing, 60, most=4)}"
    lo, hi = float_value(row, "lo"), float_value(row, "hi")
    if not unit:
        return f"{head}<br>{style.format_number(point)}"
    reason = (
        f"<br>{style.in_lines(text_value(row, 'reason'), 60)}"
        if lo is None and text_value(row, "reason")
        else ""
    )
    return (
        f"{head}<br>{style.interval_text(point, lo, hi)}<br>n = {int_value(row, 'n')}"
        f" {unit}{reason}"
    )
