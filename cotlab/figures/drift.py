"""Drift between two samples of features: distributions, and distances against shuffled samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from plotly.subplots import make_subplots

from cotlab.figures import style
from cotlab.figures.declare import figure
from cotlab.figures.marks import RAW_ROWS, Row, float_value, int_value, table_records, text_value

SAMPLES = ("reference", "current")
_ACROSS, _SYMBOLS = 3, {"reference": "circle", "current": "square"}
ROOM = 1.0
"""End of the axis of PSI; larger values are drawn there with their number."""
_PANELS = (("psi", "PSI (nats)"), ("ks", "KS (0 to 1)"))


@figure(
    "feature_distributions",
    columns=("feature", "sample", "value", "share", "band", "n", "reason"),
    caption=(
        "Cumulative share of items by value in both samples. Where the lines differ the feature"
        " moved; the largest vertical gap is KS. A gap within the shaded bands may be chance. The"
        " lines do not show what caused a change: other questions, another model and another"
        " setting look alike."
    ),
    empty="no feature has values on both sides.",
)
def feature_distributions(table: pd.DataFrame) -> Any:
    """Draw a panel for each feature with the step line and 95 % band of each sample."""
    rows = table_records(table)
    valued_rows = [row for row in rows if float_value(row, "value") is not None]
    names = list(dict.fromkeys(str(row["feature"]) for row in valued_rows))
    across = min(_ACROSS, max(1, len(names)))
    down = max(1, -(-len(names) // across))
    titles = [_panel_title(name, valued_rows) for name in names]
    fig = make_subplots(
        rows=down,
        cols=across,
        subplot_titles=titles,
        shared_yaxes=True,
        horizontal_spacing=0.05,
        vertical_spacing=min(0.3, 64 / (150 * down)),
    )
    colours = {"reference": style.BLUE, "current": style.VERMILLION}
    for index, name in enumerate(names):
        where = {"row": index // across + 1, "col": index % across + 1}
        every = [float(row["value"]) for row in valued_rows if str(row["feature"]) == name]
        pad = 0.04 * (max(every) - min(every)) or 0.5
        for sample in SAMPLES:
            sample_rows = [
                row
                for row in valued_rows
                if str(row["feature"]) == name and str(row["sample"]) == sample
            ]
            if sample_rows:
                ends = (min(every) - pad, max(every) + pad)
                _draw_steps(
                    fig, sample_rows, ends, colours[sample], sample, legend=index == 0, where=where
                )
    fig.update_yaxes(range=[-0.02, 1.02], tickvals=[0, 0.5, 1])
    fig.update_xaxes(nticks=4, showgrid=False)
    small = (
        [
            "Bands: 95 % for the whole line (Dvoretzky–Kiefer–Wolfowitz), as for independent items."
            " Solid: reference; dashed: current."
        ]
        if valued_rows
        else []
    )
    small += _missing_lines(rows)
    style.apply_style(
        fig,
        "Each feature's distribution (cumulative share, 0 to 1)",
        subtitle=small,
        height=150 + 150 * down,
    )
    fig.update_annotations(font={"size": style.SMALL_SIZE + 1, "color": style.INK})
    return fig.update_layout(margin={"b": 74, "t": fig.layout.margin.t + 22})


@figure(
    "drift_scores",
    columns=(
        "feature",
        "psi",
        "psi_hi",
        "psi_limit",
        "psi_p",
        "ks",
        "ks_hi",
        "ks_limit",
        "ks_p",
        "alert",
        "n_reference",
        "n_current",
        "reason",
    ),
    caption=(
        "How far each feature moved. The grey bar ends at the 95 % quantile of shuffled samples:"
        " PSI is above 0 even without drift, more so for fewer items. A feature raises the alert if"
        " it is beyond the dashed line and its adjusted p-value is small; either alone does not."
    ),
    empty="no feature was compared.",
)
def drift_scores(table: pd.DataFrame) -> Any:
    """Draw PSI (left) and KS (right) of each feature with shuffled samples and the set point."""
    rows = table_records(table)
    rows = [
        *(r for r in rows if not text_value(r, "reason")),
        *(r for r in rows if text_value(r, "reason")),
    ]
    tested = [row for row in rows if not text_value(row, "reason")]
    fig = make_subplots(rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.14)
    for panel, (name, title) in enumerate(_PANELS, start=1):
        _draw_panel(fig, tested, name, panel)
        limit = next(
            (v for row in tested if (v := float_value(row, f"{name}_limit")) is not None), None
        )
        if limit is not None:
            axis = "" if panel == 1 else str(panel)
            fig.add_shape(
                type="line",
                x0=min(limit, ROOM),
                x1=min(limit, ROOM),
                y0=-0.6,
                y1=len(tested) - 0.4,
                xref=f"x{axis}",
                yref=f"y{axis}",
                layer="below",
                line={"color": style.SOFT_INK, "width": 1, "dash": "dash"},
            )
        fig.update_xaxes(
            title={"text": title},
            range=[-0.04, 1.2 * ROOM],
            tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1],
            col=panel,
        )
    for at, row in enumerate(tested):
        fig.add_annotation(
            x=1,
            xref="paper",
            xanchor="left",
            xshift=8,
            y=at,
            yref="y",
            align="left",
            text=f"n = {int_value(row, 'n_reference')} and {int_value(row, 'n_current')}",
        )
    ticks = [style.in_lines(str(row["feature"]), 20) for row in tested]
    fig.update_yaxes(
        range=[len(tested) - 0.4, -0.6],
        tickvals=list(range(len(tested))),
        ticktext=ticks,
        showgrid=False,
    )
    fig.update_yaxes(showticklabels=True, col=1)
    small = (
        [
            "Grey: shuffled samples (no drift), up to their 95 % quantile; the points have no"
            " intervals. Dashed: the set point. Diamond: alert, by PSI or KS."
        ]
        if tested
        else []
    )
    small += _missing_lines(rows)
    style.apply_style(
        fig,
        "How far each feature moved (PSI in nats, KS 0 to 1)",
        subtitle=small,
        height=150 + 28 * len(tested),
    )
    return fig.update_layout(margin={"r": 118, "b": 60})


def _draw_steps(
    fig: Any,
    rows: Sequence[Row],
    ends: tuple[float, float],
    colour: str,
    sample: str,
    *,
    legend: bool,
    where: dict[str, int],
) -> None:
    """Draw the step line of one sample over its band."""
    rows = sorted(rows, key=lambda row: float(row["value"]))
    x, y = [ends[0]], [0.0]
    hover_texts = [f"{sample}, n = {int_value(rows[0], 'n')}"]
    for row in rows:
        at, share = float(row["value"]), float_value(row, "share") or 0.0
        x, y = [*x, at, at], [*y, y[-1], share]
        hover_texts += [
            f"{sample}, n = {int_value(row, 'n')}<br>{style.format_number(share)} of items up to"
            f" {style.format_number(at)}"
        ] * 2
    x, y, hover_texts = [*x, ends[1]], [*y, y[-1]], [*hover_texts, hover_texts[-1]]
    band = float_value(rows[0], "band")
    if band is not None:
        fig.add_scatter(
            x=[*x, *x[::-1]],
            y=[*(min(1.0, v + band) for v in y), *(max(0.0, v - band) for v in y[::-1])],
            fill="toself",
            mode="lines",
            line={"width": 0},
            fillcolor=style.faded(colour, 0.13),
            hoverinfo="skip",
            showlegend=False,
            **where,
        )
    fig.add_scatter(
        x=x,
        y=y,
        mode="lines",
        name=sample,
        legendgroup=sample,
        showlegend=legend,
        hoverinfo="text",
        hovertext=hover_texts,
        line={"color": colour, "width": 2, "dash": "solid" if sample == "reference" else "4px,2px"},
        **where,
    )
    if int_value(rows[0], "n") <= RAW_ROWS:
        fig.add_scatter(
            x=[float(row["value"]) for row in rows],
            y=[float_value(row, "share") for row in rows],
            mode="markers",
            hoverinfo="skip",
            showlegend=False,
            marker={"color": colour, "size": 6, "symbol": _SYMBOLS[sample]},
            **where,
        )


def _draw_panel(fig: Any, tested: Sequence[Row], name: str, panel: int) -> None:
    """Draw one measure of all features in one panel."""
    bars = [(at, float_value(row, f"{name}_hi")) for at, row in enumerate(tested)]
    fig.add_bar(
        x=[min(hi, ROOM) for _, hi in bars if hi is not None],
        y=[at for at, hi in bars if hi is not None],
        orientation="h",
        width=0.5,
        marker={"color": "#c9c9c9"},
        hoverinfo="skip",
        showlegend=False,
        row=1,
        col=panel,
    )
    for alert, colour, symbol in (
        (False, style.BLUE, "circle"),
        (True, style.VERMILLION, "diamond"),
    ):
        points = [
            (at, row, v)
            for at, row in enumerate(tested)
            if bool(row.get("alert")) is alert and (v := float_value(row, name)) is not None
        ]
        if not points:
            continue
        fig.add_scatter(
            x=[min(v, ROOM) for _, _, v in points],
            y=[at for at, _, _ in points],
            mode="markers",
            showlegend=False,
            cliponaxis=False,
            hoverinfo="text",
            hovertext=[_hover(row, name, v) for _, row, v in points],
            marker={"color": colour, "symbol": symbol, "size": 9},
            row=1,
            col=panel,
        )
        for at, row, v in points:  # right of the marker and of its bar
            fig.add_annotation(
                x=min(max(v, float_value(row, f"{name}_hi") or 0.0), ROOM),
                y=at,
                xanchor="left",
                xshift=8,
                borderpad=0,
                text=style.format_number(v) + (" →" if v > ROOM else ""),
                bgcolor=style.faded(style.PAPER, 0.8),
                font={"size": style.SMALL_SIZE, "color": style.INK},
                row=1,
                col=panel,
            )


def _hover(row: Row, name: str, value: float) -> str:
    """Return the hover text of a feature with its adjusted p-value."""
    return drift_hover(
        row, name, value, f"adjusted p {style.format_number(float_value(row, f'{name}_p'))}"
    )


def drift_hover(row: Row, name: str, value: float, judged: str, at: str = "") -> str:
    """Return the hover text of one feature's measure ``name`` (psi or ks).

    ``judged`` is the line about the test, ``at`` the time of the check.
    """
    lines = [
        f"<b>{style.escape(row['feature'])}</b>{at}",
        f"{name.upper()} {style.format_number(value)}",
        f"95 % of shuffles: up to {style.format_number(float_value(row, f'{name}_hi'))}",
        judged,
        f"n = {int_value(row, 'n_reference')} and {int_value(row, 'n_current')} items",
    ]
    return "<br>".join(lines)


def _panel_title(name: str, rows: Sequence[Row]) -> str:
    """Return the name of a feature with n of both samples."""
    n = {str(row["sample"]): int_value(row, "n") for row in rows if str(row["feature"]) == name}
    return (
        f"<b>{style.escape(style.truncate_text(name, 22))}</b><br>n = {n.get('reference', 0)} and"
        f" {n.get('current', 0)}"
    )


def _missing_lines(rows: Sequence[Row]) -> list[str]:
    """Return notes about features without numbers, by reason."""
    reasons: dict[str, dict[str, None]] = {}
    for row in rows:
        if text_value(row, "reason"):
            reasons.setdefault(text_value(row, "reason"), {})[
                style.truncate_text(row["feature"], 24)
            ] = None
    return [
        style.escape(style.truncate_text(f"n/a ({text}): {', '.join(names)}", 200))
        for text, names in reasons.items()
    ]


def band_half_width(n: int) -> float | None:
    """Return half the width of the 95 % band of an empirical distribution function; None for 0.

    References
    ----------
    Massart (1990), Ann. Probab. 18:1269: sqrt(ln(2 / 0.05) / (2 n)).
    """
    return math.sqrt(math.log(2 / 0.05) / (2 * n)) if n > 0 else None
