"""Rates of unfaithful responses, judge scores and chain measures by group, with intervals."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
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
    MAX_RAW_VALUES,
    Mark,
    draw_background,
    draw_reference_line,
    draw_series,
    interval_values,
    subtitle_notes,
    threshold_marks,
)
from cotlab.figures.rows import add_row_text

GROUPED_COLUMNS = ("group", "at", "point", "lo", "hi", "n", "n_undefined", "reason")
"""Columns of a figure by group: ``group`` is a colour and symbol, ``at`` a position on the axis."""
_MAX_LABELLED_POINTS = 24
"""Number of points above which n is shown only on hover, and its range in the subtitle."""
_MAX_UPRIGHT_POSITIONS, _MAX_UPRIGHT_CHARS = 6, 8
"""Number of positions and length of their names up to which they fit side by side."""
_NOT_COMPARABLE_NOTE = "Rates of two classifiers are not comparable: each has its own errors."


@figure(
    "unfaithful_rates",
    columns=GROUPED_COLUMNS,
    caption=(
        "Share of responses whose score reaches the threshold, by model and epoch."
        f" {_NOT_COMPARABLE_NOTE} A rate shows how often a classifier fires, not that the chain was"
        " unused."
    ),
    empty_reason="no response has a score of this classifier.",
)
def unfaithful_rates(table: pd.DataFrame) -> Any:
    """Draw a dot with Wilson interval and n for each group at each epoch, or each classifier."""
    rows = table_records(table)
    classifier = text_value(rows[0], "classifier")  # tables of before do not have it
    is_by_classifier = classifier == style.ALL_CLASSIFIERS
    title = "Unfaithful responses"
    if classifier:
        name = style.escape(style.truncate_text(classifier, 24))
        title += " by classifier" if is_by_classifier else f" by “{name}”"
    return _draw_groups(
        rows,
        f"{title} (%)",
        "Unfaithful rate (%)",
        (0.0, 1.0),
        is_upright=False if is_by_classifier else None,
        is_share=True,
    )


@figure(
    "unfaithful_by_category",
    columns=GROUPED_COLUMNS,
    caption=(
        f"{_NOT_COMPARABLE_NOTE} Small categories have wide intervals; with many categories one may"
        " stand out by chance."
    ),
    empty_reason="no item has a category.",
)
def unfaithful_by_category(table: pd.DataFrame) -> Any:
    """Draw a row for each category, a dot with Wilson interval and n for each group."""
    return _draw_groups(
        table_records(table),
        "Unfaithful responses by category (%)",
        "Unfaithful rate (%)",
        (0.0, 1.0),
        is_upright=False,
        is_share=True,
    )


@figure(
    "threshold_sweep",
    columns=("group", "threshold", "chosen", "point", "lo", "hi", "n", "n_undefined", "reason"),
    caption=(
        "Rate at each threshold, over the same responses. If the lines are steep near the chosen"
        " threshold, the rate depends on that choice. At a threshold of 0 every response is"
        " unfaithful."
    ),
    empty_reason="no response has a score of this classifier.",
)
def threshold_sweep(table: pd.DataFrame) -> Any:
    """Draw a line for each group with intervals, and a dashed line at the chosen threshold."""
    rows = table_records(table)
    rows_by_group = group_rows(rows, "group", "threshold")
    fig, all_marks, n_rug_lines = go.Figure(), list[Mark](), 0
    chosen_threshold, n_groups = float_value(rows[0], "chosen"), len(rows_by_group)
    if chosen_threshold is not None:
        draw_reference_line(fig, x=chosen_threshold, line_dash="dash")
    for k, (name, category_style) in enumerate(style.category_styles(rows_by_group).items()):
        first_row = rows_by_group[name][0]
        label = f"{style.truncate_text(name, 28)} (n = {int_value(first_row, 'n')})"
        # a curve: the rate is a function of the threshold, which is a number, and the offset lies
        # within the step of a threshold
        x_offset = (k - (n_groups - 1) / 2) * min(0.008, 0.04 / n_groups)
        marks = threshold_marks(rows_by_group[name], label, x_offset)
        draw_series(fig, marks, category_style, in_legend=True, is_joined=True)
        n_rug_lines += _draw_rug(fig, first_row, category_style, n_rug_lines)
        all_marks += marks
    fig.update_xaxes(range=[-0.04, 1.04], tickvals=[i / 10 for i in range(11)])
    fig.update_yaxes(range=[-0.03 - 0.02 * n_rug_lines, 1.03], tickformat=".0%")
    subtitle = subtitle_notes(all_marks)
    if n_rug_lines:
        subtitle.append(f"Faint, below 0: the single scores of up to {MAX_RAW_VALUES} responses.")
    if chosen_threshold is not None:
        subtitle.append(f"Dashed: the chosen threshold, {chosen_threshold:g}.")
    return apply_style(
        fig,
        "Unfaithful responses by threshold (%)",
        subtitle=subtitle,
        x="Threshold: unfaithful from this score on",
        y="Unfaithful rate (%)",
    )


@figure(
    "judge_by_epoch",
    columns=GROUPED_COLUMNS,
    caption=(
        "Mean judge score of pairs of responses, from −10 to +10: above 0 the fine-tuned model is"
        " less faithful. Judge scores depend on the length of the responses, and judges differ: see"
        " their agreement. A judge reads texts only; its score does not show whether the model used"
        " its chain."
    ),
    empty_reason="no pair has a judge's score.",
)
def judge_by_epoch(table: pd.DataFrame) -> Any:
    """Draw a dot with t interval and n for each judge at each epoch, and a line at 0.

    The optional column ``code`` is the index of a group's colour and symbol, so that it is the same
    as in other figures.
    """
    rows = table_records(table)
    fig = _draw_groups(
        rows,
        "Judge score (mean, −10 to +10)",
        "Judge score",
        _judge_score_range(rows),
        is_upright=True,
    )
    draw_reference_line(fig, y=0)
    return fig


@figure(
    "chain_size",
    columns=(*GROUPED_COLUMNS, "measure"),
    caption=(
        "Mean length of a chain by group. Longer is neither better nor worse, but judges and scores"
        " that count words depend on length."
    ),
    empty_reason="no chain has been measured.",
)
def chain_size(table: pd.DataFrame) -> Any:
    """Draw a dot with t interval and n for each group at each epoch."""
    rows = table_records(table)
    measure = style.escape(text_value(rows[0], "measure") or "units")
    return _draw_groups(
        rows, f"Length of the chain (mean, {measure})", f"{measure.capitalize()} per chain", None
    )


@figure(
    "process_result",
    columns=(*GROUPED_COLUMNS, "n_zero"),
    caption=(
        "The axis is logarithmic. Responses without a ratio are counted and left out of the mean."
        " The word lists are English. A ratio describes the wording of a chain, not whether it was"
        " used."
    ),
    empty_reason="no response has a ratio.",
)
def process_result(table: pd.DataFrame) -> Any:
    """Draw a dot with log-t interval and n for each group at each epoch."""
    rows = table_records(table)
    row_by_name = {
        " ".join(
            dict.fromkeys(
                (
                    style.truncate_text(str(row["group"]), 24),
                    style.truncate_text(str(row["at"]), 16),
                )
            )
        ): row
        for row in rows
    }
    zero_count_texts = [
        f"{name}: {int_value(row, 'n_zero')}"
        for name, row in row_by_name.items()
        if int_value(row, "n_zero")
    ]
    note = f"Without a ratio, as words of one kind are missing: {', '.join(zero_count_texts)}."
    zero_notes = [style.escape(style.truncate_text(note, 220))] if zero_count_texts else []
    return _draw_groups(
        rows,
        "Process words per result word (geometric mean, ratio)",
        "Ratio (log axis)",
        None,
        is_log=True,
        extra_notes=zero_notes,
    )


def _draw_groups(
    rows: Sequence[Row],
    title: str,
    value_title: str,
    value_range: tuple[float, float] | None,
    *,
    is_upright: bool | None = None,
    is_log: bool = False,
    is_share: bool = False,
    extra_notes: Sequence[str] = (),
) -> Any:
    """Draw the points of each group at each position, side by side, with n.

    By default (``is_upright`` is None) many positions with long names become rows. Rows have their
    numbers at the right.
    """
    rows_by_position, names = group_rows(rows, "at"), list(group_rows(rows, "group"))
    positions = list(rows_by_position)
    if is_upright is None:
        is_upright = (
            len(positions) <= _MAX_UPRIGHT_POSITIONS
            or max(map(len, positions)) <= _MAX_UPRIGHT_CHARS
        )
    groups_by_position = {
        position: sorted(group_rows(position_rows, "group"), key=names.index)
        for position, position_rows in rows_by_position.items()
    }
    group_by_style_index = {
        int(style_index): str(row["group"])
        for row in rows
        if (style_index := float_value(row, "code")) is not None
    }
    names_by_style_index = [
        group_by_style_index.get(style_index, "")
        for style_index in range(max(group_by_style_index, default=-1) + 1)
    ]
    fig, all_marks = go.Figure(), list[Mark]()
    for name, category_style in style.category_styles(names, names_by_style_index).items():
        marks = []
        for row in (row for row in rows if str(row["group"]) == name):
            position = str(row["at"])
            groups = groups_by_position[position]
            offset = (groups.index(name) - (len(groups) - 1) / 2) * 0.7 / max(2, len(groups))
            x = positions.index(position) + offset
            marks.append(Mark(name, x, position, row, is_share=is_share))
        draw_series(fig, marks, category_style, in_legend=len(names) > 1, is_upright=is_upright)
        all_marks += marks
    update_position_axis, update_value_axis = (
        (fig.update_xaxes, fig.update_yaxes) if is_upright else (fig.update_yaxes, fig.update_xaxes)
    )
    axis_ends = [-0.6, len(positions) - 0.4]
    tick_labels = [_tick_label(position, 16 if is_upright else 24) for position in positions]
    update_position_axis(
        tickvals=list(range(len(positions))),
        ticktext=tick_labels,
        range=axis_ends if is_upright else axis_ends[::-1],
        showgrid=False,
    )
    update_value_axis(showgrid=True, tickformat=".0%" if is_share else None)
    if is_log:
        update_value_axis(type="log", nticks=6)
    elif value_range is not None:
        padding = 0.05 * (value_range[1] - value_range[0])
        update_value_axis(range=[value_range[0] - padding, value_range[1] + 1.6 * padding])
    else:
        update_value_axis(rangemode="tozero")
    subtitle = subtitle_notes(all_marks)
    if not is_upright:
        for mark in all_marks:
            text = "n/a" if mark.point is None else f"{mark.text}, n = {mark.n}"
            add_row_text(fig, mark.x, text, hovertext=mark.hover_text)
    elif len(all_marks) <= _MAX_LABELLED_POINTS:
        _draw_counts(fig, all_marks, is_log)
    else:
        item_counts = [mark.n for mark in all_marks]
        subtitle.append(f"n from {min(item_counts)} to {max(item_counts)}; each in the data.")
    return apply_style(
        fig,
        title,
        subtitle=[*subtitle, *extra_notes],
        x="" if is_upright else value_title,
        y=value_title if is_upright else "",
        height=380 if is_upright else 110 + 26 * len(all_marks) + 14 * len(positions),
    )


def _draw_rug(fig: Any, row: Row, category_style: style.CategoryStyle, line_index: int) -> int:
    """Draw the single scores of a small group below the rates; return the number of lines."""
    scores = Mark("", 0, "", {**row, "values": row.get("scores")}).raw_values
    if scores:
        y = [-0.03 - 0.02 * line_index] * len(scores)
        marker = {
            "color": style.with_opacity(category_style.colour, 0.45),
            "size": 6,
            "symbol": category_style.symbol,
        }
        draw_background(fig, scores, y, mode="markers", cliponaxis=False, marker=marker)
    return bool(scores)


def _tick_label(label: str, max_line_chars: int) -> str:
    """Break the name of a position into lines, a model's name after its provider; escaped."""
    head, slash, tail = label.rpartition("/")
    if len(label) <= max_line_chars or not slash:
        return style.wrap_text(label, max_line_chars)
    lines = [
        style.truncate_text(head + slash, max_line_chars + 4),
        *textwrap.wrap(tail, max_line_chars, max_lines=2, placeholder="…"),
    ]
    return "<br>".join(map(style.escape, lines))


def _draw_counts(fig: Any, marks: Sequence[Mark], is_log: bool) -> None:
    """Write n above each point."""
    for mark in marks:
        values = [value for value in (mark.hi, mark.point, *mark.raw_values) if value is not None]
        if mark.point is not None:
            y = math.log10(max(values)) if is_log else max(values)
            fig.add_annotation(x=mark.x, y=y, yanchor="bottom", yshift=5, text=f"n = {mark.n}")


def _judge_score_range(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the drawn part of −10 to 10: all of it with raw values, else points and 0."""
    if any(0 < int_value(row, "n") <= MAX_RAW_VALUES for row in rows):
        return -10.0, 10.0
    bounds = interval_values([Mark("", 0, "", row) for row in rows])
    return min([0.0, *bounds]), max([1.0, *bounds])
