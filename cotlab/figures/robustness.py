"""Robustness by perturbation, and effects of perturbed steps by position and item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.cells import (
    MAX_HORIZONTAL_COLUMNS,
    MAX_LABELLED_COLUMNS,
    Cell,
    draw_cells,
    format_cell_number,
)
from cotlab.figures.declare import Row, figure, float_value, int_value, table_records, text_value
from cotlab.figures.marks import (
    Mark,
    count_text,
    draw_series,
    hover_text,
    interval_values,
    missing_notes,
    subtitle_notes,
)
from cotlab.figures.rows import name_rows, set_value_axis
from cotlab.text.edits.perturbations import PERTURBATIONS

MEASURE_NAMES = {"divergence": "Divergence", "perturbed_answer_change": "Answer changes"}
"""Display names of the effects of a perturbed step."""
SERIES_NAMES = {
    "robustness": "R",
    "divergence": "Divergence",
    "perturbed_answer_change": "Answer changes",
}
RATE_METRICS = ("perturbed_answer_change",)
"""Measures that are 0 or 1, so that their mean over items is a share."""
GROUP_NAMES = {"all": "all chosen", "none": "step as it is"}
"""Facets that are no perturbation: all of them together, and the unchanged step."""
COLOUR_SCALE_MAXIMA = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
"""Possible ends of a colour scale."""
MAX_TEXT_COLUMNS = 16
"""Number of positions above which the cells of items have no text."""
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
        " and the original continuation. The row of the step as it is shows the divergence without"
        " a perturbation. After a change of meaning a model that reads its chain diverges and"
        " changes its answer, so a low R is not a fault there."
    ),
    empty_reason="no perturbation has an estimate.",
)
def robustness_by_perturbation(table: pd.DataFrame) -> Any:
    """Draw R and the rate of changed answers with intervals, a row for each perturbation."""
    rows = [row for row in table_records(table) if row["metric"] in SERIES_NAMES]
    return _draw_perturbations(rows, "Robustness by perturbation (mean over items, no unit)")


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
    """Draw the rate of changed answers with intervals, a row for each perturbation."""
    rows = [row for row in table_records(table) if row["metric"] in RATE_METRICS]
    return _draw_perturbations(rows, "Answers changed by perturbation (mean over items, 0 to 1)")


def _draw_perturbations(rows: list[Row], title: str) -> Any:
    """Draw each metric as a series, a row for each perturbation."""
    names = order_perturbations(str(row["perturbation"]) for row in rows)
    style_by_series = style.category_styles(
        (SERIES_NAMES[str(row["metric"])] for row in rows), tuple(SERIES_NAMES.values())
    )
    fig, marks = go.Figure(), []
    for i, (series, category_style) in enumerate(style_by_series.items()):
        y_offset = (i - (len(style_by_series) - 1) / 2) * 0.24
        series_marks = [
            Mark(series, names.index(name) + y_offset, perturbation_label(name), row)
            for row in rows
            if SERIES_NAMES[str(row["metric"])] == series
            for name in [str(row["perturbation"])]
        ]
        series_marks.sort(key=lambda mark: mark.x)
        draw_series(fig, series_marks, category_style, in_legend=True, is_upright=False)
        marks += series_marks
    for i, name in enumerate(names):
        perturbation_marks = [mark for mark in marks if mark.row["perturbation"] == name]
        if all(mark.point is None for mark in perturbation_marks):
            fig.add_annotation(
                x=0,
                y=i,
                xanchor="left",
                text="n/a",
                bgcolor=style.BACKGROUND_COLOUR,
                hovertext=hover_text(perturbation_marks[0]),
            )
    set_value_axis(fig, interval_values(marks))
    name_rows(fig, [perturbation_label(name) for name in names], 20)
    subtitle = [*_meaning_notes(names), *subtitle_notes(marks)]
    return style.apply_style(
        fig,
        title,
        subtitle=subtitle,
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
    empty_reason="no step was perturbed.",
)
def perturbation_cells(table: pd.DataFrame) -> Any:
    """Draw mean effects by perturbation and position, with n.

    A hatched cell is n/a; a missing cell was not selected. Cells where the optional column
    ``chosen`` is true are framed.
    """
    rows = table_records(table)
    metric = str(rows[0]["metric"])
    names = order_perturbations(str(row["perturbation"]) for row in rows)
    step_positions = _step_positions(rows)
    scale_maximum = colour_scale_maximum(metric, (float_value(row, "point") for row in rows))
    is_upright = len(step_positions) > MAX_HORIZONTAL_COLUMNS
    is_dense = len(step_positions) > MAX_LABELLED_COLUMNS
    cells = []
    for row in rows:
        point, name, step = float_value(row, "point"), str(row["perturbation"]), int(row["step"])
        text = (
            f"{format_cell_number(point)}{', ' if is_upright else '<br>'}n = {int_value(row, 'n')}"
        )
        value_lines = (
            [
                style.interval_text(point, float_value(row, "lo"), float_value(row, "hi")),
                count_text(row),
            ]
            if point is not None
            else []
        )
        cell_hover_text = _hover_text(
            f"{perturbation_label(name)}, step {step + 1}", value_lines, _missing_reason(row)
        )
        cells.append(
            Cell(
                step_positions.index(step),
                names.index(name),
                style.viridis_colour(point, 0, scale_maximum),
                "" if is_dense else text,
                cell_hover_text,
                point is not None,
                (step, name),
            )
        )
    reason_positions = dict.fromkeys(
        (_missing_reason(row), perturbation_label(row["perturbation"]))
        for row in rows
        if float_value(row, "point") is None
    )
    subtitle = [
        "Each cell: mean and number of items; intervals on hover and in the data.",
        _scale_note(scale_maximum),
        *_meaning_notes(names),
    ]
    subtitle += _missing_notes(reason_positions)
    fig = _draw_frames(go.Figure(), rows, cells)
    style.apply_style(
        fig,
        f"{MEASURE_NAMES.get(metric, metric)} by position and perturbation"
        f" ({_measure_unit(metric)})",
        subtitle=subtitle,
        x="Position of the perturbed step",
        height=140 + (92 if is_upright else 46) * len(names),
    )
    return draw_cells(
        fig,
        cells,
        [str(step + 1) for step in step_positions],
        [perturbation_label(name) for name in names],
        column_interval=1 + is_dense,
        is_upright=is_upright,
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

    A hatched cell is n/a; a missing cell was not selected. Cells where the optional column
    ``chosen`` is true are framed; ``scale_maximum``, the same in every row, is the end of the
    scale.
    """
    rows = table_records(table)
    metric = str(rows[0]["metric"])
    items = list(dict.fromkeys(str(row["item_id"]) for row in rows))
    step_positions = _step_positions(rows)
    scale_maximum = float_value(rows[0], "top") or colour_scale_maximum(
        metric, (float_value(row, "value") for row in rows)
    )
    cells = []
    for row in rows:
        value, item, step = float_value(row, "value"), str(row["item_id"]), int(row["step"])
        text = "n/a" if value is None else style.escape(format_measure(metric, value))
        cell_hover_text = _hover_text(
            f"{style.truncate_text(item)}, step {step + 1}",
            [text] if value is not None else [],
            _missing_reason(row),
        )
        cells.append(
            Cell(
                step_positions.index(step),
                items.index(item),
                style.viridis_colour(value, 0, scale_maximum),
                text if len(step_positions) <= MAX_TEXT_COLUMNS else "",
                cell_hover_text,
                value is not None,
                (step, item),
            )
        )
    reason_positions = dict.fromkeys(
        (_missing_reason(row), f"step {int(row['step']) + 1}")
        for row in rows
        if float_value(row, "value") is None
    )
    fig = _draw_frames(go.Figure(), rows, cells)
    style.apply_style(
        fig,
        f"{MEASURE_NAMES.get(metric, metric)} by item and position"
        f" ({'0 or 1' if metric in RATE_METRICS else _measure_unit(metric)})",
        subtitle=[
            f"{len(items)} items. {_scale_note(scale_maximum)}",
            *_missing_notes(reason_positions),
        ],
        x="Position of the perturbed step",
        height=120 + 26 * len(items),
    )
    labels = [style.truncate_text(item, 22) for item in items]
    return draw_cells(
        fig,
        cells,
        [str(step + 1) for step in step_positions],
        labels,
        max_row_name_chars=24,
        column_interval=1 + (len(step_positions) > MAX_LABELLED_COLUMNS),
    )


