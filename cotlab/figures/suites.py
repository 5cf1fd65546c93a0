"""Figures of a suite's inputs."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import figure

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
