"""Mediation by source and span of layers, as cells with value and n."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.cells import DENSE, NARROW, Cell, draw_cells, tiny
from cotlab.figures.declare import figure
from cotlab.figures.marks import Row, float_value, int_value, table_records, text_value
from cotlab.figures.mediation import SOURCES, metric_label

METRICS = ("cmi", "share", "mass_lost")
SIGNED = "share"
"""The metric in [−1, 1]; its cells have a scale of their own, with 0 in the middle."""
PALE = "#f7f7f7"


@figure(
    "span_heatmap",
    columns=("source", "metric", "span", "point", "lo", "hi", "n"),
    caption=(
        "Mean over the items where the value of the span is defined; a span whose drops add up to"
        " less than 0.01 nat has no value. The columns are single layers, thirds of the depth, and"
        " all layers."
    ),
    empty="no span has an estimate.",
)
def span_heatmap(table: pd.DataFrame) -> Any:
    """Draw cells in viridis, or from orange to blue for a signed metric; a hatched cell is n/a."""
    rows = table_records(table)
    sources = sorted(
        dict.fromkeys(str(row["source"]) for row in rows),
        key=lambda s: SOURCES.index(s) if s in SOURCES else len(SOURCES),
    )
    metrics = sorted(
        dict.fromkeys(str(row["metric"]) for row in rows),
        key=lambda m: METRICS.index(m) if m in METRICS else len(METRICS),
    )
    lines = [(source, metric) for source in sources for metric in metrics]
    spans = sorted(dict.fromkeys(str(row["span"]) for row in rows), key=span_order)
    row_by_cell = {(str(row["source"]), str(row["metric"]), str(row["span"])): row for row in rows}
    cells = [
        (i, j, row_by_cell.get((*line, span)))
        for i, line in enumerate(lines)
        for j, span in enumerate(spans)
    ]
    points = [None if cell is None else float_value(cell, "point") for _, _, cell in cells]
    fills = [
        signed_shade(point) if lines[i][1] == SIGNED else style.shade(point)
        for (i, _, _), point in zip(cells, points, strict=True)
    ]
    upright, dense = len(spans) > NARROW, len(spans) > DENSE
    plotted_cells = [
        Cell(
            j,
            i,
            fill,
            "" if dense and point is None else _cell_text(cell, ", " if upright else "<br>"),
            _hover(cell, lines[i], spans[j]),
            point is not None,
        )
        for (i, j, cell), fill, point in zip(cells, fills, points, strict=True)
    ]
    fig = go.Figure()
    what = metric_label(metrics[0]) if len(metrics) == 1 else "Mediation"
    missing: dict[str, list[str]] = {}
    for _, j, cell in cells:
        if cell is None or float_value(cell, "point") is None:
            missing.setdefault(_missing_reason(cell), []).append(span_name(spans[j]))
    scales = ["Hatched: n/a."] if dense and None in points else []
    scales += ["Dark is 0, bright is 1."] if set(metrics) - {SIGNED} else []
    scales += ["Share: blue above 0, orange below, pale at 0."] if SIGNED in metrics else []
    small = [
        " ".join(
            ["Each cell: mean and number of items; intervals on hover and in the data.", *scales]
        )
    ]
    reach = (
        "−1 to 1"
        if metrics == [SIGNED]
        else f"0 to 1{'; share −1 to 1' if SIGNED in metrics else ''}"
    )
    small += [
        style.escape(style.truncate_text(f"n/a ({reason}): {', '.join(dict.fromkeys(at))}", 200))
        for reason, at in missing.items()
    ]
    style.apply_style(
        fig,
        style.escape(f"{what} by span of layers ({reach})"),
        subtitle=small,
        x="Layers whose input was patched, the first is 0",
        height=150 + (92 if upright else 46) * len(lines),
    )
    labels = [_label(line, len(sources), len(metrics)) for line in lines]
    return draw_cells(
        fig,
        plotted_cells,
        [span_name(span) for span in spans],
        labels,
        upright=upright,
        every=1 + dense,
    )


def signed_shade(value: float | None) -> str:
    """Return the colour of a value in [−1, 1]: orange below 0, blue above, grey for None."""
    if value is None:
        return style.NOT_AVAILABLE
    end = style.BLUE if value > 0 else style.VERMILLION
    part = min(1.0, abs(value))
    ends = zip(bytes.fromhex(PALE[1:]), bytes.fromhex(end[1:]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in ends)


def span_order(span: str) -> tuple[int, int]:
    """Single layers first, then ranges, then all."""
    first = span.split("-")[0]
    return (2, 0) if not first.isdecimal() else (int("-" in span), int(first))


def span_name(span: str) -> str:
    """Return the display name of a span: "all", "3" or "0–7"."""
    return span.replace("-", "–")


def _label(line: tuple[str, str], sources: int, metrics: int) -> str:
    """Return the name of a row: its source, its metric or both."""
    source, metric = line
    return (
        metric_label(metric)
        if sources == 1
        else source
        if metrics == 1
        else f"{source}, {metric_label(metric)}"
    )


def _cell_text(cell: Row | None, between: str) -> str:
    """Return value and n of a cell."""
    if cell is None:
        return "n/a"
    text = tiny(float_value(cell, "point"))
    return f"{text}{between}n = {int_value(cell, 'n')}"


def _hover(cell: Row | None, line: tuple[str, str], span: str) -> str:
    """Return the hover text of a cell."""
    named = f"{metric_label(line[1])}, source {line[0]}, layers {span_name(span)}"
    head = f"<b>{style.escape(named)}</b>"
    if cell is None:
        return f"{head}<br>n/a: not asked"
    point, lo, hi = (float_value(cell, column) for column in ("point", "lo", "hi"))
    counted = f"n = {int_value(cell, 'n')} items, {int_value(cell, 'n_undefined')} undefined"
    value_text = (
        style.interval_text(point, lo, hi)
        if point is not None
        else style.in_lines(f"n/a: {_missing_reason(cell)}", 60, most=4)
    )
    return "<br>".join((head, value_text, counted))


def _missing_reason(cell: Row | None) -> str:
    """Return the reason of a missing value."""
    return (
        "not asked" if cell is None else text_value(cell, "reason") or "no item has a defined value"
    )
