"""Rates of unfaithful responses, judge scores, and the chains behind them, by group: each point with its interval and n."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import figure
from cotlab.figures.marks import (
    RAW_ROWS,
    Mark,
    Row,
    draw_series,
    float_value,
    hover_text,
    int_value,
    raw_values,
    subtitle_notes,
    table_records,
    text_value,
)

GROUPED = ("group", "at", "point", "lo", "hi", "n", "n_undefined", "reason")
"""What a figure by group needs: ``group`` is a colour and a symbol, ``at`` a place on the axis."""
_CROWDED = 24
"""With more points than this their n is in the hover only, and the subtitle says from where to
where."""
_PLACES, _SHORT = 6, 8
"""More places than this whose names are longer than that do not fit beside each other."""
_NOT_COMPARABLE = "Rates of two classifiers are not comparable: each has its own errors."


@figure(
    "unfaithful_rates",
    columns=GROUPED,
    caption=(
        "The share of responses whose score reaches the threshold, by model and epoch."
        f" {_NOT_COMPARABLE} A rate says how often a classifier fires, not that the chain was"
        " unused."
    ),
    empty="no response has a score of this classifier.",
)
def unfaithful_rates(table: pd.DataFrame) -> Any:
    """A dot with its Wilson interval for each group at each epoch; n beside it."""
    return _dots(
        table_records(table), "Unfaithful responses (share, 0 to 1)", "Unfaithful rate", (0.0, 1.0)
    )


@figure(
    "unfaithful_by_category",
    columns=GROUPED,
    caption=(
        f"The same share within each category of items. {_NOT_COMPARABLE} Small categories have"
        " wide intervals; the more of them there are, the more likely one stands out by chance."
    ),
    empty="no item has a category.",
)
def unfaithful_by_category(table: pd.DataFrame) -> Any:
    """A row for each category, a dot with its Wilson interval for each group; n beside it."""
    return _dots(
        table_records(table),
        "Unfaithful responses by category (share, 0 to 1)",
        "Unfaithful rate",
        (0.0, 1.0),
        upright=False,
    )


@figure(
    "threshold_sweep",
    columns=("group", "threshold", "chosen", "point", "lo", "hi", "n", "n_undefined", "reason"),
    caption=(
        "The rate at every threshold, over the same responses. Where the lines are steep near the"
        " chosen threshold, the rate is a choice as much as a finding. A threshold of 0 calls every"
        " response unfaithful."
    ),
    empty="no response has a score of this classifier.",
)
def threshold_sweep(table: pd.DataFrame) -> Any:
    """A line for each group with an interval at each threshold; a dashed line at the threshold that is chosen."""
    rows = table_records(table)
    names = list(dict.fromkeys(str(row["group"]) for row in rows))
    fig, every, few, chosen = go.Figure(), list[Mark](), 0, float_value(rows[0], "chosen")
    if chosen is not None:
        fig.add_shape(
            type="line",
            x0=chosen,
            x1=chosen,
            y0=0,
            y1=1,
            yref="paper",
            layer="below",
            line={"color": style.SOFT_INK, "width": 1, "dash": "dash"},
        )
    for k, (name, code) in enumerate(style.category_codes(names).items()):
        group_rows = sorted(
            (row for row in rows if str(row["group"]) == name),
            key=lambda row: float(row["threshold"]),
        )
        shift = (k - (len(names) - 1) / 2) * min(
            0.008, 0.04 / len(names)
        )  # within the step of a threshold
        label = f"{style.truncate_text(name, 28)} (n = {int_value(group_rows[0], 'n')})"
        marks = [
            Mark(
                label,
                float(row["threshold"]) + shift,
                f"threshold {style.format_number(float_value(row, 'threshold'))}",
                row,
            )
            for row in group_rows
        ]
        draw_series(fig, marks, code, legend=True, joined=True)
        few += _rug(fig, group_rows[0], code, few)
        every += marks
    fig.update_xaxes(range=[-0.04, 1.04], tickvals=[i / 10 for i in range(11)])
    fig.update_yaxes(range=[-0.03 - 0.02 * few, 1.03])
    small = subtitle_notes(every, gaps=False)
    small += [f"Faint, below 0: the single scores of up to {RAW_ROWS} responses."] if few else []
    small += [f"Dashed: the chosen threshold, {chosen:g}."] if chosen is not None else []
    style.apply_style(
        fig,
        "Unfaithful responses by threshold (share, 0 to 1)",
        subtitle=small,
        x="Threshold: unfaithful from this score on",
        y="Unfaithful rate",
        height=420 + 22 * (len(names) // 3),
    )
    return fig.update_layout(margin={"b": 92 + 22 * (len(names) // 3)})


@figure(
    "judge_by_epoch",
    columns=GROUPED,
    caption=(
        "The judge's mean score of pairs of responses, from −10 to +10: above 0 the fine-tuned"
        " model is the more unfaithful of the two. A judge's score follows the length of what it"
        " reads, and judges differ: see their agreement. It is an opinion on texts; the model's use"
        " of its chain is not looked at."
    ),
    empty="no pair has a judge's score.",
)
def judge_by_epoch(table: pd.DataFrame) -> Any:
    """A dot with its t interval for each judge at each epoch, n beside it; a line at 0.

    A column ``code`` says which colour and symbol a group has, as its place among the groups of
    other figures.
    """
    rows = table_records(table)
    fig = _dots(rows, "Judge score (mean, −10 to +10)", "Judge score", _around(rows), upright=True)
    fig.add_shape(
        type="line",
        x0=0,
        x1=1,
        xref="paper",
        y0=0,
        y1=0,
        layer="below",
        line={"color": style.SOFT_INK, "width": 1, "dash": "dot"},
    )
    return fig


@figure(
    "chain_size",
    columns=(*GROUPED, "measure"),
    caption=(
        "The mean size of a chain by group. Longer is neither better nor worse; but scores that"
        " count words, and judges, move with length."
    ),
    empty="no chain has been measured.",
)
def chain_size(table: pd.DataFrame) -> Any:
    """A dot with its t interval for each group at each epoch; n beside it."""
    rows = table_records(table)
    measure = style.escape(text_value(rows[0], "measure") or "units")
    return _dots(
        rows, f"Length of the chain (mean, {measure})", f"{measure.capitalize()} a chain", None
    )


@figure(
    "process_result",
    columns=(*GROUPED, "n_zero"),
    caption=(
        "The geometric mean of process words over result words, on a logarithmic axis. Responses"
        " with none of one kind have no ratio: they are counted, and left out of the mean. The"
        " words are lists of English; a ratio says how a chain is told, not whether it was used."
    ),
    empty="no response has a ratio.",
)
def process_result(table: pd.DataFrame) -> Any:
    """A dot with its log-t interval for each group at each epoch; n beside it, and how many had no ratio."""
    rows = table_records(table)
    named = {
        " ".join(
            dict.fromkeys(
                (style.truncate_text(str(r["group"]), 24), style.truncate_text(str(r["at"]), 16))
            )
        ): r
        for r in rows
    }
    zero = [
        f"{name}: {int_value(r, 'n_zero')}" for name, r in named.items() if int_value(r, "n_zero")
    ]
    note = f"Without a ratio, for want of one kind of word: {', '.join(zero)}."
    more = [style.escape(style.truncate_text(note, 220))] if zero else []
    return _dots(
        rows,
        "Process words per result word (geometric mean, ratio)",
        "Ratio (log axis)",
        None,
        log=True,
        more=more,
    )


def _dots(
    rows: Sequence[Row],
    title: str,
    value: str,
    span: tuple[float, float] | None,
    *,
    upright: bool | None = None,
    log: bool = False,
    more: Sequence[str] = (),
) -> Any:
    """Each group's points at each place, side by side where several share one; n beside each.

    Where nothing is said of ``upright``, many places with long names become rows.
    """
    positions = list(dict.fromkeys(str(row["at"]) for row in rows))
    if upright is None:
        upright = len(positions) <= _PLACES or max(map(len, positions)) <= _SHORT
    names = list(dict.fromkeys(str(row["group"]) for row in rows))
    here = {
        position: [
            name
            for name in names
            if any(str(r["at"]) == position and str(r["group"]) == name for r in rows)
        ]
        for position in positions
    }
    fig, every = go.Figure(), list[Mark]()
    groups_by_code = {
        int(k): str(row["group"]) for row in rows if (k := float_value(row, "code")) is not None
    }
    known = [groups_by_code.get(k, "") for k in range(max(groups_by_code, default=-1) + 1)]
    for name, code in style.category_codes(names, known).items():
        marks = []
        for row in (row for row in rows if str(row["group"]) == name):
            position = str(row["at"])
            step = 0.7 / max(2, len(here[position]))
            shift = (here[position].index(name) - (len(here[position]) - 1) / 2) * step
            marks.append(Mark(name, positions.index(position) + shift, position, row))
        draw_series(fig, marks, code, legend=len(names) > 1, upright=upright)
        every += marks
    _counts(fig, every, upright, log)
    across, along = (
        (fig.update_xaxes, fig.update_yaxes) if upright else (fig.update_yaxes, fig.update_xaxes)
    )
    ends, ticks = (
        [-0.6, len(positions) - 0.4],
        [_tick(position, 16 if upright else 24) for position in positions],
    )
    across(
        tickvals=list(range(len(positions))),
        ticktext=ticks,
        range=ends if upright else ends[::-1],
        showgrid=False,
    )
    if log:
        along(type="log", showgrid=True, nticks=6)
    elif span is not None:
        pad = 0.05 * (span[1] - span[0])
        along(range=[span[0] - pad, span[1] + 1.6 * pad], showgrid=True)
    else:
        along(rangemode="tozero", showgrid=True)
    small = subtitle_notes(every, gaps=True, by_series=True)
    if len(every) > _CROWDED and upright:
        sizes = [int_value(mark.row, "n") for mark in every]
        small.append(f"n from {min(sizes)} to {max(sizes)}; each on hover.")
    lines = len(names) // 3 + 1 if len(names) > 1 else 0
    below = 14 * max(0, max(text.count("<br>") for text in ticks) - 1) if upright else 0
    height = 420 if upright else 150 + 26 * len(every) + 14 * len(positions)
    axis = {"y": value} if upright else {"x": value}
    style.apply_style(
        fig, title, subtitle=[*small, *more], height=height + 22 * lines + below, **axis
    )
    return fig.update_layout(margin={"b": 60 + 22 * lines + below})


def _rug(fig: Any, row: Row, code: style.Code, line_index: int) -> int:
    """The single scores of a group that has few, in a line below the rates; how many lines were drawn."""
    scores = raw_values({**row, "values": row.get("scores")})
    if scores:
        fig.add_scatter(
            x=scores,
            y=[-0.03 - 0.02 * line_index] * len(scores),
            mode="markers",
            hoverinfo="skip",
            showlegend=False,
            cliponaxis=False,
            marker={"color": style.faded(code.colour, 0.45), "size": 6, "symbol": code.symbol},
        )
    return bool(scores)


def _tick(label: str, width: int) -> str:
    """A place's name in lines, escaped; a long model's name is broken after its provider and its hyphens."""
    head, slash, tail = label.rpartition("/")
    if len(label) <= width or not slash:
        return style.in_lines(label, width)
    lines = [
        style.truncate_text(head + slash, width + 4),
        *textwrap.wrap(tail, width, max_lines=2, placeholder="…"),
    ]
    return "<br>".join(map(style.escape, lines))


def _counts(fig: Any, marks: Sequence[Mark], upright: bool, log: bool) -> None:
    """n above each point's bar, or at its right; n/a where a row has no point."""
    if len(marks) > _CROWDED and upright:
        return
    for mark in marks:
        if mark.point is None:
            if not upright:
                fig.add_annotation(
                    y=mark.x,
                    x=0,
                    xref="paper",
                    xanchor="left",
                    xshift=6,
                    text="n/a",
                    hovertext=hover_text(mark),
                )
            continue
        top = max(
            [
                v
                for v in (mark.hi, mark.point, *(raw_values(mark.row) if upright else ()))
                if v is not None
            ]
        )
        top = math.log10(top) if log else top
        anchor = (
            {"x": mark.x, "y": top, "yanchor": "bottom", "yshift": 5}
            if upright
            else ({"x": top, "y": mark.x, "xanchor": "left", "xshift": 8})
        )
        fig.add_annotation(**anchor, text=f"n = {int_value(mark.row, 'n')}")


def _around(rows: Sequence[Row]) -> tuple[float, float]:
    """The part of −10 to 10 that is drawn: what the points need, with 0 in it; all of it where raw values are shown."""
    if any(0 < int_value(row, "n") <= RAW_ROWS for row in rows):
        return -10.0, 10.0
    ends = [
        v
        for row in rows
        for v in (float_value(row, "point"), float_value(row, "lo"), float_value(row, "hi"))
        if v is not None
    ]
    return min([0.0, *ends]), max([1.0, *ends])