def perturbation_label(perturbation: object) -> str:
    """Return the display name of a perturbation; not escaped."""
    return GROUP_NAMES.get(str(perturbation), str(perturbation).replace("_", " "))


def order_perturbations(names: Iterable[str]) -> list[str]:
    """Order perturbations: those that keep the meaning, those that change it, others, groups."""
    rank_by_name = {name: i for i, name in enumerate(_PERTURBATION_ORDER)}
    return sorted(
        dict.fromkeys(names),
        key=lambda name: (name in GROUP_NAMES, rank_by_name.get(name, len(rank_by_name))),
    )


def format_measure(metric: str, value: float) -> str:
    """Format the value of a cell, not escaped; a rate of 0 or 1 is "same" or "changed"."""
    text = style.format_number(value) if not 0 < value < 0.001 else "< 0.001"
    return {0.0: "same", 1.0: "changed"}.get(value, text) if metric in RATE_METRICS else text


def colour_scale_maximum(metric: str, values: Iterable[float | None]) -> float:
    """Return the end of the scale: 1 for a rate, else the first of TOPS that no value exceeds."""
    highest_value = max((value for value in values if value is not None), default=0.0)
    return (
        1.0
        if metric in RATE_METRICS
        else next(
            (maximum for maximum in COLOUR_SCALE_MAXIMA if highest_value <= maximum),
            COLOUR_SCALE_MAXIMA[-1],
        )
    )


