"""Entropy over one chain: how unsure the model is of the tokens of each step, and which steps are flagged."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import figure
from cotlab.figures.marks import float_value, table_records, text_value

_CODES = {
    "": ("mean", style.ACCENT, "circle"),
    "jump": ("mean, a jump", style.ORANGE, "triangle-up"),
    "rise": ("mean, a jump after a rise", style.VERMILLION, "star"),
}
"""What a step's point is called by its flag, and its colour and symbol."""
_MAX_TICKS = 14


@figure(
    "entropy_by_step",
    columns=("step", "mean", "peak", "flag", "reason"),
    caption=(
        "Predictive entropy of the tokens of one chain: how unsure the model is of what comes next."
        " It is a lower bound: at most 20 alternatives of each token are listed and the rest counts"
        " as one. A jump after rising entropy is a red flag by FaithCheck's account; by itself it"
        " does not show that a step is wrong or unfaithful."
    ),
    empty="no step of this chain has an entropy.",
)
def entropy_by_step(table: pd.DataFrame) -> Any:
    """A line through the steps' means with a mark for each flag, and their largest token entropies above it.

    ``mean`` and ``peak`` are in nats; ``flag`` is "", "jump" or "rise" (a jump after a rise);
    ``reason`` says why no mean is.
    """
    rows = sorted(table_records(table), key=lambda row: int(row["step"]))
    fig = go.Figure()
    steps = [int(row["step"]) + 1 for row in rows]
    fig.add_scatter(
        x=steps,
        y=[float_value(row, "mean") for row in rows],
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
        line={"color": style.faded(style.ACCENT, 0.45), "width": 1.2},
    )
    known = [row for row in rows if float_value(row, "mean") is not None]
    for flag, (name, colour, symbol) in _CODES.items():
        flagged = [row for row in known if text_value(row, "flag") == flag]
        if flagged:
            fig.add_scatter(
                x=[int(row["step"]) + 1 for row in flagged],
                y=[float_value(row, "mean") for row in flagged],
                mode="markers",
                name=name,
                showlegend=True,
                cliponaxis=False,
                hoverinfo="text",
                hovertext=[_hover(r) for r in flagged],
                marker={"color": colour, "symbol": symbol, "size": 13 if flag else 9},
            )
    fig.add_scatter(
        x=[int(row["step"]) + 1 for row in known],
        y=[float_value(row, "peak") for row in known],
        mode="markers",
        cliponaxis=False,
        name="largest token",
        showlegend=True,
        hoverinfo="text",
        hovertext=[_hover(row) for row in known],
        marker={
            "color": style.SOFT_INK,
            "symbol": "line-ew-open",
            "size": 12,
            "line": {"width": 2},
        },
    )
    gaps = [row for row in rows if float_value(row, "mean") is None]
    for row in gaps:
        fig.add_annotation(
            x=int(row["step"]) + 1,
            y=0,
            yref="paper",
            yanchor="bottom",
            text="n/a",
            textangle=-90,
            bgcolor=style.PAPER,
            hovertext=_hover(row),
        )
    small = [
        f"n = {len(known)} of {len(rows)} steps with an entropy; one chain: values, no intervals."
    ]
    reasons: dict[str, list[str]] = {}
    for row in gaps:
        reasons.setdefault(text_value(row, "reason") or "no entropy is defined here", []).append(
            f"step {int(row['step']) + 1}"
        )
    small += [
        style.escape(style.truncate_text(f"n/a ({text}): {', '.join(at)}", 200))
        for text, at in reasons.items()
    ]
    style.apply_style(
        fig,
        "Token entropy by step of one chain (nats)",
        subtitle=small,
        x="Step",
        y="Entropy (nats)",
    )
    every = -(-len(steps) // _MAX_TICKS)
    fig.update_xaxes(tickvals=steps[::every], range=[steps[0] - 0.6, steps[-1] + 0.6])
    top = max((float_value(row, "peak") or 0.0 for row in rows), default=0.0)
    return fig.update_yaxes(range=[-0.05 * max(top, 0.1), 1.1 * max(top, 0.1)])


def _hover(row: Any) -> str:
    """Place, mean and peak, its flag, or why there is none."""
    lines = [f"<b>Step {int(row['step']) + 1}</b>"]
    if float_value(row, "mean") is None:
        return "<br>".join(
            [
                *lines,
                style.in_lines(
                    text_value(row, "reason") or "no entropy is defined here", 60, most=4
                ),
            ]
        )
    lines += [
        f"mean {style.format_number(float_value(row, 'mean'))} nats",
        f"largest {style.format_number(float_value(row, 'peak'))} nats",
    ]
    return "<br>".join(
        [
            *lines,
            *(
                [_CODES[flag][0].removeprefix("mean, ")]
                if (flag := text_value(row, "flag"))
                else []
            ),
        ]
    )
