"""Rates of unfaithful responses, judge scores and chain measures by group, with intervals."""

from __future__ import annotations

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
    subtitle_notes,
    threshold_marks,
)
from cotlab.figures.rows import draw_estimate_rows

GROUPED_COLUMNS = ("group", "at", "point", "lo", "hi", "n", "n_undefined", "reason")
"""Columns of a figure by group: ``group`` is a colour and symbol, ``at`` a position on the axis."""
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
    """Draw a row for each group at each epoch, or for each classifier."""
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
        (0, 1),
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
    """Draw a row for each group in each category."""
    return _draw_groups(
        table_records(table),
        "Unfaithful responses by category (%)",
        "Unfaithful rate (%)",
        (0, 1),
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
    """Draw a row for each judge at each epoch, and a line at 0.

    The optional column ``code`` is the index of a group's colour and symbol, so that it is the same
    as in other figures.
    """
    rows = table_records(table)
    has_raw_values = any(0 < int_value(row, "n") <= MAX_RAW_VALUES for row in rows)
    min_range = (-10, 10) if has_raw_values else (0, 1)
    fig = _draw_groups(rows, "Judge score (mean, −10 to +10)", "Judge score", min_range)
    draw_reference_line(fig, x=0)
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
    """Draw a row for each group at each epoch."""
    rows = table_records(table)
    measure = style.escape(text_value(rows[0], "measure") or "units")
    title = f"Length of the chain (mean, {measure})"
    return _draw_groups(rows, title, f"{measure.capitalize()} per chain")


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
    """Draw a row for each group at each epoch, on an axis of logarithms."""
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
    title = "Process words per result word (geometric mean, ratio)"
    fig = _draw_groups(rows, title, "Ratio (log axis)", notes=zero_notes)
    return fig.update_xaxes(type="log", range=None)


def _draw_groups(
    rows: Sequence[Row],
    title: str,
    value_title: str,
    min_range: tuple[float, float] = (0, 0),
    *,
    is_share: bool = False,
    notes: Sequence[str] = (),
) -> Any:
    """Draw a row for each group at each position, with its numbers at the right."""
    names = list(group_rows(rows, "group"))
    group_by_code = {
        int(code): str(row["group"])
        for row in rows
        if (code := float_value(row, "code")) is not None
    }
    coded_names = [group_by_code.get(i, "") for i in range(max(group_by_code, default=-1) + 1)]
    return draw_estimate_rows(
        [Mark(str(row["group"]), 0, str(row["at"]), row, is_share=is_share) for row in rows],
        title,
        x=value_title,
        min_range=min_range,
        styles=style.category_styles(names, coded_names),
        notes=notes,
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
