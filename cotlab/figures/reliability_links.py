"""Which steps of a chain support which: arcs between the steps, coloured by support."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import figure
from cotlab.figures.marks import Row, float_value, table_records, text_value

ORDER = ("reverse", "forward")
MEANING = {
    "reverse": "reverse: does a step support the one before",
    "forward": "forward: do question and steps before support a step",
}
_POINTS = 24
_REACH = 0.55
"""How far an arc swings out, in widths of its column."""


@figure(
    "verification_links",
    columns=("link", "step", "value", "verifier", "reason"),
    caption=(
        "Each arrow is a link that was checked, from the step that supports to the step that is"
        " supported; its number is the confidence. A dashed grey arrow is undecided. A supported"
        " chain may still not be the one that the model used."
    ),
    empty="no link of this chain was checked.",
)
def verification_links(table: pd.DataFrame) -> Any:
    """One column of arcs for each direction; colour and number are the support, hover says who decided and why.

    The table may have ``text`` and ``before``, the step's text and that of the one before, and
    ``quote``, what decided it.
    """
    rows = table_records(table)
    sides = [link for link in ORDER if any(row["link"] == link for row in rows)]
    sides += [link for link in dict.fromkeys(str(row["link"]) for row in rows) if link not in ORDER]
    steps = max(int(row["step"]) for row in rows) + 1
    top = (
        -1 if any(int(row["step"]) == 0 for row in rows) else 0
    )  # the question stands above the first step
    fig = go.Figure()
    for side, link in enumerate(sides):
        places = list(range(0 if link == "reverse" else top, steps))
        fig.add_scatter(
            x=[side] * len(places),
            y=places,
            mode="markers+text",
            text=["Q" if i < 0 else str(i + 1) for i in places],
            marker={
                "size": 22,
                "color": style.PAPER,
                "line": {"color": style.SOFT_INK, "width": 1},
            },
            hoverinfo="skip",
            textfont={"size": style.SMALL_SIZE, "color": style.INK},
            showlegend=False,
            cliponaxis=False,
        )
        for row in rows:
            if row["link"] == link:
                _arc(fig, side, row)
    style.apply_style(
        fig,
        "Links between the steps (support, 0 to 1)",
        subtitle=[
            "Dark is 0, bright is 1; dashed: undecided. Circles are steps, from 1, and Q the"
            " question; hover on a number for the reason."
        ],
        height=130 + 54 * (steps - top),
    )
    fig.update_xaxes(
        tickvals=list(range(len(sides))),
        ticktext=[style.in_lines(MEANING.get(link, link), 22, most=3) for link in sides],
        range=[-0.2, len(sides) - 0.05],
        ticks="",
        showline=False,
        tickangle=0,
    )
    texts = {
        int(row["step"]) - back: text_value(row, name)
        for row in rows
        for back, name in ((1, "before"), (0, "text"))
    }
    texts[-1] = "the question"
    return fig.update_yaxes(
        tickvals=list(range(top, steps)),
        ticktext=[style.in_lines(texts.get(i, ""), 34) for i in range(top, steps)],
        ticks="",
        showline=False,
        showgrid=False,
        range=[steps - 0.4, top - 0.6],
    )


def _arc(fig: Any, side: int, row: Row) -> None:
    """From the supporting to the supported step: half an ellipse to the right, an arrow head, and the number at its top."""
    value, at = float_value(row, "value"), int(row["step"])
    colour = style.SOFT_INK if value is None else style.shade(value)
    start, end = (at, at - 1) if row["link"] == "reverse" else (at - 1, at)
    angles = [math.pi * k / _POINTS for k in range(_POINTS + 1)]
    x = [side + 0.06 + _REACH * 0.4 * math.sin(a) for a in angles]
    y = [start + (end - start) * (0.16 + 0.68 * (1 - math.cos(a)) / 2) for a in angles]
    if value is not None:  # a dark edge: the bright end of the scale is hardly seen on white
        fig.add_scatter(
            x=x,
            y=y,
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
            cliponaxis=False,
            line={"color": style.SOFT_INK, "width": 6},
        )
    fig.add_scatter(
        x=x,
        y=y,
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
        cliponaxis=False,
        line={
            "color": colour,
            "width": 2 if value is None else 4,
            "dash": "dash" if value is None else "solid",
        },
    )
    fig.add_scatter(
        x=[x[-1] - 0.004],
        y=[y[-1]],
        mode="markers",
        hoverinfo="skip",
        showlegend=False,
        cliponaxis=False,
        marker={
            "symbol": "triangle-left",
            "size": 12,
            "color": colour,
            "line": {"color": style.SOFT_INK, "width": 1},
        },
    )
    fig.add_scatter(
        x=[max(x) + 0.03],
        y=[(start + end) / 2],
        mode="text",
        text=[style.format_number(value)],
        textposition="middle right",
        hoverinfo="text",
        hovertext=[_hover(row)],
        showlegend=False,
        cliponaxis=False,
        textfont={
            "size": style.TEXT_SIZE,
            "color": style.INK if value is not None else style.SOFT_INK,
        },
    )


def _hover(row: Row) -> str:
    at, value = int(row["step"]), float_value(row, "value")
    before = "question and steps before" if at else "question"
    named = (
        f"step {at + 1} → step {at}" if row["link"] == "reverse" else f"{before} → step {at + 1}"
    )
    lines = [f"<b>{style.escape(named)}</b>", f"support {style.format_number(value)}"]
    lines += (
        [f"decided by {style.escape(style.truncate_text(row['verifier']))}"]
        if value is not None
        else []
    )
    lines += (
        [style.in_lines(text_value(row, "reason"), 60, most=4)] if text_value(row, "reason") else []
    )
    lines += (
        [f"at “{style.in_lines(text_value(row, 'quote'), 60)}”"] if text_value(row, "quote") else []
    )
    return "<br>".join(lines)
