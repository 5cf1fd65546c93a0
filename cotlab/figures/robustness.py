"""Robustness by perturbation, and effects of perturbed steps by position and item.

Perturbations that keep the meaning and those that change it are two groups with two directions: a
mean over both says nothing, and is not drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.cells import (
    MAX_HORIZONTAL_COLUMNS,
    MAX_LABELLED_COLUMNS,
    NO_VALUE_SIGN,
    Cell,
    cell_hover_text,
    draw_cells,
    format_cell_number,
)
from cotlab.figures.declare import (
    Row,
    figure,
    float_value,
    in_order,
    int_value,
    table_records,
    text_value,
)
from cotlab.figures.layout import apply_style
from cotlab.figures.marks import Mark, missing_notes
from cotlab.figures.rows import draw_estimate_rows
from cotlab.text.edits.perturbations import PERTURBATIONS

MEASURE_NAMES = {"divergence": "Divergence", "perturbed_answer_change": "Answer changes"}
"""Display names of the effects of a perturbed step."""
SERIES_NAMES = {"robustness": "R", **MEASURE_NAMES}
RATE_METRICS = ("perturbed_answer_change",)
"""Measures that are 0 or 1, so that their mean over items is a share."""
GROUP_NAMES = {"all": "all chosen", "none": "step as it is"}
"""Facets that are no perturbation: all of them together, and the unchanged step."""
COLOUR_SCALE_MAXIMA = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
"""Possible ends of a colour scale."""
MAX_TEXT_COLUMNS = 16
"""Number of positions above which the cells of items have no text."""
_KINDS = ("meaning kept", "meaning changed", "step as it is", "other")
_PERTURBATION_ORDER = (
    *sorted(PERTURBATIONS, key=lambda name: not PERTURBATIONS[name].keeps_meaning),
    *GROUP_NAMES,
)
_GROUP_COLUMNS = ("metric", "perturbation", "point", "lo", "hi", "n", "n_undefined", "reason")


@figure(
    "robustness_by_perturbation",
    columns=_GROUP_COLUMNS,
    caption=(
        "R is 1 minus the mean divergence between the model's continuation after a perturbed step"
        " and the original continuation. The row of the step as it is has the divergence without"
        " a perturbation. After a change of meaning a model that reads its chain diverges and"
        " changes its answer, so a low R is not a fault there."
    ),
    empty_reason="no perturbation has an estimate.",
)
def robustness_by_perturbation(table: pd.DataFrame) -> Any:
    """Draw R with its interval, a row for each perturbation."""
    rows = table_records(table)
    with_r = {row["perturbation"] for row in rows if row["metric"] == "robustness"}
    drawn_rows = [
        row
        for row in rows
        if row["metric"] == ("robustness" if row["perturbation"] in with_r else "divergence")
    ]
    return _draw_perturbations(
        drawn_rows, "Robustness (R) by perturbation (mean over items, no unit)", "R"
    )


@figure(
    "answer_changes_by_perturbation",
    columns=_GROUP_COLUMNS,
    caption=(
        "Share of the perturbed steps after which the answer is another one. After a change of"
        " meaning a model that reads its chain changes its answer; after other words it keeps it."
    ),
    empty_reason="no perturbation has an estimate.",
)
def answer_changes_by_perturbation(table: pd.DataFrame) -> Any:
    """Draw the share of changed answers with its interval, a row for each perturbation."""
    rows = [row for row in table_records(table) if row["metric"] in RATE_METRICS]
    return _draw_perturbations(
        rows, "Perturbed steps that change the answer (%)", "Answers changed (%)"
    )


def _draw_perturbations(rows: list[Row], title: str, x: str) -> Any:
    """Draw a row for each perturbation, a colour and symbol for what it does to the meaning."""
    names = _drawn_perturbations(rows)
    row_by_name = {str(row["perturbation"]): row for row in rows}
    marks = [
        Mark(_kind(name), i, perturbation_label(name), row, is_share=row["metric"] in RATE_METRICS)
        for i, name in enumerate(names)
        for row in [row_by_name[name]]
    ]
    styles = style.category_styles(dict.fromkeys(mark.series for mark in marks), _KINDS)
    return draw_estimate_rows(marks, title, x=x, styles=styles)


def _kind(name: str) -> str:
    """Return what a perturbation does to the meaning of a step."""
    if name in PERTURBATIONS:
        return _KINDS[0 if PERTURBATIONS[name].keeps_meaning else 1]
    return GROUP_NAMES["none"] if name == "none" else _KINDS[-1]


def _drawn_perturbations(rows: Iterable[Row]) -> list[str]:
    """Return the perturbations in order, without the mean of all where it mixes both groups."""
    names = order_perturbations(str(row["perturbation"]) for row in rows)
    is_mixed = {_KINDS[0], _KINDS[1]} <= set(map(_kind, names))
    return [name for name in names if not (is_mixed and name == "all")]


@figure(
    "perturbation_cells",
    columns=("metric", "perturbation", "step", "point", "lo", "hi", "n", "n_undefined", "reason"),
    caption=(
        "Mean effect of a perturbation of the step at each position, over the items where that step"
        " was selected. Chains differ in length, so later positions have fewer and longer chains:"
        " check n before comparing columns."
    ),
    empty_reason="no step was perturbed.",
)
def perturbation_cells(table: pd.DataFrame) -> Any:
    """Draw mean effects by perturbation and position, with n.

    A missing cell was not selected. Cells where the optional column ``chosen`` is true are framed.
    """
    rows = table_records(table)
    metric, names = str(rows[0]["metric"]), _drawn_perturbations(rows)
    rows = [row for row in rows if row["perturbation"] in names]
    n_positions = _n_positions(rows)
    is_upright, is_dense = n_positions > MAX_HORIZONTAL_COLUMNS, n_positions > MAX_LABELLED_COLUMNS
    scale_maximum = colour_scale_maximum(metric, (float_value(row, "point") for row in rows))
    cells = []
    for row in rows:
        mark = Mark("", 0, "", row, is_share=metric in RATE_METRICS)
        name, step = str(row["perturbation"]), int(row["step"])
        number = format_cell_number(mark.point, is_share=mark.is_share)
        text = f"{number}{', ' if is_upright else '<br>'}n = {mark.n}"
        if is_dense:
            text = NO_VALUE_SIGN if mark.point is None else ""
        heading = f"{perturbation_label(name)}, step {step + 1}"
        lines = [mark.text, mark.count_text] if mark.point is not None else []
        cells.append(
            Cell(
                step,
                names.index(name),
                style.viridis_colour(mark.point, 0, scale_maximum),
                text,
                cell_hover_text(heading, lines, _missing_reason(row)),
                (step, name),
            )
        )
    reason_positions = dict.fromkeys(
        (_missing_reason(row), perturbation_label(row["perturbation"]))
        for row in rows
        if float_value(row, "point") is None
    )
    subtitle = [
        "Each cell: mean and number of items; intervals in the data.",
        _scale_note(metric, scale_maximum),
        *_meaning_notes(names),
        *missing_notes(reason_positions),
    ]
    labels = [perturbation_label(name) for name in names]
    fig = _draw_step_cells(rows, cells, labels, n_positions, is_upright=is_upright)
    unit = "mean, %" if metric in RATE_METRICS else "mean, 1 − cosine"
    return apply_style(
        fig,
        f"{MEASURE_NAMES.get(metric, metric)} by position and perturbation ({unit})",
        subtitle=subtitle,
        x="Position of the perturbed step",
        height=100 + (92 if is_upright else 46) * len(names),
    )


@figure(
    "item_cells",
    columns=("metric", "item_id", "step", "value", "reason"),
    caption=(
        "Effects of the perturbed steps of each item. One item is one chain: a bright cell is a"
        " single value without an interval, worth reading but not an estimate."
    ),
    empty_reason="no item has a perturbed step here.",
)
def item_cells(table: pd.DataFrame) -> Any:
    """Draw the mean over draws by item and position.

    A missing cell was not selected. Cells where the optional column ``chosen`` is true are framed;
    ``top``, the same in every row, is the end of the scale.
    """
    rows = table_records(table)
    metric = str(rows[0]["metric"])
    items = list(dict.fromkeys(str(row["item_id"]) for row in rows))
    n_positions = _n_positions(rows)
    scale_maximum = float_value(rows[0], "top") or colour_scale_maximum(
        metric, (float_value(row, "value") for row in rows)
    )
    cells = []
    for row in rows:
        value, item, step = float_value(row, "value"), str(row["item_id"]), int(row["step"])
        text = "n/a" if value is None else style.escape(format_measure(metric, value))
        heading = f"{style.truncate_text(item)}, step {step + 1}"
        lines = [text] if value is not None else []
        if n_positions > MAX_TEXT_COLUMNS:
            text = NO_VALUE_SIGN if value is None else ""
        cells.append(
            Cell(
                step,
                items.index(item),
                style.viridis_colour(value, 0, scale_maximum),
                text,
                cell_hover_text(heading, lines, _missing_reason(row)),
                (step, item),
            )
        )
    reason_positions = dict.fromkeys(
        (_missing_reason(row), f"step {int(row['step']) + 1}")
        for row in rows
        if float_value(row, "value") is None
    )
    labels = [style.truncate_text(item, 22) for item in items]
    unit = "0 or 1" if metric in RATE_METRICS else "1 − cosine"
    return apply_style(
        _draw_step_cells(rows, cells, labels, n_positions),
        f"{MEASURE_NAMES.get(metric, metric)} by item and position ({unit})",
        subtitle=[
            f"{len(items)} items. {_scale_note(metric, scale_maximum)}",
            *missing_notes(reason_positions),
        ],
        x="Position of the perturbed step",
        height=80 + 26 * len(items),
    )


def perturbation_label(perturbation: object) -> str:
    """Return the display name of a perturbation; not escaped."""
    return GROUP_NAMES.get(str(perturbation), str(perturbation).replace("_", " "))


def order_perturbations(names: Iterable[str]) -> list[str]:
    """Order perturbations: those that keep the meaning, those that change it, others, groups."""
    ordered = in_order(names, _PERTURBATION_ORDER)
    return sorted(ordered, key=lambda name: name in GROUP_NAMES)


def format_measure(metric: str, value: float) -> str:
    """Format the value of a cell, not escaped; a rate of 0 or 1 is "same" or "changed"."""
    text = style.format_number(value) if not 0 < value < 0.001 else "< 0.001"
    return {0.0: "same", 1.0: "changed"}.get(value, text) if metric in RATE_METRICS else text


def colour_scale_maximum(metric: str, values: Iterable[float | None]) -> float:
    """Return the end of the scale: 1 for a rate, else the first maximum that no value exceeds."""
    if metric in RATE_METRICS:
        return 1.0
    highest_value = max((value for value in values if value is not None), default=0.0)
    fitting = (maximum for maximum in COLOUR_SCALE_MAXIMA if highest_value <= maximum)
    return next(fitting, COLOUR_SCALE_MAXIMA[-1])


def _n_positions(rows: Sequence[Row]) -> int:
    """Return the number of positions up to the last."""
    return max(int_value(row, "step") for row in rows) + 1


def _scale_note(metric: str, scale_maximum: float) -> str:
    """Return the note about the colour scale."""
    end = "100%" if metric in RATE_METRICS else f"{scale_maximum:g}"
    return f"Dark is 0, bright is {end}. Grey: n/a. Blank: not chosen, or no such step."


def _meaning_notes(names: Sequence[str]) -> list[str]:
    """Return a note about which perturbations keep the meaning."""
    labels_by_kind: dict[str, list[str]] = {}
    for name in names:
        if name in PERTURBATIONS:
            labels_by_kind.setdefault(_kind(name), []).append(perturbation_label(name))
    text = "; ".join(f"{kind}: {', '.join(labels)}" for kind, labels in labels_by_kind.items())
    return [style.escape(f"{text[:1].upper()}{text[1:]}.")] if text else []


def _missing_reason(row: Row) -> str:
    """Return the reason of a missing value."""
    return text_value(row, "reason") or "no item has a defined value"


def _draw_step_cells(
    rows: Sequence[Row],
    cells: Sequence[Cell],
    row_names: Sequence[str],
    n_positions: int,
    *,
    is_upright: bool = False,
) -> Any:
    """Draw cells by position, and frame the selected ones."""
    fig = go.Figure()
    for row, cell in zip(rows, cells, strict=True):
        if row.get("chosen") is True:
            fig.add_shape(
                type="rect",
                x0=cell.column_index - 0.48,
                x1=cell.column_index + 0.48,
                y0=cell.row_index - 0.47,
                y1=cell.row_index + 0.47,
                line={"color": style.hue(style.VERMILLION), "width": 3},
                layer="above",
            )
    return draw_cells(
        fig,
        cells,
        [str(position + 1) for position in range(n_positions)],
        row_names,
        max_row_name_chars=24,
        column_interval=1 + (n_positions > MAX_LABELLED_COLUMNS),
        is_upright=is_upright,
    )
