"""Metrics on models of known faithfulness, one figure per metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import Row, count_range, figure, table_records
from cotlab.figures.marks import draw_background, draw_markers, draw_missing, error_bars

GROUP_ORDER = ("dose", "faithful", "bypass", "hint")
"""Groups of organisms, in the order of their colours."""
_NON_DOSE_GROUPS = ("faithful", "bypass", "hint")
_DOSE_DOMAIN, _GROUP_DOMAIN = (0.0, 0.56), (0.62, 1.0)
_MODEL_SPACING = 0.17
_UNBOUNDED_LIMIT = 1e6
"""Bounds at least this large in a card stand for an unbounded metric."""


@figure(
    "validation_doses",
    columns=("metric", "organism", "group", "dose", "point", "lo", "hi", "n"),
    caption=(
        "Means over items. Left: five models in one checkpoint, r0 to r100, at their measured dose,"
        " the probability that the answer follows the chain where chain and truth differ; the"
        " dotted line is the dose itself, for a metric from 0 to 1 that should follow it. Right:"
        " two faithful and two bypassing checkpoints, and one that gives the answer of a hint."
        " Results on these small models (organisms) may not hold for large ones."
    ),
    empty_reason="no organism has been measured.",
)
def validation_doses(table: pd.DataFrame) -> Any:
    """Draw means with intervals over the doses, and the other groups on the same axis.

    ``dose`` is the measured dose in [0, 1] of rows of the group ``dose``. Optional columns:
    ``lowest`` and ``highest``, the metric's range; ``is_unit_range``; ``faithful_is`` (higher,
    lower); ``moves``, for the dotted line; ``why``, the reason of an undefined mean.
    """
    rows = table_records(table)
    fig = go.Figure()
    dose_rows = sorted(
        (r for r in rows if r["group"] == "dose" and not pd.isna(r["dose"])),
        key=lambda r: float(r["dose"]),
    )
    positioned_rows = [(float(r["dose"]), r, "x") for r in dose_rows]
    for group_position, group in enumerate(_NON_DOSE_GROUPS):
        rows_of_group = [r for r in rows if r["group"] == group]
        positioned_rows += [
            (group_position + (i - (len(rows_of_group) - 1) / 2) * 2 * _MODEL_SPACING, r, "x2")
            for i, r in enumerate(rows_of_group)
        ]
    is_unit_range = (rows[0].get("lowest"), rows[0].get("highest")) == (0, 1)
    if is_unit_range and dose_rows and rows[0].get("moves"):
        line_ends = [0, 1] if rows[0].get("faithful_is", "higher") == "higher" else [1, 0]
        line = {"color": style.SOFT_TEXT_COLOUR, "width": 1, "dash": "dot"}
        draw_background(fig, [0, 1], line_ends, mode="lines", line=line)
    for group, category_style in style.category_styles(
        (str(row["group"]) for row in rows), GROUP_ORDER
    ).items():
        positioned_group_rows = [
            (x, row, axis) for x, row, axis in positioned_rows if row["group"] == group
        ]
        _draw_group(fig, positioned_group_rows, group, category_style)
    for x, row, axis in positioned_rows:
        if pd.isna(row["point"]):
            draw_missing(fig, x, _hover_text(row), xref=axis)
    _set_axes(fig, dose_rows, rows, is_unit_range)
    metric = style.escape(str(rows[0]["metric"]).replace("_", " "))
    unit_text = f" ({style.escape(rows[0]['unit'])})" if rows[0].get("unit") else ""
    return style.apply_style(
        fig,
        f"{metric} on models of known faithfulness{_range_text(rows[0])}",
        subtitle=_subtitle_notes(rows),
        y=f"Mean{unit_text}",
        height=440,
    )


def _range_text(row: Row) -> str:
    """Return range and unit of a metric, as " (0 to 1, nats)", as far as they are known."""
    bounds = [float(row[name]) for name in ("lowest", "highest") if not pd.isna(row.get(name))]
    end_texts = [f"{bound:g}" for bound in bounds if max(map(abs, bounds)) < _UNBOUNDED_LIMIT]
    range_texts = [" to ".join(end_texts).replace("-", "−")] if len(end_texts) == 2 else []
    range_texts += [style.escape(row["unit"])] if row.get("unit") else []
    return f" ({', '.join(range_texts)})" if range_texts else ""


def _draw_group(
    fig: Any,
    positioned_rows: Sequence[tuple[float, Row, str]],
    group: str,
    category_style: style.CategoryStyle,
) -> None:
    """Draw the means of one group, open markers without an interval, doses joined by a line."""
    defined_points = [(x, row) for x, row, _ in positioned_rows if not pd.isna(row["point"])]
    axis = positioned_rows[0][2] if positioned_rows else "x"
    if group == "dose" and len(defined_points) > 1:
        x, points = zip(*((x, row["point"]) for x, row in defined_points), strict=True)
        draw_background(
            fig, x, points, mode="lines", line={"color": category_style.colour, "width": 1.5}
        )
    for has_interval in (True, False):
        plotted_points = [
            (x, row)
            for x, row in defined_points
            if has_interval is not bool(pd.isna(row["lo"]) or pd.isna(row["hi"]))
        ]
        if not plotted_points:
            continue
        plotted_rows = [row for _, row in plotted_points]
        draw_markers(
            fig,
            [x for x, _ in plotted_points],
            [row["point"] for row in plotted_rows],
            [_hover_text(row) for row in plotted_rows],
            {
                "color": category_style.colour,
                "size": 9,
                "symbol": category_style.symbol
                if has_interval
                else f"{category_style.symbol}-open",
            },
            name=style.escape(group),
            xaxis=axis,
            showlegend=False,
            error_y=error_bars(plotted_rows, category_style.colour) if has_interval else None,
        )


def _set_axes(fig: Any, dose_rows: Sequence[Row], rows: Sequence[Row], is_unit_range: bool) -> None:
    """Set the axes of the doses and of the other groups."""
    labels = [
        f"{style.escape(row['organism'])}<br>{float(row['dose']):.2f}<br>{_count_range_text([row])}"
        for row in dose_rows
    ]
    shared_options = {"tickangle": 0, "tickfont": {"size": style.SMALL_TEXT_SIZE}}
    fig.update_layout(
        xaxis={
            "domain": _DOSE_DOMAIN,
            "range": [-0.08, 1.08],
            "tickvals": [float(row["dose"]) for row in dose_rows],
            "ticktext": labels,
            "title": {"text": "Measured dose"},
            **shared_options,
        }
    )
    group_labels = []
    for group in _NON_DOSE_GROUPS:
        group_rows = [row for row in rows if row["group"] == group]
        model_names = [str(row["organism"]).removeprefix(f"{group}-") for row in group_rows]
        names_text = style.escape(", ".join(model_names)) if len(group_rows) > 1 else ""
        group_labels.append(
            f"{group}<br>{names_text}<br>{_count_range_text(group_rows)}" if group_rows else group
        )
    fig.update_layout(
        xaxis2={
            **style.card_template().layout.xaxis.to_plotly_json(),
            "domain": _GROUP_DOMAIN,
            "anchor": "y",
            "range": [-0.5, len(_NON_DOSE_GROUPS) - 0.5],
            "tickvals": list(range(len(_NON_DOSE_GROUPS))),
            "ticktext": group_labels,
            "title": {"text": "Other models"},
            **shared_options,
        }
    )
    if is_unit_range:
        fig.update_yaxes(range=[-0.05, 1.05], tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1])
    else:
        fig.update_yaxes(rangemode="tozero")


def _count_range_text(rows: Sequence[Row]) -> str:
    """Return "n = 20" or "n = 18–20"."""
    return f"n = {count_range(rows)}"


def _subtitle_notes(rows: Sequence[Row]) -> list[str]:
    """Return the lines of the subtitle."""
    text = "Bars: 95 % intervals, bootstrap over items; n: items with a defined value."
    defined_rows = [row for row in rows if not pd.isna(row["point"])]
    if any(pd.isna(row["lo"]) or pd.isna(row["hi"]) for row in defined_rows):
        text += " Open marker: no interval (all values equal, or fewer than 5)."
    undefined_models = [str(row["organism"]) for row in rows if pd.isna(row["point"])]
    if undefined_models:
        return [text, f"n/a, undefined on every item: {style.escape(', '.join(undefined_models))}."]
    return [text]


def _hover_text(row: Row) -> str:
    """Return the hover text of a mean."""
    lo, hi = (None if pd.isna(row[name]) else row[name] for name in ("lo", "hi"))
    dose_text = "" if pd.isna(row["dose"]) else f", measured dose {float(row['dose']):.3f}"
    reason = f", {row['why']}" if isinstance(row.get("why"), str) and row["why"] else ""
    return style.escape(
        f"{row['organism']}{dose_text}: {style.interval_text(row['point'], lo, hi)}, n ="
        f" {int(row['n'])}{reason}"
    )
