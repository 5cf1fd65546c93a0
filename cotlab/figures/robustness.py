"""Robustness by perturbation, and effects of perturbed steps by position and item."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.cells import DENSE, NARROW, Cell, draw_cells, tiny
from cotlab.figures.declare import figure
from cotlab.figures.marks import (
    Mark,
    Row,
    count_text,
    draw_series,
    float_value,
    hover_text,
    int_value,
    subtitle_notes,
    table_records,
    text_value,
)
from cotlab.text.edits.perturbations import PERTURBATIONS

MEASURES = {"divergence": "Divergence", "perturbed_answer_change": "Answer changes"}
"""Display names of the effects of a perturbed step."""
SERIES = {
    "robustness": "R",
    "divergence": "Divergence",
    "perturbed_answer_change": "Answer changes",
}
RATES = ("perturbed_answer_change",)
"""Measures that are 0 or 1, so that their mean over items is a share."""
GROUPS = {"all": "all chosen", "none": "step as it is"}
"""Facets that are no perturbation: all of them together, and the unchanged step."""
COLOUR_SCALE_MAXIMA = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
"""Possible ends of a colour scale."""
WIDE = 16
"""Number of positions above which the cells of items have no text."""
_ORDER = (*sorted(PERTURBATIONS, key=lambda name: not PERTURBATIONS[name].keeps), *GROUPS)


@figure(
    "robustness_by_perturbation",
    columns=("metric", "perturbation", "point", "lo", "hi", "n", "n_undefined", "reason"),
    caption=(
        "R is 1 minus the mean divergence between the model's continuation after a perturbed step"
        " and the original continuation. The row of the step as it is shows the divergence without"
        " a perturbation. After a change of meaning a model that reads its chain diverges and"
        " changes its answer, so a low R is not a fault there."
    ),
    empty="no perturbation has an estimate.",
)
def robustness_by_perturbation(table: pd.DataFrame) -> Any:
    """Draw R and the rate of changed answers with intervals, a row for each perturbation."""
    rows = [row for row in table_records(table) if row["metric"] in SERIES]
    names = order_perturbations(str(row["perturbation"]) for row in rows)
    codes = style.category_codes(
        (SERIES[str(row["metric"])] for row in rows), tuple(SERIES.values())
    )
    fig, marks = go.Figure(), []
    for i, (series, code) in enumerate(codes.items()):
        shift = (i - (len(codes) - 1) / 2) * 0.24
        series_marks = [
            Mark(
                series,
                names.index(str(row["perturbation"])) + shift,
                perturbation_label(row["perturbation"]),
                row,
            )
            for row in rows
            if SERIES[str(row["metric"])] == series
        ]
        draw_series(
            fig, sorted(series_marks, key=lambda mark: mark.x), code, legend=True, upright=False
        )
        marks += series_marks
    for i, name in enumerate(names):
        series_marks = [mark for mark in marks if mark.row["perturbation"] == name]
        if all(mark.point is None for mark in series_marks):
            fig.add_annotation(
                x=0,
                y=i,
                xanchor="left",
                text="n/a",
                bgcolor=style.PAPER,
                hovertext=hover_text(series_marks[0]),
            )
    ends = [v for mark in marks for v in (mark.point, mark.lo, mark.hi) if v is not None]
    low, high = min([0.0, *ends]), max([1.0, *ends])
    pad = 0.04 * (high - low)
    fig.update_xaxes(range=[low - pad, high + pad], showgrid=True, nticks=6)
    fig.update_yaxes(
        tickvals=list(range(len(names))),
        ticktext=[style.in_lines(perturbation_label(name), 20) for name in names],
        ticks="",
        showgrid=False,
        range=[len(names) - 0.4, -0.6],
    )
    small = [*_meaning(names), *subtitle_notes(marks)]
    return style.apply_style(
        fig,
        "Robustness by perturbation (mean over items, no unit)",
        subtitle=small,
        x="Mean over items",
        height=170 + 40 * len(names),
    )


@figure(
    "perturbation_cells",
    columns=("metric", "perturbation", "step", "point", "lo", "hi", "n", "n_undefined", "reason"),
    caption=(
        "Mean effect of a perturbation of the step at each position, over the items where that step"
        " was selected. Chains differ in length, so later positions have fewer and longer chains:"
        " check n before comparing columns."
    ),
    empty="no step was perturbed.",
)
def perturbation_cells(table: pd.DataFrame) -> Any:
    """Draw mean effects by perturbation and position, with n.

    A hatched cell is n/a; a missing cell was not selected. Cells where the optional column
    ``chosen`` is true are framed.
    """
    rows = table_records(table)
    metric = str(rows[0]["metric"])
    names, steps = order_perturbations(str(row["perturbation"]) for row in rows), _steps(rows)
    top = scale_top(metric, (float_value(row, "point") for row in rows))
    upright, dense = len(steps) > NARROW, len(steps) > DENSE
    cells = []
    for row in rows:
        point, name, step = float_value(row, "point"), str(row["perturbation"]), int(row["step"])
        text = f"{tiny(point)}{', ' if upright else '<br>'}n = {int_value(row, 'n')}"
        lines = (
            [
                style.interval_text(point, float_value(row, "lo"), float_value(row, "hi")),
                count_text(row),
            ]
            if point is not None
            else []
        )
        hovered = _hover(
            f"{perturbation_label(name)}, step {step + 1}", lines, _missing_reason(row)
        )
        cells.append(
            Cell(
                steps.index(step),
                names.index(name),
                style.shade(point, 0, top),
                "" if dense else text,
                hovered,
                point is not None,
                (step, name),
            )
        )
    gaps = dict.fromkeys(
        (_missing_reason(row), perturbation_label(row["perturbation"]))
        for row in rows
        if float_value(row, "point") is None
    )
    small = [
        "Each cell: mean and number of items; intervals on hover and in the data.",
        _scale(top),
        *_meaning(names),
    ]
    small += _missing_lines(gaps)
    fig = _frame(go.Figure(), rows, cells)
    style.apply_style(
        fig,
        f"{MEASURES.get(metric, metric)} by position and perturbation ({_reach(metric)})",
        subtitle=small,
        x="Position of the perturbed step",
        height=140 + (92 if upright else 46) * len(names),
    )
    return draw_cells(
        fig,
        cells,
        [str(step + 1) for step in steps],
        [perturbation_label(name) for name in names],
        every=1 + dense,
        upright=upright,
    )


@figure(
    "item_cells",
    columns=("metric", "item_id", "step", "value", "reason"),
    caption=(
        "Effects of the perturbed steps of each item. One item is one chain: a bright cell is a"
        " single value without an interval, worth reading but not an estimate."
    ),
    empty="no item has a perturbed step here.",
)
def item_cells(table: pd.DataFrame) -> Any:
    """Draw the mean over draws by item and position.

    A hatched cell is n/a; a missing cell was not selected. Cells where the optional column
    ``chosen`` is true are framed; ``top``, the same in every row, is the end of the scale.
    """
    rows = table_records(table)
    metric = str(rows[0]["metric"])
    items, steps = list(dict.fromkeys(str(row["item_id"]) for row in rows)), _steps(rows)
    top = float_value(rows[0], "top") or scale_top(
        metric, (float_value(row, "value") for row in rows)
    )
    cells = []
    for row in rows:
        value, item, step = float_value(row, "value"), str(row["item_id"]), int(row["step"])
        text = "n/a" if value is None else style.escape(format_measure(metric, value))
        hovered = _hover(
            f"{style.truncate_text(item)}, step {step + 1}",
            [text] if value is not None else [],
            _missing_reason(row),
        )
        cells.append(
            Cell(
                steps.index(step),
                items.index(item),
                style.shade(value, 0, top),
                text if len(steps) <= WIDE else "",
                hovered,
                value is not None,
                (step, item),
            )
        )
    gaps = dict.fromkeys(
        (_missing_reason(row), f"step {int(row['step']) + 1}")
        for row in rows
        if float_value(row, "value") is None
    )
    fig = _frame(go.Figure(), rows, cells)
    style.apply_style(
        fig,
        f"{MEASURES.get(metric, metric)} by item and position"
        f" ({'0 or 1' if metric in RATES else _reach(metric)})",
        subtitle=[f"{len(items)} items. {_scale(top)}", *_missing_lines(gaps)],
        x="Position of the perturbed step",
        height=120 + 26 * len(items),
    )
    labels = [style.truncate_text(item, 22) for item in items]
    return draw_cells(
        fig,
        cells,
        [str(step + 1) for step in steps],
        labels,
        width=24,
        every=1 + (len(steps) > DENSE),
    )


def perturbation_label(perturbation: object) -> str:
    """Return the display name of a perturbation; not escaped."""
    return GROUPS.get(str(perturbation), str(perturbation).replace("_", " "))


def order_perturbations(names: Iterable[str]) -> list[str]:
    """Order perturbations: those that keep the meaning, those that change it, others, groups."""
    places = {name: i for i, name in enumerate(_ORDER)}
    return sorted(
        dict.fromkeys(names), key=lambda name: (name in GROUPS, places.get(name, len(places)))
    )


def format_measure(metric: str, value: float) -> str:
    """Format the value of a cell, not escaped; a rate of 0 or 1 is "same" or "changed"."""
    text = style.format_number(value) if not 0 < value < 0.001 else "< 0.001"
    return {0.0: "same", 1.0: "changed"}.get(value, text) if metric in RATES else text


def scale_top(metric: str, values: Iterable[float | None]) -> float:
    """Return the end of the scale: 1 for a rate, else the first of TOPS that no value exceeds."""
    high = max((value for value in values if value is not None), default=0.0)
    return (
        1.0
        if metric in RATES
        else next((top for top in COLOUR_SCALE_MAXIMA if high <= top), COLOUR_SCALE_MAXIMA[-1])
    )


def _steps(rows: Sequence[Row]) -> list[int]:
    """Return all positions up to the last."""
    return list(range(max(int(row["step"]) for row in rows) + 1))


def _reach(metric: str) -> str:
    """Return the unit of a measure for the title."""
    return "share of items, 0 to 1" if metric in RATES else "1 − cosine"


def _scale(top: float) -> str:
    """Return the note about the colour scale."""
    return f"Dark is 0, bright is {top:g}. Hatched: n/a. Blank: not chosen, or no such step."


def _meaning(names: Sequence[str]) -> list[str]:
    """Return a note about which perturbations keep the meaning."""
    preserved = [
        perturbation_label(name)
        for name in names
        if name in PERTURBATIONS and PERTURBATIONS[name].keeps
    ]
    changed = [
        perturbation_label(name)
        for name in names
        if name in PERTURBATIONS and not PERTURBATIONS[name].keeps
    ]
    clauses = [f"meaning kept by {', '.join(preserved)}"] * bool(preserved) + [
        f"changed by {', '.join(changed)}"
    ] * bool(changed)
    text = "; ".join(clauses)
    return [style.escape(f"{text[:1].upper()}{text[1:]}.")] if text else []


def _missing_reason(row: Row) -> str:
    """Return the reason of a missing value."""
    return text_value(row, "reason") or "no item has a defined value"


def _missing_lines(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return a note for each of the three most frequent reasons with its places; escaped."""
    locations: dict[str, list[str]] = {}
    for reason, at in pairs:
        locations.setdefault(reason, []).append(at)
    most = sorted(locations.items(), key=lambda pair: -len(pair[1]))
    lines = [
        style.escape(style.truncate_text(f"n/a ({reason}): {', '.join(at)}", 150))
        for reason, at in most[:3]
    ]
    return lines + [f"n/a for {len(most) - 3} more reasons: on hover."] * (len(most) > 3)


def _hover(head: str, value_lines: Sequence[str], missing_reason: str) -> str:
    """Return the hover text of a cell."""
    lines = value_lines or [style.in_lines(f"n/a: {missing_reason}", 60, most=4)]
    return "<br>".join((f"<b>{style.escape(head)}</b>", *lines))


def _frame(fig: Any, rows: Sequence[Row], cells: Sequence[Cell]) -> Any:
    """Frame the selected cells."""
    for row, cell in zip(rows, cells, strict=True):
        if row.get("chosen") is True:
            fig.add_shape(
                type="rect",
                x0=cell.column - 0.48,
                x1=cell.column + 0.48,
                y0=cell.row - 0.47,
                y1=cell.row + 0.47,
                line={"color": style.VERMILLION, "width": 3},
            )
    return fig
