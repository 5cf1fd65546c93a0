"""Drift of features from one reference over successive checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plotly.subplots import make_subplots

from cotlab.figures import style
from cotlab.figures.declare import figure
from cotlab.figures.drift import ROOM, drift_hover
from cotlab.figures.marks import Row, float_value, int_value, table_records, text_value

_PANELS = (("psi", "PSI (nats)"), ("ks", "KS (0 to 1)"))
_TICKS = 12


@figure(
    "drift_over_time",
    columns=(
        "place",
        "at",
        "feature",
        "psi",
        "psi_hi",
        "psi_limit",
        "ks",
        "ks_hi",
        "ks_limit",
        "alert",
        "n_reference",
        "n_current",
        "reason",
    ),
    caption=(
        "Checks of later items against the same reference, in order. A rising line shows that items"
        " move away from those that the calibrator was fitted to, not why. Checks of fewer items"
        " move more by chance: the grey bars are shuffled samples."
    ),
    empty="no check of drift was kept.",
)
def drift_over_time(table: Any) -> Any:
    """Draw PSI (top) and KS (bottom) with a line for each feature, filled at alerts.

    Behind the lines are the shuffled samples and the set point.
    """
    rows = table_records(table)
    tested = [row for row in rows if not text_value(row, "reason")]
    check_labels = {int_value(row, "place"): str(row["at"]) for row in rows}
    codes = style.category_codes(dict.fromkeys(str(row["feature"]) for row in tested))
    fig = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.1)
    for panel, (name, title) in enumerate(_PANELS, start=1):
        _draw_nulls(fig, tested, name, panel)
        for feature, code in codes.items():
            _draw_line(
                fig, [row for row in tested if str(row["feature"]) == feature], name, panel, code
            )
        fig.update_yaxes(
            title={"text": title}, range=[-0.04, 1.12 * ROOM], tickvals=[0, 0.5, 1], row=panel
        )
    last = max(check_labels, default=0)
    fig.update_xaxes(range=[-0.6, last + 0.6], showgrid=False)
    tick_indices = list(check_labels)[:: max(1, -(-len(check_labels) // _TICKS))]
    fig.update_xaxes(
        tickvals=tick_indices,
        ticktext=[_tick(index, check_labels[index], tested) for index in tick_indices],
        row=2,
    )
    small = [
        (
            "Filled: alert, by PSI or KS. Grey: shuffled samples (no drift), up to the largest 95 %"
            " quantile of all features; the points have no intervals. Dashed: the set point."
        ),
        *_missing_lines(rows),
    ]
    style.apply_style(
        fig, "Drift, check by check (PSI in nats, KS 0 to 1)", subtitle=small, height=460
    )
    return fig.update_layout(margin={"b": 104})


def _draw_nulls(fig: Any, tested: Sequence[Row], name: str, panel: int) -> None:
    """Draw the bar of shuffled samples and the set point of each check."""
    bars: dict[int, float] = {}
    limits: dict[int, float] = {}
    for row in tested:
        index, top, limit = (
            int_value(row, "place"),
            float_value(row, f"{name}_hi"),
            float_value(row, f"{name}_limit"),
        )
        if top is not None:
            bars[index] = max(bars.get(index, 0.0), top)
        if limit is not None:
            limits[index] = limit
    fig.add_bar(
        x=list(bars),
        y=[min(top, ROOM) for top in bars.values()],
        width=0.5,
        marker={"color": "#c9c9c9"},
        showlegend=False,
        hoverinfo="text",
        hovertext=[f"95 % of shuffles: up to {style.format_number(top)}" for top in bars.values()],
        row=panel,
        col=1,
    )
    axis = "" if panel == 1 else str(panel)
    for index, limit in limits.items():
        fig.add_shape(
            type="line",
            x0=index - 0.5,
            x1=index + 0.5,
            y0=min(limit, ROOM),
            y1=min(limit, ROOM),
            xref=f"x{axis}",
            yref=f"y{axis}",
            line={"color": style.SOFT_INK, "width": 1, "dash": "dash"},
        )


def _draw_line(fig: Any, rows: Sequence[Row], name: str, panel: int, code: style.Code) -> None:
    """Draw one measure of one feature over the checks."""
    known = [
        (int_value(row, "place"), row, v)
        for row in rows
        if (v := float_value(row, name)) is not None
    ]
    if not known:
        return
    feature = style.escape(style.truncate_text(known[0][1]["feature"], 22))
    at = {index: min(v, ROOM) for index, _, v in known}
    index_range = range(min(at), max(at) + 1)
    fig.add_scatter(
        x=list(index_range),
        y=[at.get(index) for index in index_range],
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
        row=panel,
        col=1,
        line={"color": style.faded(code.colour, 0.55), "width": 1.5},
        legendgroup=feature,
    )
    fig.add_scatter(
        x=[index for index, _, _ in known],
        y=[min(v, ROOM) for _, _, v in known],
        mode="markers",
        name=feature,
        legendgroup=feature,
        showlegend=panel == 1,
        cliponaxis=False,
        hoverinfo="text",
        row=panel,
        col=1,
        hovertext=[_hover(row, name, v) for _, row, v in known],
        marker={
            "color": code.colour,
            "size": 9,
            "line": {"width": 2, "color": code.colour},
            "symbol": [
                code.symbol if row.get("alert") else f"{code.symbol}-open" for _, row, _ in known
            ],
        },
    )
    axis = "" if panel == 1 else str(panel)
    for index, _, v in known:
        if v > ROOM:
            fig.add_annotation(
                x=index,
                y=ROOM,
                xref=f"x{axis}",
                yref=f"y{axis}",
                yanchor="bottom",
                yshift=6,
                text=f"↑ {style.format_number(v)}",
                font={"color": style.INK},
            )


def _hover(row: Row, name: str, value: float) -> str:
    """Return the hover text of a check with its set point."""
    limit = style.format_number(float_value(row, f"{name}_limit"))
    judged = f"set point {limit}{', alert' if row.get('alert') else ''}"
    return drift_hover(row, name, value, judged, f", {style.escape(row['at'])}")


def _tick(index: int, at: str, tested: Sequence[Row]) -> str:
    """Return the time of a check and its largest number of items over features."""
    n = max(
        (int_value(row, "n_current") for row in tested if int_value(row, "place") == index),
        default=0,
    )
    return f"{style.in_lines(at, 12)}<br>n = {n}"


def _missing_lines(rows: Sequence[Row]) -> list[str]:
    """Return notes about checks without numbers, by reason."""
    reasons: dict[str, dict[str, None]] = {}
    for row in rows:
        if text_value(row, "reason"):
            location = (
                f"{style.truncate_text(row['feature'], 24)}, {style.truncate_text(row['at'], 20)}"
            )
            reasons.setdefault(text_value(row, "reason"), {})[location] = None
    return [
        style.escape(style.truncate_text(f"n/a ({text}): {'; '.join(names)}", 200))
        for text, names in reasons.items()
    ]
