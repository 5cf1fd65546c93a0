"""Calibrated scores: reliability diagram, histogram by label, and shares by threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.calibration import draw_diagonal, draw_thresholds, set_score_axis
from cotlab.figures.declare import (
    Row,
    figure,
    float_value,
    group_rows,
    int_value,
    table_records,
    text_value,
)
from cotlab.figures.layout import apply_style
from cotlab.figures.marks import (
    Mark,
    draw_background,
    draw_reference_line,
    draw_series,
    jitter_offset,
    subtitle_notes,
    threshold_marks,
)

LABEL_GROUPS = ("acceptable", "not acceptable", "no label")
"""Groups of the histogram: the raters' verdict on chain and answer."""
_GROUP_COLOURS = {
    "acceptable": style.BLUE,
    "not acceptable": style.VERMILLION,
    "no label": style.SHADE_COLOUR,
}
_BAND_COLUMNS = ("band_hi", "band_lo")
_MIN_LABEL_DISTANCE = 0.11
"""Distance below which bins share one label with their numbers of chains."""
_MAX_LABELLED_POINTS = 12
"""Number of points above which n is shown only on hover."""


@figure(
    "reliability_diagram",
    columns=("predicted", "point", "lo", "hi", "n"),
    caption=(
        "The share of labelled chains that raters found acceptable, by predicted probability: on"
        " the diagonal a score of 0.8 means 8 of 10. Bins have equal numbers of chains, except for"
        " ties. A calibrated score is an average over chains like these: it does not show which of"
        " ten is the bad one, and it is as good as the labels."
    ),
    empty_reason="no labelled chain has a calibrated score.",
)
def reliability_diagram(table: pd.DataFrame) -> Any:
    """Draw a dot with its interval and n for each bin, the diagonal, and the thresholds.

    Optional columns: ``band_lo`` and ``band_hi``, the band in which bins of a perfectly calibrated
    forecaster fall; ``values``, the single outcomes of a bin, 0 or 1; ``scores``, their
    predictions.
    """
    rows = sorted(
        (row for row in table_records(table) if float_value(row, "predicted") is not None),
        key=lambda row: row["predicted"],
    )
    fig, accent_colour = go.Figure(), style.hue(style.ACCENT_COLOUR)
    has_band = _draw_band(fig, rows)
    draw_diagonal(fig)
    notes = ["Dotted: perfect calibration."]
    marks = [
        Mark(
            "",
            row["predicted"],
            f"predicted {style.format_number(row['predicted'])}",
            row,
            is_share=True,
        )
        for row in rows
    ]
    raw_outcomes = [mark.raw_values for mark in marks]
    for row, values in zip(rows, raw_outcomes, strict=True) if all(raw_outcomes) else ():
        scores = row.get("scores")
        if not isinstance(scores, (list, tuple)) or len(scores) != len(values):
            scores = [row["predicted"] + 0.3 * jitter_offset(i) for i in range(len(values))]
        marker = {"color": style.with_opacity(accent_colour, 0.3), "size": 5}
        draw_background(fig, list(scores), values, mode="markers", cliponaxis=False, marker=marker)
    marks_without_values = [mark._replace(row={**mark.row, "values": None}) for mark in marks]
    draw_series(
        fig,
        marks_without_values,
        style.CategoryStyle(accent_colour, "circle"),
        is_joined=True,
    )
    for label_group in _group_overlapping(marks) if len(marks) <= _MAX_LABELLED_POINTS else ():
        is_label_above = _has_label_above(label_group[0])
        label_y = (
            max(_label_edge(mark) for mark in label_group)
            if is_label_above
            else min(_label_edge(mark) for mark in label_group)
        )
        fig.add_annotation(
            x=sum(mark.x for mark in label_group) / len(label_group),
            y=label_y,
            yanchor="bottom" if is_label_above else "top",
            yshift=4 if is_label_above else -4,
            text=f"n = {', '.join(str(mark.n) for mark in label_group)}",
            bgcolor=style.with_opacity(style.hue(style.BACKGROUND_COLOUR), 0.75),
            xanchor="left" if len(label_group) > 1 and label_group[0].x < 0.1 else "center",
        )
    if has_band:
        notes.append("Shade: where bins of a perfectly calibrated forecaster fall, 95%.")
    count_line = (
        f"n = {sum(int_value(row, 'n') for row in rows):,} labelled chains in {len(rows)} bins."
    )
    notes = [
        count_line,
        *subtitle_notes(marks if all(raw_outcomes) else marks_without_values),
        " ".join([*notes, *draw_thresholds(fig, rows)]),
    ]
    fig.update_xaxes(range=[-0.03, 1.03], tickvals=[i / 10 for i in range(11)])
    fig.update_yaxes(range=[-0.05, 1.05], tickformat=".0%")
    return apply_style(
        fig,
        "Acceptable chains by prediction (%)",
        subtitle=notes,
        x="Predicted probability of acceptable reasoning (mean of the bin)",
        y="Observed share (%)",
        height=430,
    )


