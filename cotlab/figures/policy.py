"""What a threshold does: how many answers lie from it on, and how many errors are expected and found among those."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import figure
from cotlab.figures.marks import (
    Mark,
    draw_series,
    float_value,
    int_value,
    subtitle_notes,
    table_records,
)


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
        "With high at a threshold, the first line is the share of answers that is released; with"
        " low at it, what is left of 1 is escalated. Expected errors rest on the calibrator alone:"
        " how uncertain it is, their bars do not show. Errors found by raters are of the labelled"
        " answers only, which may not be like the others. Both errors are shares of the answers"
        " from the threshold on."
    ),
    empty="no answer has been scored.",
)
def threshold_volumes(table: pd.DataFrame) -> Any:
    """A line for each share, with an interval at each threshold; dashed lines at low and high."""
    rows = table_records(table)
    names = list(dict.fromkeys(str(row["group"]) for row in rows))
    fig, every = go.Figure(), list[Mark]()
    bounds = [
        (name, value)
        for name in ("low", "high")
        if (value := float_value(rows[0], name)) is not None
    ]
    together = len({value for _, value in bounds}) < len(bounds)
    for k, (name, value) in enumerate(bounds):
        fig.add_shape(
            type="line",
            x0=value,
            x1=value,
            y0=0,
            y1=1,
            yref="paper",
            layer="below",
            line={
                "color": style.SOFT_INK,
                "width": 1.2,
                "dash": "dash" if name == "low" else "solid",
            },
        )
        if not (together and k):
            text = "low = high" if together else name
            fig.add_annotation(
                x=value,
                y=1,
                yref="paper",
                yanchor="bottom",
                text=f"{text} {style.format_number(value)}",
                xanchor="right" if name == "low" and not together else "left",
            )
    for k, (name, code) in enumerate(style.category_codes(names).items()):
        group_rows = sorted(
            (row for row in rows if str(row["group"]) == name),
            key=lambda row: float(row["threshold"]),
        )
        shift = (k - (len(names) - 1) / 2) * 0.008
        label = (
            f"{style.truncate_text(name, 22)}"
            f" ({_counts([int_value(row, 'n') for row in group_rows])})"
        )
        marks = [
            Mark(
                label,
                float(row["threshold"]) + shift,
                f"threshold {style.format_number(float_value(row, 'threshold'))}",
                row,
            )
            for row in group_rows
        ]
        defined = [mark for mark in marks if mark.point is not None]
        draw_series(fig, defined, code, legend=True, joined=True)
        every += marks
    fig.update_xaxes(range=[-0.04, 1.04], tickvals=[i / 10 for i in range(11)])
    fig.update_yaxes(range=[-0.03, 1.03])
    style.apply_style(
        fig,
        "Answers and errors by threshold (share, 0 to 1)",
        subtitle=[*subtitle_notes(every, gaps=False), *_missing_lines(every)],
        x="Threshold on r_cal, the calibrated probability of acceptable reasoning",
        y="Share",
        height=430,
    )
    return fig.update_layout(margin={"b": 96})


def _counts(sizes: list[int]) -> str:
    """ "n = 20", or from the first threshold to the last "n = 20 to 3"."""
    return f"n = {sizes[0]}" if len(set(sizes)) < 2 else f"n = {sizes[0]} to {sizes[-1]}"


def _missing_lines(marks: list[Mark]) -> list[str]:
    """Why points are missing, each reason once for all thresholds of a line."""
    reasons: dict[str, dict[str, list[float]]] = {}
    for mark in marks:
        if mark.point is None:
            at = float_value(mark.row, "threshold")
            reasons.setdefault(str(mark.row["reason"]), {}).setdefault(
                str(mark.row["group"]), []
            ).append(0.0 if at is None else at)
    return [
        style.escape(
            f"n/a ({reason}): {'; '.join(f'{name}, {_at(at)}' for name, at in lines.items())}."
        )
        for reason, lines in reasons.items()
    ]


def _at(thresholds: list[float]) -> str:
    ends = list(dict.fromkeys(map(style.format_number, (min(thresholds), max(thresholds)))))
    return f"threshold{'s' if len(ends) > 1 else ''} {' to '.join(ends)}"
