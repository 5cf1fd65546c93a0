"""Chains: how long those of a suite are, and the entropy and the links of the steps of one."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import figure
from cotlab.figures.marks import Row, float_value, table_records, text_value

_LABELLED = 24  # bars that have room for their count in a figure 700 px wide


@figure(
    "chain_lengths",
    columns=("n_steps", "count"),
    caption="How many chains of the suite have how many steps. Late positions rest on few chains.",
    empty="the suite has no items.",
)
def chain_lengths(table: pd.DataFrame) -> Any:
    """Steps per chain as a histogram, the count on each bar."""
    known = table.dropna(subset=["n_steps", "count"]).sort_values("n_steps")
    lengths, counts = [int(n) for n in known["n_steps"]], [int(n) for n in known["count"]]
    span = max(lengths, default=0) - min(lengths, default=0) + 1
    fig = go.Figure()
    fig.add_bar(
        x=lengths,
        y=counts,
        width=0.8,
        marker={"color": style.ACCENT},
        cliponaxis=False,
        textposition="outside",
        textangle=0,
        text=[f"{count:,}" for count in counts] if span <= _LABELLED else None,
        textfont={"size": style.SMALL_SIZE + 1},
        hoverinfo="text",
        hovertext=[
            f"steps: {n}<br>chains: {count:,}" for n, count in zip(lengths, counts, strict=True)
        ],
    )
    small = [f"n = {sum(counts):,} chains"]
    if lengths and lengths[0] == 0:
        small.append("0 steps: the item has no reference chain; the model writes its own.")
    if len(known) < len(table):
        small.append(
            f"n/a: {len(table) - len(known)} rows without a length or a count are not drawn."
        )
    style.apply_style(
        fig,
        "Chain length: number of chains by number of steps",
        subtitle=small,
        x="Steps per chain",
        y="Chains",
        height=320,
    )
    fig.update_xaxes(tickmode="linear", tick0=0, dtick=_tick_step(span / 14), tickformat="d")
    fig.update_yaxes(
        range=[0, max(counts, default=1) * 1.12],
        tickformat=",d",
        dtick=_tick_step(max(counts, default=1) / 6),
    )
    return fig


def _tick_step(step: float) -> int:
    """The next of 1, 2, 5, 10, 20, 50 … that is at least ``step``."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power >= step:
                return factor * power
        power *= 10


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
                hovertext=[_entropy_hover(r) for r in flagged],
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
        hovertext=[_entropy_hover(row) for row in known],
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
            hovertext=_entropy_hover(row),
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


def _entropy_hover(row: Any) -> str:
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


LINK_ORDER = ("reverse", "forward")
LINK_LABELS = {
    "reverse": "reverse: does a step support the one before",
    "forward": "forward: do question and steps before support a step",
}
_ARC_POINTS = 24
_ARC_WIDTH = 0.55
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
    sides = [link for link in LINK_ORDER if any(row["link"] == link for row in rows)]
    sides += [
        link for link in dict.fromkeys(str(row["link"]) for row in rows) if link not in LINK_ORDER
    ]
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
        ticktext=[style.in_lines(LINK_LABELS.get(link, link), 22, most=3) for link in sides],
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
    angles = [math.pi * k / _ARC_POINTS for k in range(_ARC_POINTS + 1)]
    x = [side + 0.06 + _ARC_WIDTH * 0.4 * math.sin(a) for a in angles]
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
        hovertext=[_link_hover(row)],
        showlegend=False,
        cliponaxis=False,
        textfont={
            "size": style.TEXT_SIZE,
            "color": style.INK if value is not None else style.SOFT_INK,
        },
    )


def _link_hover(row: Row) -> str:
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