def _step_positions(rows: Sequence[Row]) -> list[int]:
    """Return all positions up to the last."""
    return list(range(max(int(row["step"]) for row in rows) + 1))


def _measure_unit(metric: str) -> str:
    """Return the unit of a measure for the title."""
    return "share of items, 0 to 1" if metric in RATE_METRICS else "1 − cosine"


def _scale_note(scale_maximum: float) -> str:
    """Return the note about the colour scale."""
    return (
        f"Dark is 0, bright is {scale_maximum:g}. Hatched: n/a. Blank: not chosen, or no such step."
    )


def _meaning_notes(names: Sequence[str]) -> list[str]:
    """Return a note about which perturbations keep the meaning."""
    known_names = [name for name in names if name in PERTURBATIONS]
    clauses = []
    for clause_start, keeps_meaning in (("meaning kept by", True), ("changed by", False)):
        labels = [
            perturbation_label(name)
            for name in known_names
            if PERTURBATIONS[name].keeps_meaning is keeps_meaning
        ]
        clauses += [f"{clause_start} {', '.join(labels)}"] if labels else []
    text = "; ".join(clauses)
    return [style.escape(f"{text[:1].upper()}{text[1:]}.")] if text else []


def _missing_reason(row: Row) -> str:
    """Return the reason of a missing value."""
    return text_value(row, "reason") or "no item has a defined value"


def _missing_notes(reason_positions: Collection[tuple[str, str]]) -> list[str]:
    """Return a note for each of the three most frequent reasons with its places; escaped."""
    reason_counts = Counter(reason for reason, _ in reason_positions)
    notes = missing_notes(sorted(reason_positions, key=lambda pair: -reason_counts[pair[0]]), 150)
    return notes[:3] + [f"n/a for {len(notes) - 3} more reasons: on hover."] * (len(notes) > 3)


def _hover_text(heading: str, value_lines: Sequence[str], missing_reason: str) -> str:
    """Return the hover text of a cell."""
    lines = value_lines or [style.wrap_text(f"n/a: {missing_reason}", 60, max_lines=4)]
    return "<br>".join((f"<b>{style.escape(heading)}</b>", *lines))


def _draw_frames(fig: Any, rows: Sequence[Row], cells: Sequence[Cell]) -> Any:
    """Frame the selected cells."""
    for row, cell in zip(rows, cells, strict=True):
        if row.get("chosen") is True:
            fig.add_shape(
                type="rect",
                x0=cell.column_index - 0.48,
                x1=cell.column_index + 0.48,
                y0=cell.row_index - 0.47,
                y1=cell.row_index + 0.47,
                line={"color": style.VERMILLION, "width": 3},
            )
    return fig
