"""Series of modes or of metrics: their order, colours, names and places side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cotlab.figures import style
from cotlab.figures.declare import Row, count_range
from cotlab.figures.marks import Mark, draw_series

METRIC_ORDER = (
    "answer_change",
    "accuracy_delta",
    "token_delta",
    "kl_divergence",
    "total_variation",
)
"""Scores in [0, 1] that can be a CCS; modes and metrics have one colour in all figures."""

_METRIC_UNITS = {
    "kl_divergence": "nats, clamped to 1",
    "kl_nats": "nats",
    "topk_rest": "probability",
}


def step_metric_label(metric: object) -> str:
    """Return the display name of a metric."""
    return str(metric).replace("_", " ").replace("kl ", "KL ")


def unit_text(metrics: Sequence[str]) -> str:
    """Return the unit of the metrics for the title."""
    units = {
        _METRIC_UNITS.get(metric, "0 to 1" if metric in METRIC_ORDER else "unit of the metric")
        for metric in metrics
    }
    if len(units) == 1:
        return units.pop()
    other_units = [
        f"{step_metric_label(metric)}: {_METRIC_UNITS[metric]}"
        for metric in metrics
        if metric in _METRIC_UNITS
    ]
    return "; ".join(["0 to 1", *other_units])


def order_names(names: Iterable[str], known_names: Sequence[str]) -> list[str]:
    """Return each name once, the known ones first and in their order."""
    unique_names = list(dict.fromkeys(names))
    return [name for name in known_names if name in unique_names] + [
        name for name in unique_names if name not in known_names
    ]


def column_names(rows: Sequence[Row], column: str, known_names: Sequence[str]) -> list[str]:
    """Return the names in a column, known ones first."""
    return order_names((str(row[column]) for row in rows), known_names)


def position_marks(
    rows: Sequence[Row],
    get_series_name: Callable[[Row], str],
    known_names: Sequence[str],
    get_position: Callable[[Row], tuple[int, str]],
    spacing: float | None = None,
) -> list[Mark]:
    """Return marks ordered by series, side by side where they share a position."""
    series_order = order_names(map(get_series_name, rows), known_names)
    series_spacing = min(0.14, 0.75 / len(series_order)) if spacing is None else spacing
    marks = []
    for row in rows:
        series, (x, label) = get_series_name(row), get_position(row)
        marks.append(
            Mark(
                series,
                x + (series_order.index(series) - (len(series_order) - 1) / 2) * series_spacing,
                label,
                row,
            )
        )
    return sorted(marks, key=lambda mark: (series_order.index(mark.series), mark.x))


def draw_all_series(
    fig: Any,
    marks: Sequence[Mark],
    known_names: Sequence[str],
    *,
    with_legend: bool = True,
    is_upright: bool = True,
) -> None:
    """Draw each series with its own colour and symbol, in the order of the marks.

    Their points are never joined: they stand side by side at a category or a step position, and
    the way from one to the next is no value of anything.
    """
    style_by_series = style.category_styles((mark.series for mark in marks), known_names)
    for name in dict.fromkeys(mark.series for mark in marks):
        draw_series(
            fig,
            [mark for mark in marks if mark.series == name],
            style_by_series[name],
            in_legend=with_legend and len(style_by_series) > 1,
            is_upright=is_upright,
        )


def count_text_at(rows: Sequence[Row], column: str, value: Any) -> str:
    """Return the number of items at one position."""
    return count_range(row for row in rows if row[column] == value)


def set_effect_axis(fig: Any, metrics: Sequence[str]) -> Any:
    """Set the axis to [0, 1] for metrics in that range."""
    if set(metrics) <= set(METRIC_ORDER):
        return fig.update_yaxes(range=[-0.05, 1.05], tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1])
    return fig.update_yaxes(rangemode="tozero")
