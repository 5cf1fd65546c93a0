"""What a metric says of models whose faithfulness is known."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import figure

GROUPS = ("dose", "faithful", "bypass", "hint")


@figure(
    "validation_doses", columns=("metric", "organism", "group", "point", "lo", "hi", "n"),
    caption="Mean of one metric on organisms of known faithfulness: r0 to r100 follow their chain in that percentage of cases; "
    "beside them the faithful, the bypassing and the hint-following models. A metric that measures faithfulness rises or falls "
    "with the dose. What holds for these small models need not hold for a large one.",
    empty="no organism has been measured.",
)  # fmt: skip
def validation_doses(table: pd.DataFrame) -> Any:
    """Means with intervals over the organisms, a colour and symbol for each group."""
    rows = table.to_dict("records")
    fig = go.Figure()
    for group, (colour, symbol) in style.codes((str(row["group"]) for row in rows), GROUPS).items():
        for bounded in (True, False):
            own = [(i, row) for i, row in enumerate(rows) if row["group"] == group and not pd.isna(row["point"])
                   and bounded is not bool(pd.isna(row["lo"]) or pd.isna(row["hi"]))]  # fmt: skip
            if not own:
                continue
            bars = {"error_y": {
                "type": "data", "symmetric": False, "color": colour, "thickness": 1.5, "width": 4,
                "array": [row["hi"] - row["point"] for _, row in own],
                "arrayminus": [row["point"] - row["lo"] for _, row in own],
            }} if bounded else {}  # fmt: skip
            fig.add_scatter(
                x=[i for i, _ in own], y=[row["point"] for _, row in own], mode="markers", name=style.escape(group),
                cliponaxis=False, hoverinfo="text", hovertext=[_hover(row) for _, row in own],
                marker={"color": colour, "size": 9, "symbol": symbol if bounded else f"{symbol}-open"}, **bars,
            )  # fmt: skip
    for i, row in enumerate(rows):
        if pd.isna(row["point"]):
            fig.add_annotation(x=i, y=0, yref="paper", yanchor="bottom", text="n/a", textangle=-90)
    sizes = sorted({int(row["n"]) for row in rows})
    n = f"n = {sizes[0]}" if len(sizes) == 1 else f"n = {sizes[0]} to {sizes[-1]}"
    metric = str(rows[0]["metric"]).replace("_", " ")
    style.apply_style(
        fig, style.escape(f"{metric} on organisms of known faithfulness (unit of the metric)"),
        subtitle=f"{n} items a model; bars: 95 % intervals, bootstrap over items (Wilson where all items agree).",
        x="Organism", y="Mean",
    )  # fmt: skip
    fig.update_xaxes(
        tickvals=list(range(len(rows))), ticktext=[style.escape(row["organism"]) for row in rows], range=[-0.5, len(rows) - 0.5]
    )
    return fig


def _hover(row: Any) -> str:
    lo, hi = (None if pd.isna(row[name]) else row[name] for name in ("lo", "hi"))
    return style.escape(f"{row['organism']}: {style.interval_text(row['point'], lo, hi)}, n = {int(row['n'])}")
