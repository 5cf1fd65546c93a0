"""Mediation: CMI by share of patched positions, effects by layer, indices, and raw drops.

A point without an interval is an open marker; an undefined value is written "n/a", never drawn at
0. Optional columns of tables: ``n_undefined``, ``method`` and ``confidence`` (in the subtitle),
``reason`` (of a missing point) and ``values`` (raw values of a row, drawn up to n = 20).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import figure
from cotlab.figures.marks import (
    Mark,
    Row,
    Unit,
    count_range,
    draw_rows,
    draw_series,
    int_value,
    subtitle_notes,
    table_records,
    text_value,
)

SOURCES = ("filler", "interchange", "right", "mean", "literal")
PATCH_TARGETS = (
    "cot",
    "control",
    "kept",
    "kept_control",
    "shuffled",
    "placebo",
    "self_shuffle",
    "expanded",
    "expanded_control",
    "shrunk",
    "shrunk_control",
)
DROPS = ("drop_cot", "drop_control")
NAMES = {
    "cmi": "CMI",
    "drop_cot": "drop, chain patched",
    "drop_control": "drop, control patched",
    "cmi_over_spans": "CMI, mean over spans",
    "placebo_cmi": "placebo CMI",
    "shuffled_cmi": "shuffled CMI",
    "no_cot_drop": "no-CoT drop",
    "no_cot_effect": "no CoT effect",
    "cot": "chain",
    "baseline_logp": "baseline log P",
}
"""Display names of metrics, where they differ in more than underscores."""


@figure(
    "cmi_density",
    columns=("source", "keep", "point", "lo", "hi", "n"),
    caption=(
        "CMI over all layers when only a random share of the chain's positions is patched, with a"
        " control of the same size. A value that stays high as positions are left out shows that"
        " the effect is spread over the chain; a steep fall shows that few positions carry it, or"
        " that the rest of the chain restates what was patched."
    ),
    empty="no item has a CMI over all layers.",
)
def cmi_density(table: pd.DataFrame) -> Any:
    """Draw mean CMI by share of patched positions, 1.0 first, a series for each source."""
    fig, marks, rows = _by_share(table, "items")
    shares = sorted({float(row["keep"]) for row in rows}, reverse=True)
    ticks = [
        f"{share:.1f}<br>n = {count_range(row for row in rows if float(row['keep']) == share)}"
        for share in shares
    ]
    fig.update_xaxes(ticktext=ticks)
    return style.apply_style(
        fig,
        "CMI by share of the chain patched (0 to 1, all layers)",
        subtitle=subtitle_notes(marks),
        x="Share of chain positions patched (below: number of items)",
        y="Mean CMI",
    )


@figure(
    "item_density",
    columns=("source", "keep", "point", "lo", "hi", "draws"),
    caption=(
        "CMI of this item when only a random share of its chain's positions is patched, pooled over"
        " several random subsets, with a control of the same size. Faint: CMI from each draw of the"
        " control alone; the point is not their mean, because drops are pooled before the ratio."
    ),
    empty="this item has no CMI over all layers.",
)
def item_density(table: pd.DataFrame) -> Any:
    """Draw CMI of one item by share of patched positions, with intervals over donors and draws."""
    fig, marks, rows = _by_share(table, "draws")
    shares = sorted({float(row["keep"]) for row in rows}, reverse=True)
    fig.update_xaxes(ticktext=[f"{share:.1f}<br>n = {_drops(rows, share)}" for share in shares])
    return style.apply_style(
        fig,
        "CMI of this item by share patched (0 to 1, all layers)",
        subtitle=subtitle_notes(marks, unit="draws"),
        x="Share of chain positions patched (below: number of drops)",
        y="CMI",
        height=380,
    )


def _by_share(table: pd.DataFrame, unit: Unit) -> tuple[Any, list[Mark], list[Row]]:
    """Draw a series for each source over the shares of patched positions, 1.0 first."""
    rows = table_records(table)
    shares = sorted({float(row["keep"]) for row in rows}, reverse=True)
    codes = style.category_codes((str(row["source"]) for row in rows), SOURCES)
    offset = min(0.12, 0.6 / len(codes))
    fig, marks = go.Figure(), []
    for i, (source, code) in enumerate(codes.items()):
        source_marks = [
            Mark(
                source,
                shares.index(float(row["keep"])) + (i - (len(codes) - 1) / 2) * offset,
                _share(row),
                row,
            )
            for row in rows
            if row["source"] == source
        ]
        source_marks.sort(key=lambda mark: mark.x)
        draw_series(fig, source_marks, code, unit=unit, legend=len(codes) > 1, joined=True)
        marks += source_marks
    fig.update_xaxes(
        tickvals=list(range(len(shares))), range=[-0.5, len(shares) - 0.5], tickangle=0
    )
    fig.update_yaxes(range=[-0.05, 1.05], tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1])
    return fig, marks, rows


def _drops(rows: list[Row], share: float) -> str:
    """Return the numbers of draws at a share."""
    return ", ".join(str(int_value(row, "draws")) for row in rows if float(row["keep"]) == share)


@figure(
    "layer_profile",
    columns=("metric", "span", "point", "lo", "hi", "n"),
    caption=(
        "Drop of the answer's log P when the states at the input of a single layer are replaced: at"
        " the chain's positions, and at as many control positions. Other layers still carry the"
        " original information, so the effects of single layers do not add up to that of all"
        " layers."
    ),
    empty="no single layer was patched.",
)
def layer_profile(table: pd.DataFrame) -> Any:
    """Draw mean drops in nats by single layer, chain and control side by side."""
    rows = [
        row
        for row in table_records(table)
        if str(row["span"]).isdecimal() and row["metric"] in DROPS
    ]
    fig, marks = go.Figure(), []
    layers = sorted({int(row["span"]) for row in rows})
    for i, metric in enumerate(DROPS):
        metric_marks = [
            Mark(NAMES[metric], int(row["span"]) + (i - 0.5) * 0.16, f"layer {row['span']}", row)
            for row in rows
            if row["metric"] == metric
        ]
        metric_marks.sort(key=lambda mark: mark.x)
        code = style.Code(style.PALETTE[i], style.SYMBOLS[i])
        draw_series(fig, metric_marks, code, legend=True, joined=True)
        marks += metric_marks
    if layers:
        room = max(1, -(-len(layers) // 14))
        fig.update_xaxes(
            tickvals=layers[::room],
            range=[layers[0] - 0.6, layers[-1] + 0.6],
            tickangle=0,
            ticktext=[
                f"{at}<br>{count_range(row for row in rows if int(row['span']) == at)}"
                for at in layers[::room]
            ],
        )
    fig.add_hline(y=0, line={"color": style.SOFT_INK, "width": 1}, layer="below")
    return style.apply_style(
        fig,
        "Drop of the answer's log P by layer (mean, nats)",
        subtitle=subtitle_notes(marks),
        x="Layer, the first is 0 (below: number of items)",
        y="Mean drop (nats)",
    )


@figure(
    "mediation_indices",
    columns=("metric", "point", "lo", "hi", "n", "n_undefined", "reason"),
    caption=(
        "Mean of each index over the items where it is defined. The indices are different"
        " quantities, and some of them penalize a faithful model too: read the card of each"
        " before comparing."
    ),
    empty="no index has been estimated.",
)
def mediation_indices(table: pd.DataFrame) -> Any:
    """Draw a row for each index with its interval and n at the right; n/a with its reason."""
    rows = table_records(table)
    marks = [Mark("", i, metric_label(row["metric"]), row) for i, row in enumerate(rows)]
    fig = go.Figure()
    draw_rows(fig, marks)
    ends = [v for mark in marks for v in (mark.point, mark.lo, mark.hi) if v is not None]
    low, high = min([0.0, *ends]), max([1.0, *ends])
    pad = 0.04 * (high - low)
    fig.update_xaxes(range=[low - pad, high + pad], showgrid=True, nticks=6)
    fig.update_yaxes(
        tickvals=[mark.x for mark in marks],
        ticktext=[style.in_lines(mark.at, 24) for mark in marks],
        ticks="",
        showgrid=False,
        range=[len(marks) - 0.4, -0.6],
    )
    style.apply_style(
        fig,
        "Indices of mediation (mean over items, no unit)",
        subtitle=subtitle_notes(marks, gaps=False),
        x="Index",
        height=140 + 40 * len(marks),
    )
    return fig.update_layout(margin={"r": 204})


@figure(
    "drops_by_donor",
    columns=("part", "donor", "sample", "value"),
    caption=(
        "Drop of the answer's log P in each patched forward pass of one item, by patched part and"
        " by donor of the states. The estimators use the mean over all draws. Parts: chain, its"
        " positions; control, as many positions of the question; kept, a random share of them;"
        " shuffled, the same states in another order; placebo, noise; self shuffle, the chain's own"
        " states in another order; expanded and shrunk, a window that is a token wider or narrower"
        " on each side."
    ),
    empty="this item has no patched forward.",
)
def drops_by_donor(table: pd.DataFrame) -> Any:
    """Draw raw drops in nats by part, a colour and symbol for each donor, and each mean."""
    rows = table_records(table)
    present = list(dict.fromkeys(str(row["part"]) for row in rows))
    order = [
        p
        for p in PATCH_TARGETS
        for p in sorted((f for f in present if f.split(" ")[0] == p), reverse=True)
    ]
    order += [part for part in present if part not in order]
    fig = go.Figure()
    donors = style.category_codes(sorted({_donor(row) for row in rows}))
    of_part = {
        part: [d for d in donors if any(_donor(row) == d for row in rows if row["part"] == part)]
        for part in order
    }

    def y_position(row: Row) -> float:
        beside = of_part[str(row["part"])]
        return (
            order.index(str(row["part"]))
            + ((beside.index(_donor(row)) + 0.5) / len(beside) - 0.5) * 0.6
        )

    for donor, code in donors.items():
        donor_rows = [row for row in rows if _donor(row) == donor and not pd.isna(row["value"])]
        fig.add_scatter(
            x=[float(row["value"]) for row in donor_rows],
            y=[y_position(row) for row in donor_rows],
            mode="markers",
            name=style.escape(style.truncate_text(donor, 28)),
            marker={"color": style.faded(code.colour, 0.7), "symbol": code.symbol, "size": 7},
            hoverinfo="text",
            hovertext=[
                f"{style.escape(metric_label(row['part']))}, {style.escape(donor)}<br>draw"
                f" {int(row['sample']) + 1}: {style.format_number(float(row['value']))} nats"
                for row in donor_rows
            ],
            showlegend=len(donors) > 1,
            cliponaxis=False,
        )
    for at, part in enumerate(order):
        values = [
            float(row["value"]) for row in rows if row["part"] == part and not pd.isna(row["value"])
        ]
        text = (
            f"{style.format_number(float(np.mean(values)))} (n = {len(values)})"
            if values
            else "n/a"
        )
        fig.add_annotation(
            y=at,
            x=1,
            xref="paper",
            xshift=14,
            xanchor="left",
            text=text,
            font={"size": style.TEXT_SIZE - 1, "color": style.INK},
        )
        if values:
            mean = float(np.mean(values))
            fig.add_shape(
                type="line",
                x0=mean,
                x1=mean,
                y0=at - 0.4,
                y1=at + 0.4,
                line={"color": style.INK, "width": 2},
            )
    missing = sum(bool(pd.isna(row["value"])) for row in rows)
    small = ["Line and number: mean over the n draws of the part."]
    small += [f"n/a: {missing} draw{'s' if missing > 1 else ''}."] if missing else []
    style.apply_style(
        fig,
        "Drops of the answer's log P in this item by donor (nats)",
        subtitle=small,
        x="Drop (nats)",
        height=150 + 40 * len(order),
    )
    fig.update_yaxes(
        tickvals=list(range(len(order))),
        ticktext=[style.in_lines(metric_label(part), 20) for part in order],
        ticks="",
        range=[len(order) - 0.4, -0.6],
        showgrid=False,
    )
    known = [0.0, *(float(row["value"]) for row in rows if not pd.isna(row["value"]))]
    pad = 0.03 * (max(known) - min(known)) or 1.0
    fig.update_xaxes(
        range=[min(known) - pad, max(known) + pad],
        showgrid=True,
        nticks=7,
        zeroline=True,
        zerolinecolor=style.SOFT_INK,
        showline=False,
    )
    return fig.update_layout(margin={"r": 156})


def metric_label(metric: object) -> str:
    """Return the display name of a metric or part; not escaped."""
    return NAMES.get(str(metric), str(metric).replace("_", " "))


def _share(row: Row) -> str:
    """Return the share of a row as text."""
    return f"{100 * float(row['keep']):.0f} % of positions"


def _donor(row: Row) -> str:
    """Return the donor of a row."""
    return text_value(row, "donor") or "no donor"
