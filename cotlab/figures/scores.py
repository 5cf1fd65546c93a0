"""Scores against labels and thresholds: observed rates, how many chains have which score, shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.calibration import draw_thresholds, set_score_axis
from cotlab.figures.declare import figure
from cotlab.figures.marks import (
    Mark,
    Row,
    draw_series,
    float_value,
    int_value,
    jitter,
    raw_values,
    subtitle_notes,
    table_records,
    text_value,
)

GROUPS = ("acceptable", "not acceptable", "no label")
"""What a histogram's ``group`` is: what people said of the chain, with the answer."""
_BARS = {
    "acceptable": (style.BLUE, ""),
    "not acceptable": (style.VERMILLION, "/"),
    "no label": ("#9a9a9a", "."),
}
_NEAR = 0.11
"""Bins nearer to each other than this, across and along, have their n in one place."""
_CROWDED = 12
"""With more points than this their n is in the hover only."""


@figure(
    "reliability_diagram",
    columns=("predicted", "point", "lo", "hi", "n"),
    caption=(
        "The share of labelled chains that people found acceptable, by the probability that was"
        " predicted: on the diagonal a score of 0.8 means 8 of 10. Bins hold equally many chains,"
        " as far as equal scores allow. A calibrated score is an average over chains like these; it"
        " does not say which of ten is the bad one, and it holds as long as the labels do."
    ),
    empty="no labelled chain has a calibrated score.",
)
def reliability_diagram(table: pd.DataFrame) -> Any:
    """A dot with its interval for each bin, n beside it; the diagonal, and the policy's thresholds.

    A table with ``band_lo`` and ``band_hi`` has the band in which bins of a perfectly calibrated
    forecaster fall; ``values`` are the single outcomes of a bin, 0 or 1, and ``scores`` their
    predictions.
    """
    rows = sorted(
        (row for row in table_records(table) if float_value(row, "predicted") is not None),
        key=lambda row: row["predicted"],
    )
    fig = go.Figure()
    banded = _band(fig, rows)
    fig.add_shape(
        type="line",
        x0=0,
        x1=1,
        y0=0,
        y1=1,
        layer="below",
        line={"color": style.SOFT_INK, "width": 1, "dash": "dot"},
    )
    small = ["Dotted: the diagonal, where predictions hold."]
    raw = [raw_values(row) for row in rows]
    for row, values in zip(rows, raw, strict=True) if all(raw) else ():
        spots = row.get("scores")
        x_values = (
            list(spots) if isinstance(spots, (list, tuple)) and len(spots) == len(values) else None
        )
        fig.add_scatter(
            x=x_values or [row["predicted"] + 0.3 * jitter(i) for i in range(len(values))],
            y=values,
            mode="markers",
            hoverinfo="skip",
            showlegend=False,
            cliponaxis=False,
            marker={"color": style.faded(style.ACCENT, 0.3), "size": 5},
        )
    marks = [
        Mark("", row["predicted"], f"predicted {style.format_number(row['predicted'])}", row)
        for row in rows
    ]
    bare = [mark._replace(row={**mark.row, "values": None}) for mark in marks]
    draw_series(fig, bare, style.Code(style.ACCENT, "circle"), joined=True)
    for near in _overlapping_groups(marks) if len(marks) <= _CROWDED else ():
        up = _is_low(near[0])
        edge = max(_edge(mark) for mark in near) if up else min(_edge(mark) for mark in near)
        fig.add_annotation(
            x=sum(mark.x for mark in near) / len(near),
            y=edge,
            yanchor="bottom" if up else "top",
            yshift=4 if up else -4,
            text=f"n = {', '.join(str(int_value(mark.row, 'n')) for mark in near)}",
            bgcolor=style.faded(style.PAPER, 0.75),
            xanchor="left" if len(near) > 1 and near[0].x < 0.1 else "center",
        )
    if banded:
        small.append("Shade: where bins of a perfectly calibrated forecaster fall, 95 %.")
    head = f"n = {sum(int_value(row, 'n') for row in rows):,} labelled chains in {len(rows)} bins."
    small = [
        head,
        *subtitle_notes(marks if all(raw) else bare),
        " ".join([*small, *draw_thresholds(fig, rows)]),
    ]
    fig.update_xaxes(range=[-0.03, 1.03], tickvals=[i / 10 for i in range(11)])
    fig.update_yaxes(range=[-0.05, 1.05])
    return style.apply_style(
        fig,
        "Acceptable chains by prediction (share, 0 to 1)",
        subtitle=small,
        x="Predicted probability of acceptable reasoning (mean of the bin)",
        y="Observed share",
        height=470,
    )


def _is_low(mark: Mark) -> bool:
    """Whether a bin's n stands above it; below it where the bin lies high."""
    return (mark.point or 0.0) < 0.55


def _edge(mark: Mark) -> float:
    """Where the n of a bin stands: at the end of its interval, else at its point."""
    bound = mark.hi if _is_low(mark) else mark.lo
    return (mark.point or 0.0) if bound is None else bound


def _overlapping_groups(marks: Sequence[Mark]) -> list[list[Mark]]:
    """The bins with a point, from left to right; those whose n would overlap are told together."""
    out: list[list[Mark]] = []
    for mark in (mark for mark in marks if mark.point is not None):
        last = out[-1][-1] if out else None
        close = (
            last is not None and mark.x - last.x < _NEAR and abs(_edge(mark) - _edge(last)) < _NEAR
        )
        if last is not None and close and _is_low(last) is _is_low(mark):
            out[-1].append(mark)
        else:
            out.append([mark])
    return out


