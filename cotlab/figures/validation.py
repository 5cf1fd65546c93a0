"""Metrics on models of known faithfulness, one figure per metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import figure

GROUPS = ("dose", "faithful", "bypass", "hint")
"""Groups of organisms, in the order of their colours."""
_NON_DOSE_GROUPS = ("faithful", "bypass", "hint")
_LEFT, _RIGHT = (0.0, 0.56), (0.62, 1.0)
_APART = 0.17
_ANY = 1e6
"""Bounds at least this large in a card stand for an unbounded metric."""
Row = dict[str, Any]


@figure(
    "validation_doses",
    columns=("metric", "organism", "group", "dose", "point", "lo", "hi", "n"),
    caption=(
        "Mean of one metric on models of known faithfulness (organisms). Left: five models in one"
        " checkpoint, r0 to r100, at their measured dose, the probability that the answer follows"
        " the chain where chain and truth differ; the dotted line is the dose itself, for a metric"
        " from 0 to 1 that should follow it. Right: two faithful and two bypassing checkpoints, and"
        " one that gives the answer of a hint. Results on these small models may not hold for large"
        " ones."
    ),
    empty="no organism has been measured.",
)
def validation_doses(table: pd.DataFrame) -> Any:
    """Draw means with intervals over the doses, and the other groups on the same axis.

    ``dose`` is the measured dose in [0, 1] of rows of the group ``dose``. Optional columns:
    ``lowest`` and ``highest``, the metric's range; ``unit``; ``faithful_is`` (higher, lower);
    ``moves``, for the dotted line; ``why``, the reason of an undefined mean.
    """
    rows = [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
    fig = go.Figure()
    doses = sorted(
        (r for r in rows if r["group"] == "dose" and not pd.isna(r["dose"])),
        key=lambda r: float(r["dose"]),
    )
    placed = [(float(r["dose"]), r, "x") for r in doses]
    for at, group in enumerate(_NON_DOSE_GROUPS):
        aside = [r for r in rows if r["group"] == group]
        placed += [
            (at + (i - (len(aside) - 1) / 2) * 2 * _APART, r, "x2") for i, r in enumerate(aside)
        ]
    unit = (rows[0].get("lowest"), rows[0].get("highest")) == (0, 1)
    if unit and doses and rows[0].get("moves"):
        ends = [0, 1] if rows[0].get("faithful_is", "higher") == "higher" else [1, 0]
        fig.add_scatter(
            x=[0, 1],
            y=ends,
            mode="lines",
            line={"color": style.SOFT_INK, "width": 1, "dash": "dot"},
            hoverinfo="skip",
            showlegend=False,
        )
    for group, code in style.category_codes((str(row["group"]) for row in rows), GROUPS).items():
        group_rows = [(x, row, axis) for x, row, axis in placed if row["group"] == group]
        _draw(fig, group_rows, group, code)
    for x, row, axis in placed:
        if pd.isna(row["point"]):
            fig.add_annotation(
                x=x,
                xref=axis,
                y=0,
                yref="paper",
                yanchor="bottom",
                text="n/a",
                bgcolor=style.PAPER,
                hovertext=_hover(row),
            )
    _axes(fig, doses, rows, unit)
    metric = style.escape(str(rows[0]["metric"]).replace("_", " "))
    measure = f" ({style.escape(rows[0]['unit'])})" if rows[0].get("unit") else ""
    return style.apply_style(
        fig,
        f"{metric} on models of known faithfulness{_reach(rows[0])}",
        subtitle=_fine_print(rows),
        y=f"Mean{measure}",
        height=440,
    )


def _reach(row: Row) -> str:
    """Return range and unit of a metric, as " (0 to 1, nats)", as far as they are known."""
    bounds = [float(row[name]) for name in ("lowest", "highest") if not pd.isna(row.get(name))]
    ends = [f"{end:g}" for end in bounds if max(map(abs, bounds)) < _ANY]
    known = [" to ".join(ends).replace("-", "−")] if len(ends) == 2 else []
    known += [style.escape(row["unit"])] if row.get("unit") else []
    return f" ({', '.join(known)})" if known else ""


def _draw(
    fig: Any, group_rows: Sequence[tuple[float, Row, str]], group: str, code: style.Code
) -> None:
    """Draw the means of one group, open markers without an interval, doses joined by a line."""
    defined = [(x, row) for x, row, _ in group_rows if not pd.isna(row["point"])]
    axis = group_rows[0][2] if group_rows else "x"
    if group == "dose" and len(defined) > 1:
        fig.add_scatter(
            x=[x for x, _ in defined],
            y=[row["point"] for _, row in defined],
            mode="lines",
            hoverinfo="skip",
            line={"color": code.colour, "width": 1.5},
            showlegend=False,
        )
    for bounded in (True, False):
        part = [
            (x, row)
            for x, row in defined
            if bounded is not bool(pd.isna(row["lo"]) or pd.isna(row["hi"]))
        ]
        if not part:
            continue
        bars = (
            {
                "error_y": {
                    "type": "data",
                    "symmetric": False,
                    "color": code.colour,
                    "thickness": 1.5,
                    "width": 4,
                    "array": [row["hi"] - row["point"] for _, row in part],
                    "arrayminus": [row["point"] - row["lo"] for _, row in part],
                }
            }
            if bounded
            else {}
        )
        fig.add_scatter(
            x=[x for x, _ in part],
            y=[row["point"] for _, row in part],
            mode="markers",
            name=style.escape(group),
            xaxis=axis,
            cliponaxis=False,
            hoverinfo="text",
            hovertext=[_hover(row) for _, row in part],
            showlegend=False,
            marker={
                "color": code.colour,
                "size": 9,
                "symbol": code.symbol if bounded else f"{code.symbol}-open",
            },
            **bars,
        )


def _axes(fig: Any, doses: Sequence[Row], rows: Sequence[Row], unit: bool) -> None:
    """Set the axes of the doses and of the other groups."""
    labels = [
        f"{style.escape(row['organism'])}<br>{float(row['dose']):.2f}<br>{_n([row])}"
        for row in doses
    ]
    fig.update_layout(
        xaxis={
            "domain": _LEFT,
            "range": [-0.08, 1.08],
            "tickvals": [float(row["dose"]) for row in doses],
            "ticktext": labels,
            "tickangle": 0,
            "title": {"text": "Measured dose"},
            "tickfont": {"size": style.SMALL_SIZE},
        }
    )
    aside = {group: [row for row in rows if row["group"] == group] for group in _NON_DOSE_GROUPS}
    names = []
    for group, group_rows in aside.items():
        ends = [str(row["organism"]).removeprefix(f"{group}-") for row in group_rows]
        listed = style.escape(", ".join(ends)) if len(group_rows) > 1 else ""
        names.append(f"{group}<br>{listed}<br>{_n(group_rows)}" if group_rows else group)
    fig.update_layout(
        xaxis2={
            **style.card().layout.xaxis.to_plotly_json(),
            "domain": _RIGHT,
            "anchor": "y",
            "range": [-0.5, len(_NON_DOSE_GROUPS) - 0.5],
            "tickvals": list(range(len(_NON_DOSE_GROUPS))),
            "ticktext": names,
            "tickangle": 0,
            "title": {"text": "Other models"},
            "tickfont": {"size": style.SMALL_SIZE},
        }
    )
    if unit:
        fig.update_yaxes(range=[-0.05, 1.05], tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1])
    else:
        fig.update_yaxes(rangemode="tozero")


def _n(rows: Sequence[Row]) -> str:
    """Return "n = 20" or "n = 18–20"."""
    sizes = [int(row["n"]) for row in rows]
    return f"n = {sizes[0]}" if len(set(sizes)) == 1 else f"n = {min(sizes)}–{max(sizes)}"


def _fine_print(rows: Sequence[Row]) -> list[str]:
    """Return the lines of the subtitle."""
    text = "Bars: 95 % intervals, bootstrap over items; n: items with a defined value."
    known = [row for row in rows if not pd.isna(row["point"])]
    if any(pd.isna(row["lo"]) or pd.isna(row["hi"]) for row in known):
        text += " Open marker: no interval (all values equal, or fewer than 5)."
    gone = [str(row["organism"]) for row in rows if pd.isna(row["point"])]
    return [
        text,
        *([f"n/a, undefined on every item: {style.escape(', '.join(gone))}."] if gone else []),
    ]


def _hover(row: Row) -> str:
    """Return the hover text of a mean."""
    lo, hi = (None if pd.isna(row[name]) else row[name] for name in ("lo", "hi"))
    where = "" if pd.isna(row["dose"]) else f", measured dose {float(row['dose']):.3f}"
    reason = f", {row['why']}" if isinstance(row.get("why"), str) and row["why"] else ""
    return style.escape(
        f"{row['organism']}{where}: {style.interval_text(row['point'], lo, hi)}, n ="
        f" {int(row['n'])}{reason}"
    )