def _has_label_above(mark: Mark) -> bool:
    """Return whether the label of a bin goes above it rather than below."""
    return (mark.point or 0.0) < 0.55


def _label_edge(mark: Mark) -> float:
    """Return the position of the label of a bin: the end of its interval, or its point."""
    interval_end = mark.hi if _has_label_above(mark) else mark.lo
    return (mark.point or 0.0) if interval_end is None else interval_end


def _group_overlapping(marks: Sequence[Mark]) -> list[list[Mark]]:
    """Group the bins with a point, from left to right, whose labels would overlap."""
    groups: list[list[Mark]] = []
    for mark in (mark for mark in marks if mark.point is not None):
        previous_mark = groups[-1][-1] if groups else None
        is_close = (
            previous_mark is not None
            and mark.x - previous_mark.x < _MIN_LABEL_DISTANCE
            and abs(_label_edge(mark) - _label_edge(previous_mark)) < _MIN_LABEL_DISTANCE
        )
        if (
            previous_mark is not None
            and is_close
            and _has_label_above(previous_mark) is _has_label_above(mark)
        ):
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return groups


@figure(
    "score_histogram",
    columns=("group", "left", "right", "count"),
    caption=(
        "Acceptable means that the answer is right and the reasoning adequate. The further apart"
        " the two colours, the better the score separates them. Chains without a label are drawn"
        " too, so that labels from only one end of the scale are visible."
    ),
    empty_reason="no chain has a score.",
)
def score_histogram(table: pd.DataFrame) -> Any:
    """Draw stacked bars by group with the number of chains, and the policy's thresholds.

    Optional columns: ``score_name``, the display name of the score; ``n_missing``, the number of
    chains without one.
    """
    rows = table_records(table)
    score_name, fig = text_value(rows[0], "score") or "r_raw", go.Figure()
    bin_edges = sorted({(float(row["left"]), float(row["right"])) for row in rows})
    count_by_group_and_bin = {
        (str(row["group"]), float(row["left"])): int_value(row, "count") for row in rows
    }
    group_names = list(dict.fromkeys([*LABEL_GROUPS, *(str(row["group"]) for row in rows)]))
    total_by_group = {
        name: sum(count_by_group_and_bin.get((name, bin_start), 0) for bin_start, _ in bin_edges)
        for name in group_names
    }
    for name in group_names:
        if name not in LABEL_GROUPS and not total_by_group[name]:
            continue
        colour = style.hue(_GROUP_COLOURS.get(name, style.PURPLE))
        bar_heights = [
            count_by_group_and_bin.get((name, bin_start), 0) for bin_start, _ in bin_edges
        ]
        label = style.escape(style.truncate_text(name, 40))
        fig.add_bar(
            x=[(bin_start + bin_end) / 2 for bin_start, bin_end in bin_edges],
            y=bar_heights,
            width=[(bin_end - bin_start) * 0.94 for bin_start, bin_end in bin_edges],
            name=f"{label} (n = {total_by_group[name]:,})",
            hoverinfo="text",
            hovertext=[
                f"{style.escape(score_name)} {bin_start:g} to {bin_end:g}<br>{label}: {n:,} chains"
                for (bin_start, bin_end), n in zip(bin_edges, bar_heights, strict=True)
            ],
            marker={"color": colour, "line": {"width": 0}},
        )
    totals_by_bin = [
        sum(count_by_group_and_bin.get((name, bin_start), 0) for name in group_names)
        for bin_start, _ in bin_edges
    ]
    for (bin_start, bin_end), n in zip(bin_edges, totals_by_bin, strict=True):
        if n and len(bin_edges) <= 20:
            fig.add_annotation(x=(bin_start + bin_end) / 2, y=n, yanchor="bottom", text=f"{n:,}")
    threshold_notes = draw_thresholds(fig, rows)
    subtitle = [f"n = {sum(totals_by_bin):,} chains; the number on each bar."]
    n_missing = int_value(rows[0], "missing")
    subtitle += [f"n/a: {n_missing:,} chains have no score and are not drawn."] if n_missing else []
    subtitle += [" ".join(threshold_notes)] if threshold_notes else []
    subtitle += set_score_axis(
        fig, [bin_edges[0][0], bin_edges[-1][1]], with_full_range=bool(threshold_notes)
    )
    fig.update_yaxes(range=[0, max([1, *totals_by_bin]) * 1.14], tickformat=",d", nticks=6)
    apply_style(
        fig,
        "Scores of chains: number of chains by score (0 to 1)",
        subtitle=subtitle,
        x=style.escape(score_name),
        y="Chains",
        height=360,
    )
    return fig.update_layout(barmode="stack")