@figure(
    "score_histogram",
    columns=("group", "left", "right", "count"),
    caption=(
        "How many chains have which score, by what people said of them: acceptable means that the"
        " answer is right and the reasoning adequate. The more the two colours lie apart, the"
        " better the score tells them; chains without a label are drawn so that labels from one end"
        " only are seen."
    ),
    empty="no chain has a score.",
)
def score_histogram(table: pd.DataFrame) -> Any:
    """Stacked bars by group, the number of chains on each; the policy's thresholds as lines.

    A column ``score`` says in words which score is drawn, ``missing`` how many chains have none.
    """
    rows = table_records(table)
    score, fig = text_value(rows[0], "score") or "r_raw", go.Figure()
    bins = sorted({(float(row["left"]), float(row["right"])) for row in rows})
    counts = {(str(row["group"]), float(row["left"])): int_value(row, "count") for row in rows}
    named = [
        *GROUPS,
        *dict.fromkeys(str(row["group"]) for row in rows if row["group"] not in GROUPS),
    ]
    totals = {name: sum(counts.get((name, left), 0) for left, _ in bins) for name in named}
    for name in named:
        if name not in GROUPS and not totals[name]:
            continue
        colour, pattern = _BARS.get(name, (style.PURPLE, "x"))
        heights = [counts.get((name, left), 0) for left, _ in bins]
        label = style.escape(style.truncate_text(name, 40))
        fig.add_bar(
            x=[(left + right) / 2 for left, right in bins],
            y=heights,
            width=[(right - left) * 0.94 for left, right in bins],
            name=f"{label} (n = {totals[name]:,})",
            hoverinfo="text",
            hovertext=[
                f"{style.escape(score)} {left:g} to {right:g}<br>{label}: {n:,} chains"
                for (left, right), n in zip(bins, heights, strict=True)
            ],
            marker={
                "color": colour,
                "line": {"width": 0},
                "pattern": {
                    "shape": pattern,
                    "fillmode": "overlay",
                    "fgcolor": style.PAPER,
                    "fgopacity": 1,
                    "size": 6,
                    "solidity": 0.25,
                },
            },
        )
    over = [sum(counts.get((name, left), 0) for name in named) for left, _ in bins]
    for (left, right), n in zip(bins, over, strict=True):
        if n and len(bins) <= 20:
            fig.add_annotation(x=(left + right) / 2, y=n, yanchor="bottom", text=f"{n:,}")
    threshold_notes = draw_thresholds(fig, rows)
    small = [f"n = {sum(over):,} chains; the number on each bar."]
    missing = int_value(rows[0], "missing")
    small += [f"n/a: {missing:,} chains have no score and are not drawn."] if missing else []
    small += [" ".join(threshold_notes)] if threshold_notes else []
    small += set_score_axis(fig, [bins[0][0], bins[-1][1]], full_range=bool(threshold_notes))
    fig.update_yaxes(range=[0, max([1, *over]) * 1.14], tickformat=",d", nticks=6)
    style.apply_style(
        fig,
        "Scores of chains: number of chains by score (0 to 1)",
        subtitle=small,
        x=style.escape(score),
        y="Chains",
        height=400,
    )
    return fig.update_layout(barmode="stack", margin={"b": 84})


def _band(fig: Any, rows: Sequence[Row]) -> bool:
    """The shade between ``band_lo`` and ``band_hi`` where the table has both."""
    band_rows = [
        row
        for row in rows
        if float_value(row, "band_lo") is not None and float_value(row, "band_hi") is not None
    ]
    if not band_rows:
        return False
    across = [float(row["predicted"]) for row in band_rows]
    if len(band_rows) == 1:
        across = [across[0] - 0.02, across[0] + 0.02]
        band_rows = [band_rows[0], band_rows[0]]
    upper, lower = ([float(row[name]) for row in band_rows] for name in ("band_hi", "band_lo"))
    fig.add_scatter(
        x=[*across, *across[::-1]],
        y=[*upper, *lower[::-1]],
        mode="lines",
        fill="toself",
        fillcolor=style.faded(style.BLACK, 0.09),
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
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
            f" ({_count_span([int_value(row, 'n') for row in group_rows])})"
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
        subtitle=[*subtitle_notes(every, gaps=False), *_missing_notes(every)],
        x="Threshold on r_cal, the calibrated probability of acceptable reasoning",
        y="Share",
        height=430,
    )
    return fig.update_layout(margin={"b": 96})


def _count_span(sizes: list[int]) -> str:
    """ "n = 20", or from the first threshold to the last "n = 20 to 3"."""
    return f"n = {sizes[0]}" if len(set(sizes)) < 2 else f"n = {sizes[0]} to {sizes[-1]}"


def _missing_notes(marks: list[Mark]) -> list[str]:
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
            f"n/a ({reason}): {'; '.join(f'{name}, {_threshold_span(at)}' for name, at in lines.items())}."
        )
        for reason, lines in reasons.items()
    ]


def _threshold_span(thresholds: list[float]) -> str:
    ends = list(dict.fromkeys(map(style.format_number, (min(thresholds), max(thresholds)))))
    return f"threshold{'s' if len(ends) > 1 else ''} {' to '.join(ends)}"
