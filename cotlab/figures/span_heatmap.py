"""Mediation by source and span of layers, as cells with value and n."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.core.types import MEDIATION_SOURCES
from cotlab.figures import style
from cotlab.figures.cells import (
    MAX_HORIZONTAL_COLUMNS,
    MAX_LABELLED_COLUMNS,
    Cell,
    draw_cells,
    format_cell_number,
)
from cotlab.figures.declare import Row, figure, float_value, int_value, table_records, text_value
from cotlab.figures.mediation import metric_label

METRIC_ORDER = ("cmi", "share", "mass_lost")
SIGNED_METRIC = "share"
"""The metric in [−1, 1]; its cells have a scale of their own, with 0 in the middle."""


@figure(
    "span_heatmap",
    columns=("source", "metric", "span", "point", "lo", "hi", "n"),
    caption=(
        "Mean over the items where the value of the span is defined; a span whose drops add up to"
        " less than 0.01 nat has no value. The columns are single layers, thirds of the depth, and"
        " all layers."
    ),
    empty_reason="no span has an estimate.",
)
def span_heatmap(table: pd.DataFrame) -> Any:
    """Draw cells in viridis, or from orange to blue for a signed metric; a hatched cell is n/a."""
    rows = table_records(table)
    sources = sorted(
        dict.fromkeys(str(row["source"]) for row in rows),
        key=lambda s: (
            MEDIATION_SOURCES.index(s) if s in MEDIATION_SOURCES else len(MEDIATION_SOURCES)
        ),
    )
    metrics = sorted(
        dict.fromkeys(str(row["metric"]) for row in rows),
        key=lambda m: METRIC_ORDER.index(m) if m in METRIC_ORDER else len(METRIC_ORDER),
    )
    row_keys = [(source, metric) for source in sources for metric in metrics]
    spans = sorted(dict.fromkeys(str(row["span"]) for row in rows), key=span_sort_key)
    row_by_cell = {(str(row["source"]), str(row["metric"]), str(row["span"])): row for row in rows}
    cells = [
        (i, j, row_by_cell.get((*row_key, span)))
        for i, row_key in enumerate(row_keys)
        for j, span in enumerate(spans)
    ]
    points = [None if cell is None else float_value(cell, "point") for _, _, cell in cells]
    fill_colours = [
        style.diverging_colour(point)
        if row_keys[i][1] == SIGNED_METRIC
        else style.viridis_colour(point)
        for (i, _, _), point in zip(cells, points, strict=True)
    ]
    is_upright, is_dense = len(spans) > MAX_HORIZONTAL_COLUMNS, len(spans) > MAX_LABELLED_COLUMNS
    plotted_cells = [
        Cell(
            j,
            i,
            fill_colour,
            "" if is_dense and point is None else _cell_text(cell, ", " if is_upright else "<br>"),
            _hover_text(cell, row_keys[i], spans[j]),
            point is not None,
        )
        for (i, j, cell), fill_colour, point in zip(cells, fill_colours, points, strict=True)
    ]
    fig = go.Figure()
    title_subject = metric_label(metrics[0]) if len(metrics) == 1 else "Mediation"
    spans_by_reason: dict[str, list[str]] = {}
    for _, j, cell in cells:
        if cell is None or float_value(cell, "point") is None:
            spans_by_reason.setdefault(_missing_reason(cell), []).append(span_name(spans[j]))
    scale_notes = ["Hatched: n/a."] if is_dense and None in points else []
    scale_notes += ["Dark is 0, bright is 1."] if set(metrics) - {SIGNED_METRIC} else []
    scale_notes += (
        ["Share: blue above 0, orange below, pale at 0."] if SIGNED_METRIC in metrics else []
    )
    subtitle = [
        " ".join(
            [
                "Each cell: mean and number of items; intervals on hover and in the data.",
                *scale_notes,
            ]
        )
    ]
    range_text = (
        "−1 to 1"
        if metrics == [SIGNED_METRIC]
        else f"0 to 1{'; share −1 to 1' if SIGNED_METRIC in metrics else ''}"
    )
    subtitle += [
        style.escape(
            style.truncate_text(f"n/a ({reason}): {', '.join(dict.fromkeys(spans_of_reason))}", 200)
        )
        for reason, spans_of_reason in spans_by_reason.items()
    ]
    style.apply_style(
        fig,
        style.escape(f"{title_subject} by span of layers ({range_text})"),
        subtitle=subtitle,
        x="Layers whose input was patched, the first is 0",
        height=150 + (92 if is_upright else 46) * len(row_keys),
    )
    labels = [_row_label(row_key, len(sources), len(metrics)) for row_key in row_keys]
    return draw_cells(
        fig,
        plotted_cells,
        [span_name(span) for span in spans],
        labels,
        is_upright=is_upright,
        column_interval=1 + is_dense,
    )


def span_sort_key(span: str) -> tuple[int, int]:
    """Single layers first, then ranges, then all."""
    first_layer = span.split("-")[0]
    return (2, 0) if not first_layer.isdecimal() else (int("-" in span), int(first_layer))


def span_name(span: str) -> str:
    """Return the display name of a span: "all", "3" or "0–7"."""
    return span.replace("-", "–")


def _row_label(row_key: tuple[str, str], n_sources: int, n_metrics: int) -> str:
    """Return the name of a row: its source, its metric or both."""
    source, metric = row_key
    return (
        metric_label(metric)
        if n_sources == 1
        else source
        if n_metrics == 1
        else f"{source}, {metric_label(metric)}"
    )


def _cell_text(cell: Row | None, separator: str) -> str:
    """Return value and n of a cell."""
    if cell is None:
        return "n/a"
    text = format_cell_number(float_value(cell, "point"))
    return f"{text}{separator}n = {int_value(cell, 'n')}"


def _hover_text(cell: Row | None, row_key: tuple[str, str], span: str) -> str:
    """Return the hover text of a cell."""
    cell_name = f"{metric_label(row_key[1])}, source {row_key[0]}, layers {span_name(span)}"
    heading = f"<b>{style.escape(cell_name)}</b>"
    if cell is None:
        return f"{heading}<br>n/a: not requested"
    point, lo, hi = (float_value(cell, column) for column in ("point", "lo", "hi"))
    counts_text = f"n = {int_value(cell, 'n')} items, {int_value(cell, 'n_undefined')} undefined"
    value_text = (
        style.interval_text(point, lo, hi)
        if point is not None
        else style.wrap_text(f"n/a: {_missing_reason(cell)}", 60, max_lines=4)
    )
    return "<br>".join((heading, value_text, counts_text))


def _missing_reason(cell: Row | None) -> str:
    """Return the reason of a missing value."""
    return (
        "not requested"
        if cell is None
        else text_value(cell, "reason") or "no item has a defined value"
    )