def _draw_band(fig: Any, rows: Sequence[Row]) -> bool:
    """Shade the band between ``band_lo`` and ``band_hi``, if the table has both."""
    band_rows = [
        row for row in rows if None not in (float_value(row, name) for name in _BAND_COLUMNS)
    ]
    if not band_rows:
        return False
    x_values = [float(row["predicted"]) for row in band_rows]
    if len(band_rows) == 1:
        x_values = [x_values[0] - 0.02, x_values[0] + 0.02]
        band_rows = [band_rows[0], band_rows[0]]
    upper_bounds, lower_bounds = ([float(row[name]) for row in band_rows] for name in _BAND_COLUMNS)
    draw_background(
        fig,
        [*x_values, *x_values[::-1]],
        [*upper_bounds, *lower_bounds[::-1]],
        mode="lines",
        fill="toself",
        fillcolor=style.with_opacity(style.hue(style.BLACK), 0.09),
        line={"width": 0},
    )
    return True


@figure(
    "threshold_volumes",
    columns=(
        "group",
        "threshold",
        "low",
        "high",
        "point",
        "lo",
        "hi",
        "n",
        "n_undefined",
        "reason",
    ),
    caption=(
        "The first line is the share of answers at or above a threshold: the answers that are"
        " released if high is set there, and not escalated if low is. Both errors are shares of"
        " these answers. Expected errors are computed from the calibrator alone; their bars do not"
        " include its uncertainty. Errors found by raters cover labelled answers only, which may"
        " differ from the others."
    ),
    empty_reason="no answer has been scored.",
)
def threshold_volumes(table: pd.DataFrame) -> Any:
    """Draw a line for each share with an interval at each threshold, and lines at low and high."""
    rows = table_records(table)
    rows_by_group = group_rows(rows, "group", "threshold")
    fig, all_marks = go.Figure(), list[Mark]()
    thresholds = [
        (name, value)
        for name in ("low", "high")
        if (value := float_value(rows[0], name)) is not None
    ]
    are_thresholds_equal = len({value for _, value in thresholds}) < len(thresholds)
    for index, (name, value) in enumerate(thresholds):
        draw_reference_line(fig, x=value, line_dash="dash" if name == "low" else "solid", width=1.2)
        if not (are_thresholds_equal and index):
            text = "low = high" if are_thresholds_equal else name
            fig.add_annotation(
                x=value,
                y=1,
                yref="paper",
                yanchor="bottom",
                text=f"{text} {style.format_number(value)}",
                xanchor="right" if name == "low" and not are_thresholds_equal else "left",
            )
    for index, (name, category_style) in enumerate(style.category_styles(rows_by_group).items()):
        item_counts = [int_value(row, "n") for row in rows_by_group[name]]
        count_text = " to ".join(map(str, dict.fromkeys((item_counts[0], item_counts[-1]))))
        marks = threshold_marks(
            rows_by_group[name],
            f"{style.truncate_text(name, 22)} (n = {count_text})",
            (index - (len(rows_by_group) - 1) / 2) * 0.008,
        )
        defined_marks = [mark for mark in marks if mark.point is not None]
        # a curve: the share is a function of the threshold
        draw_series(fig, defined_marks, category_style, in_legend=True, is_joined=True)
        all_marks += marks
    fig.update_xaxes(range=[-0.04, 1.04], tickvals=[i / 10 for i in range(11)])
    fig.update_yaxes(range=[-0.03, 1.03], tickformat=".0%")
    return apply_style(
        fig,
        "Answers and errors by threshold (%)",
        subtitle=subtitle_notes(all_marks),
        x="Threshold on r_cal, the calibrated probability of acceptable reasoning",
        y="Share (%)",
        height=390,
    )
