"""Metrics on models of known faithfulness, one figure per metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import Row, count_range, figure, table_records
from cotlab.figures.layout import apply_style, card_template
from cotlab.figures.marks import Mark, draw_background, draw_series, subtitle_notes

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
    is_unit_range = (rows[0].get("lowest"), rows[0].get("highest")) == (0, 1)
    if is_unit_range and dose_rows and rows[0].get("moves"):
        line_ends = [0, 1] if rows[0].get("faithful_is", "higher") == "higher" else [1, 0]
        line = {"color": style.hue(style.SOFT_TEXT_COLOUR), "width": 1, "dash": "dot"}
        draw_background(fig, [0, 1], line_ends, mode="lines", line=line)
    styles = style.category_styles((str(row["group"]) for row in rows), GROUP_ORDER)
    all_marks = []
    for group, category_style in styles.items():
        group_rows = dose_rows if group == "dose" else [r for r in rows if r["group"] == group]
        marks = [
            Mark(group, _position(row, group, i, len(group_rows)), str(row["organism"]), row)
            for i, row in enumerate({**row, "reason": row.get("why")} for row in group_rows)
        ]
        is_dose = group == "dose"
        axes = {"xaxis": "x" if is_dose else "x2"}
        draw_series(fig, marks, category_style, is_joined=is_dose, axes=axes)
        all_marks += marks
    _set_axes(fig, dose_rows, rows, is_unit_range)
    metric = style.escape(str(rows[0]["metric"]).replace("_", " "))
    unit_text = f" ({style.escape(rows[0]['unit'])})" if rows[0].get("unit") else ""
    return apply_style(
        fig,
        f"{metric} on models of known faithfulness{_range_text(rows[0])}",
        subtitle=subtitle_notes(all_marks),
        y=f"Mean{unit_text}",
        height=400,
    )


def _range_text(row: Row) -> str:
    """Return range and unit of a metric, as " (0 to 1, nats)", as far as they are known."""
    bounds = [float(row[name]) for name in ("lowest", "highest") if not pd.isna(row.get(name))]
    end_texts = [f"{bound:g}" for bound in bounds if max(map(abs, bounds)) < _UNBOUNDED_LIMIT]
    range_texts = [" to ".join(end_texts).replace("-", "−")] if len(end_texts) == 2 else []
    range_texts += [style.escape(row["unit"])] if row.get("unit") else []
    return f" ({', '.join(range_texts)})" if range_texts else ""


def _position(row: Row, group: str, index: int, n_rows: int) -> float:
    """Return the dose of a model, or the place of another one beside those of its group."""
    if group == "dose":
        return float(row["dose"])
    offset = (index - (n_rows - 1) / 2) * 2 * _MODEL_SPACING
    return _NON_DOSE_GROUPS.index(group) + offset


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
            **card_template().layout.xaxis.to_plotly_json(),
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
