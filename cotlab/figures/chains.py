"""Chains: their lengths in a suite; token entropy and links between the steps of one chain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import Row, figure, float_value, in_order, table_records, text_value
from cotlab.figures.layout import apply_style
from cotlab.figures.marks import draw_background, draw_markers, draw_missing, missing_notes

_MAX_LABELLED_BARS = 24
"""Number of bars up to which each has its count."""


@figure(
    "chain_lengths",
    columns=("n_steps", "count"),
    caption="Estimates at a position rest on the chains that reach it.",
    empty_reason="the suite has no items.",
)
def chain_lengths(table: pd.DataFrame) -> Any:
    """Draw a histogram of steps per chain with the count on each bar."""
    complete_rows = table.dropna(subset=["n_steps", "count"]).sort_values("n_steps")
    lengths = [int(n) for n in complete_rows["n_steps"]]
    counts = [int(n) for n in complete_rows["count"]]
    length_range = max(lengths, default=0) - min(lengths, default=0) + 1
    fig = go.Figure()
    fig.add_bar(
        x=lengths,
        y=counts,
        width=0.8,
        marker={"color": style.hue(style.ACCENT_COLOUR)},
        cliponaxis=False,
        textposition="outside",
        textangle=0,
        text=[f"{count:,}" for count in counts] if length_range <= _MAX_LABELLED_BARS else None,
        textfont={"size": style.SMALL_TEXT_SIZE + 1},
        hoverinfo="text",
        hovertext=[
            f"steps: {n}<br>chains: {count:,}" for n, count in zip(lengths, counts, strict=True)
        ],
    )
    subtitle = [f"n = {sum(counts):,} chains"]
    if lengths and lengths[0] == 0:
        subtitle.append("0 steps: the item has no reference chain; the model writes its own.")
    if len(complete_rows) < len(table):
        subtitle.append(
            f"n/a: {len(table) - len(complete_rows)} rows without a length or a count are not"
            " drawn."
        )
    apply_style(
        fig,
        "Chain length: number of chains by number of steps",
        subtitle=subtitle,
        x="Steps per chain",
        y="Chains",
        height=280,
    )
    fig.update_xaxes(
        tickmode="linear", tick0=0, dtick=_tick_interval(length_range / 14), tickformat="d"
    )
    fig.update_yaxes(
        range=[0, max(counts, default=1) * 1.12],
        tickformat=",d",
        dtick=_tick_interval(max(counts, default=1) / 6),
    )
    return fig


def _tick_interval(min_interval: float) -> int:
    """Return the first of 1, 2, 5, 10, 20, 50 … that is at least ``min_interval``."""
    magnitude = 1
    while True:
        for factor in (1, 2, 5):
            if factor * magnitude >= min_interval:
                return factor * magnitude
        magnitude *= 10


_FLAG_STYLES = {
    "": ("mean", style.ACCENT_COLOUR, "circle"),
    "jump": ("mean, a jump", style.ORANGE, "triangle-up"),
    "rise": ("mean, a jump after a rise", style.VERMILLION, "star"),
}
"""Name, colour and symbol of a step by its flag."""
_MAX_TICKS = 14


@figure(
    "entropy_by_step",
    columns=("step", "mean", "peak", "flag", "reason"),
    caption=(
        "Predictive entropy of the tokens of one chain: how uncertain the model is about the next"
        " token. It is a lower bound: at most 20 alternatives of each token are listed; the rest"
        " counts as one. FaithCheck treats a jump after rising entropy as a red flag; by itself it"
        " does not show that a step is wrong or unfaithful."
    ),
    empty_reason="no step of this chain has an entropy.",
)
def entropy_by_step(table: pd.DataFrame) -> Any:
    """Draw mean and largest token entropy by step, with a symbol for each flag.

    ``mean`` and ``peak`` are in nats; ``flag`` is "", "jump" or "rise" (a jump after a rise);
    ``reason`` says why there is no mean.
    """
    rows = sorted(table_records(table), key=lambda row: int(row["step"]))
    fig = go.Figure()
    steps = [int(row["step"]) + 1 for row in rows]
    line = {"color": style.with_opacity(style.hue(style.ACCENT_COLOUR), 0.45), "width": 1.2}
    means = [float_value(row, "mean") for row in rows]
    draw_background(fig, steps, means, mode="lines", line=line)
    defined_rows = [row for row in rows if float_value(row, "mean") is not None]
    for flag, (name, colour, symbol) in _FLAG_STYLES.items():
        flagged_rows = [row for row in defined_rows if text_value(row, "flag") == flag]
        if flagged_rows:
            marker = {"color": style.hue(colour), "symbol": symbol, "size": 13 if flag else 9}
            _draw_entropies(fig, flagged_rows, "mean", marker, name)
    peak_marker = {
        "color": style.hue(style.SOFT_TEXT_COLOUR),
        "symbol": "line-ew-open",
        "size": 12,
        "line": {"width": 2},
    }
    _draw_entropies(fig, defined_rows, "peak", peak_marker, "largest token")
    undefined_rows = [row for row in rows if float_value(row, "mean") is None]
    for row in undefined_rows:
        draw_missing(fig, int(row["step"]) + 1, _entropy_hover_text(row), textangle=-90)
    subtitle = [
        (
            f"n = {len(defined_rows)} of {len(rows)} steps with an entropy; one chain: values, no"
            " intervals."
        ),
        *missing_notes(
            (_entropy_reason(row), f"step {int(row['step']) + 1}") for row in undefined_rows
        ),
    ]
    apply_style(
        fig,
        "Token entropy by step of one chain (nats)",
        subtitle=subtitle,
        x="Step",
        y="Entropy (nats)",
    )
    tick_interval = -(-len(steps) // _MAX_TICKS)
    fig.update_xaxes(tickvals=steps[::tick_interval], range=[steps[0] - 0.6, steps[-1] + 0.6])
    highest_peak = max((float_value(row, "peak") or 0.0 for row in rows), default=0.0)
    return fig.update_yaxes(range=[-0.05 * max(highest_peak, 0.1), 1.1 * max(highest_peak, 0.1)])


def _draw_entropies(
    fig: Any, rows: Sequence[Row], column: str, marker: dict[str, Any], name: str
) -> None:
    """Draw the mean or largest entropies of steps."""
    steps = [int(row["step"]) + 1 for row in rows]
    values = [float_value(row, column) for row in rows]
    draw_markers(fig, steps, values, [_entropy_hover_text(row) for row in rows], marker, name=name)


def _entropy_reason(row: Row) -> str:
    """Return why a step has no entropy."""
    return text_value(row, "reason") or "no entropy is defined here"


def _entropy_hover_text(row: Row) -> str:
    """Return the hover text of a step: mean, peak and flag, or why there are none."""
    lines = [f"<b>Step {int(row['step']) + 1}</b>"]
    if float_value(row, "mean") is None:
        lines.append(style.wrap_text(_entropy_reason(row), 60, max_lines=4))
    else:
        for name, column in (("mean", "mean"), ("largest", "peak")):
            lines.append(f"{name} {style.format_number(float_value(row, column))} nats")
        if flag := text_value(row, "flag"):
            lines.append(_FLAG_STYLES[flag][0].removeprefix("mean, "))
    return "<br>".join(lines)


LINK_ORDER = ("reverse", "forward")
LINK_LABELS = {
    "reverse": "reverse: does a step support the one before",
    "forward": "forward: do question and steps before support a step",
}
_N_ARC_SEGMENTS = 24
_ARC_WIDTH = 0.55
"""Width of an arc, in widths of its column."""


@figure(
    "verification_links",
    columns=("link", "step", "value", "verifier", "reason"),
    caption=(
        "Each arrow is a checked link from the supporting step to the supported step; its number is"
        " the confidence. A dashed grey arrow is undecided. A supported chain may still not be the"
        " one that the model used."
    ),
    empty_reason="no link of this chain was checked.",
)
def verification_links(table: pd.DataFrame) -> Any:
    """Draw a column of arcs for each direction, with the support as colour and number.

    Optional columns: ``text`` and ``before``, the texts of the step and of the one before;
    ``quote``, the passage that decided the link.
    """
    rows = table_records(table)
    links = in_order((row["link"] for row in rows), LINK_ORDER)
    n_steps = max(int(row["step"]) for row in rows) + 1
    # the question is above the first step
    first_position = -1 if any(int(row["step"]) == 0 for row in rows) else 0
    fig = go.Figure()
    for link_index, link in enumerate(links):
        positions = list(range(0 if link == "reverse" else first_position, n_steps))
        line = {"color": style.hue(style.SOFT_TEXT_COLOUR), "width": 1}
        draw_background(
            fig,
            [link_index] * len(positions),
            positions,
            mode="markers+text",
            text=["Q" if i < 0 else str(i + 1) for i in positions],
            marker={"size": 22, "color": style.hue(style.BACKGROUND_COLOUR), "line": line},
            textfont={"size": style.SMALL_TEXT_SIZE},
            cliponaxis=False,
        )
        for row in rows:
            if row["link"] == link:
                _draw_arc(fig, link_index, row)
    apply_style(
        fig,
        "Links between the steps (support, 0 to 1)",
        subtitle=[
            "Dark is 0, bright is 1; dashed: undecided. Circles are steps, from 1, and Q the"
            " question; reasons are in the data."
        ],
        height=90 + 54 * (n_steps - first_position),
    )
    fig.update_xaxes(
        tickvals=list(range(len(links))),
        ticktext=[style.wrap_text(LINK_LABELS.get(link, link), 22, max_lines=3) for link in links],
        range=[-0.2, len(links) - 0.05],
        ticks="",
        showline=False,
        tickangle=0,
    )
    step_texts = {
        int(row["step"]) - offset: text_value(row, name)
        for row in rows
        for offset, name in ((1, "before"), (0, "text"))
    }
    step_texts[-1] = "the question"
    return fig.update_yaxes(
        tickvals=list(range(first_position, n_steps)),
        ticktext=[
            style.wrap_text(step_texts.get(i, ""), 34) for i in range(first_position, n_steps)
        ],
        ticks="",
        showline=False,
        showgrid=False,
        range=[n_steps - 0.4, first_position - 0.6],
    )


def _draw_arc(fig: Any, link_index: int, row: Row) -> None:
    """Draw an arc from the supporting to the supported step, with arrow head and number."""
    value, step = float_value(row, "value"), int(row["step"])
    soft_colour = style.hue(style.SOFT_TEXT_COLOUR)
    colour = soft_colour if value is None else style.viridis_colour(value)
    arc_start, arc_end = (step, step - 1) if row["link"] == "reverse" else (step - 1, step)
    arc_angles = [math.pi * k / _N_ARC_SEGMENTS for k in range(_N_ARC_SEGMENTS + 1)]
    x = [link_index + 0.06 + _ARC_WIDTH * 0.4 * math.sin(angle) for angle in arc_angles]
    y = [
        arc_start + (arc_end - arc_start) * (0.16 + 0.68 * (1 - math.cos(angle)) / 2)
        for angle in arc_angles
    ]
    edge_line = {"color": soft_colour, "width": 6}
    line = {"color": colour, "width": 4, "dash": "solid"}
    if value is None:
        line = {"color": colour, "width": 2, "dash": "dash"}
    else:  # a dark edge: the bright end of the scale is hard to see on white
        draw_background(fig, x, y, mode="lines", cliponaxis=False, line=edge_line)
    draw_background(fig, x, y, mode="lines", cliponaxis=False, line=line)
    arrow_head = {
        "symbol": "triangle-left",
        "size": 12,
        "color": colour,
        "line": {**edge_line, "width": 1},
    }
    draw_background(
        fig, [x[-1] - 0.004], y[-1:], mode="markers", cliponaxis=False, marker=arrow_head
    )
    fig.add_scatter(
        x=[max(x) + 0.03],
        y=[(arc_start + arc_end) / 2],
        mode="text",
        text=[style.format_number(value)],
        textposition="middle right",
        hoverinfo="text",
        hovertext=[_link_hover_text(row)],
        showlegend=False,
        cliponaxis=False,
    )


def _link_hover_text(row: Row) -> str:
    """Return the hover text of a link: support, verifier, reason and quote."""
    step, value = int(row["step"]), float_value(row, "value")
    earlier_text = "question and steps before" if step else "question"
    link_name = (
        f"step {step + 1} → step {step}"
        if row["link"] == "reverse"
        else f"{earlier_text} → step {step + 1}"
    )
    lines = [f"<b>{style.escape(link_name)}</b>", f"support {style.format_number(value)}"]
    if value is not None:
        lines.append(f"decided by {style.escape(style.truncate_text(row['verifier']))}")
    if reason := text_value(row, "reason"):
        lines.append(style.wrap_text(reason, 60, max_lines=4))
    if quote := text_value(row, "quote"):
        lines.append(f"at “{style.wrap_text(quote, 60)}”")
    return "<br>".join(lines)
