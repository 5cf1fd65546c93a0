"""Mediation: CMI by share of patched positions, effects by layer, indices, and raw drops.

A point without an interval is an open marker; an undefined value is written "n/a", never drawn at
0. Optional columns of tables: ``n_undefined``, ``method`` and ``confidence`` (in the subtitle),
``reason`` (of a missing point) and ``values`` (raw values of a row, drawn up to n = 20).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from cotlab.core.types import MEDIATION_SOURCES
from cotlab.figures import style
from cotlab.figures.declare import Row, count_range, figure, int_value, table_records, text_value
from cotlab.figures.marks import IntervalUnit, Mark, draw_series, interval_values, subtitle_notes
from cotlab.figures.rows import (
    add_mean_line,
    add_row_text,
    draw_estimate_rows,
    name_rows,
    set_value_axis,
)

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
DROP_METRICS = ("drop_cot", "drop_control")
METRIC_NAMES = {
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
    empty_reason="no item has a CMI over all layers.",
)
def cmi_density(table: pd.DataFrame) -> Any:
    """Draw mean CMI by share of patched positions, 1.0 first, a series for each source."""
    return _draw_by_share(
        table,
        "items",
        "CMI by share of the chain patched (0 to 1, all layers)",
        x="Share of chain positions patched (below: number of items)",
        y="Mean CMI",
    )


@figure(
    "drop_density",
    columns=("source", "keep", "point", "lo", "hi", "n"),
    caption=(
        "Over all layers, with only a random share of the chain's positions patched. Defined also"
        " where CMI is not, as where the effect is weak, and no ratio to a control: 0 is no effect."
    ),
    empty_reason="no item has a drop over all layers.",
)
def drop_density(table: pd.DataFrame) -> Any:
    """Draw the mean drop in nats by share of patched positions, a series for each source."""
    fig = _draw_by_share(
        table,
        "items",
        "Drop of the answer's log P by share of the chain patched (nats)",
        x="Share of chain positions patched (below: number of items)",
        y="Mean drop (nats)",
        has_unit_range=False,
    )
    fig.add_hline(y=0, line={"color": style.SOFT_TEXT_COLOUR, "width": 1}, layer="below")
    return fig


@figure(
    "item_density",
    columns=("source", "keep", "point", "lo", "hi", "draws"),
    caption=(
        "Only a random share of the chain's positions is patched, pooled over several random"
        " subsets, with a control of the same size. Faint: CMI from each draw of the"
        " control alone; the point is not their mean, because drops are pooled before the ratio."
    ),
    empty_reason="this item has no CMI over all layers.",
)
def item_density(table: pd.DataFrame) -> Any:
    """Draw CMI of one item by share of patched positions, with intervals over donors and draws."""
    return _draw_by_share(
        table,
        "draws",
        "CMI of this item by share patched (0 to 1, all layers)",
        x="Share of chain positions patched (below: number of drops)",
        y="CMI",
        height=380,
    )


def _draw_by_share(
    table: pd.DataFrame,
    unit: IntervalUnit,
    title: str,
    *,
    x: str,
    y: str,
    height: int = 420,
    has_unit_range: bool = True,
) -> Any:
    """Draw a series for each source over the shares of patched positions, 1.0 first."""
    rows = table_records(table)
    shares = sorted({float(row["keep"]) for row in rows}, reverse=True)
    style_by_source = style.category_styles((str(row["source"]) for row in rows), MEDIATION_SOURCES)
    series_spacing = min(0.12, 0.6 / len(style_by_source))
    fig, marks = go.Figure(), []
    for i, (source, category_style) in enumerate(style_by_source.items()):
        x_offset = (i - (len(style_by_source) - 1) / 2) * series_spacing
        source_marks = [
            Mark(source, shares.index(float(row["keep"])) + x_offset, _share_text(row), row)
            for row in rows
            if row["source"] == source
        ]
        source_marks.sort(key=lambda mark: mark.x)
        draw_series(
            fig,
            source_marks,
            category_style,
            unit=unit,
            in_legend=len(style_by_source) > 1,
        )
        marks += source_marks
    fig.update_xaxes(
        tickvals=list(range(len(shares))),
        ticktext=[f"{share:.1f}<br>n = {_counts_text(rows, share, unit)}" for share in shares],
        range=[-0.5, len(shares) - 0.5],
        tickangle=0,
    )
    if has_unit_range:
        fig.update_yaxes(range=[-0.05, 1.05], tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1])
    return style.apply_style(
        fig, title, subtitle=subtitle_notes(marks, unit=unit), x=x, y=y, height=height
    )


def _counts_text(rows: Sequence[Row], patched_share: float, unit: IntervalUnit) -> str:
    """Return the numbers of items or of draws at a share."""
    share_rows = [row for row in rows if float(row["keep"]) == patched_share]
    if unit == "items":
        return count_range(share_rows)
    return ", ".join(str(int_value(row, "draws")) for row in share_rows)


@figure(
    "layer_profile",
    columns=("metric", "span", "point", "lo", "hi", "n"),
    caption=(
        "The states at the input of a single layer are replaced at the chain's positions, and at as"
        " many control positions. Other layers still carry the"
        " original information, so the effects of single layers do not add up to that of all"
        " layers."
    ),
    empty_reason="no single layer was patched.",
)
def layer_profile(table: pd.DataFrame) -> Any:
    """Draw mean drops in nats by single layer, chain and control side by side."""
    rows = [
        row
        for row in table_records(table)
        if str(row["span"]).isdecimal() and row["metric"] in DROP_METRICS
    ]
    fig, marks = go.Figure(), []
    layers = sorted({int(row["span"]) for row in rows})
    for i, metric in enumerate(DROP_METRICS):
        metric_marks = [
            Mark(
                METRIC_NAMES[metric],
                int(row["span"]) + (i - 0.5) * 0.16,
                f"layer {row['span']}",
                row,
            )
            for row in rows
            if row["metric"] == metric
        ]
        metric_marks.sort(key=lambda mark: mark.x)
        category_style = style.CategoryStyle(style.PALETTE[i], style.SYMBOLS[i])
        draw_series(fig, metric_marks, category_style, in_legend=True)
        marks += metric_marks
    if layers:
        tick_interval = max(1, -(-len(layers) // 14))
        fig.update_xaxes(
            tickvals=layers[::tick_interval],
            range=[layers[0] - 0.6, layers[-1] + 0.6],
            tickangle=0,
            ticktext=[
                f"{layer}<br>{count_range(row for row in rows if int(row['span']) == layer)}"
                for layer in layers[::tick_interval]
            ],
        )
    fig.add_hline(y=0, line={"color": style.SOFT_TEXT_COLOUR, "width": 1}, layer="below")
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
    empty_reason="no index has been estimated.",
)
def mediation_indices(table: pd.DataFrame) -> Any:
    """Draw a row for each index with its interval and n at the right; n/a with its reason."""
    rows = table_records(table)
    marks = [Mark("", i, metric_label(row["metric"]), row) for i, row in enumerate(rows)]
    fig = draw_estimate_rows(marks, "Indices of mediation (mean over items, no unit)", x="Index")
    set_value_axis(fig, interval_values(marks))
    return fig


@figure(
    "drops_by_donor",
    columns=("part", "donor", "sample", "value"),
    caption=(
        "A mark is one patched forward pass. The estimators use the mean over all draws of a part"
        " and a donor. Parts: chain, its"
        " positions; control, the positions of the control; kept, a random share of them;"
        " shuffled, these states in another order; placebo, noise; self shuffle, the chain's own in"
        " another order; expanded and shrunk, a window that is a token wider or narrower"
        " on each side."
    ),
    empty_reason="this item has no patched forward.",
)
def drops_by_donor(table: pd.DataFrame) -> Any:
    """Draw raw drops in nats by part, a colour and symbol for each donor, and each mean."""
    rows = table_records(table)
    part_names = list(dict.fromkeys(str(row["part"]) for row in rows))
    part_order = [
        target
        for target in PATCH_TARGETS
        for target in sorted(
            (part_name for part_name in part_names if part_name.split(" ")[0] == target),
            reverse=True,
        )
    ]
    part_order += [part for part in part_names if part not in part_order]
    fig = go.Figure()
    style_by_donor = style.category_styles(sorted({_donor_name(row) for row in rows}))
    donors_by_part = {
        part: [
            donor_name
            for donor_name in style_by_donor
            if any(_donor_name(row) == donor_name for row in rows if row["part"] == part)
        ]
        for part in part_order
    }

    def y_position(row: Row) -> float:
        part_donors = donors_by_part[str(row["part"])]
        return (
            part_order.index(str(row["part"]))
            + ((part_donors.index(_donor_name(row)) + 0.5) / len(part_donors) - 0.5) * 0.6
        )

    for donor, category_style in style_by_donor.items():
        donor_rows = [
            row for row in rows if _donor_name(row) == donor and not pd.isna(row["value"])
        ]
        fig.add_scatter(
            x=[float(row["value"]) for row in donor_rows],
            y=[y_position(row) for row in donor_rows],
            mode="markers",
            name=style.escape(style.truncate_text(donor, 28)),
            marker={
                "color": style.with_opacity(category_style.colour, 0.7),
                "symbol": category_style.symbol,
                "size": 7,
            },
            hoverinfo="text",
            hovertext=[
                f"{style.escape(metric_label(row['part']))}, {style.escape(donor)}<br>draw"
                f" {int(row['sample']) + 1}: {style.format_number(float(row['value']))} nats"
                for row in donor_rows
            ],
            showlegend=len(style_by_donor) > 1,
            cliponaxis=False,
        )
    defined_rows = [row for row in rows if not pd.isna(row["value"])]
    for row_position, part in enumerate(part_order):
        values = [float(row["value"]) for row in defined_rows if row["part"] == part]
        text = "n/a"
        if values:
            mean = float(np.mean(values))
            text = f"{style.format_number(mean)} (n = {len(values)})"
            add_mean_line(fig, mean, row_position)
        add_row_text(fig, row_position, text, is_missing=False)
    n_missing = len(rows) - len(defined_rows)
    subtitle = ["Line and number: mean over the n draws of the part."]
    subtitle += [f"n/a: {n_missing} draw{'s' if n_missing > 1 else ''}."] if n_missing else []
    name_rows(fig, [metric_label(part) for part in part_order], 20)
    axis_values = [0.0, *(float(row["value"]) for row in defined_rows)]
    padding = 0.03 * (max(axis_values) - min(axis_values)) or 1.0
    fig.update_xaxes(
        range=[min(axis_values) - padding, max(axis_values) + padding],
        showgrid=True,
        nticks=7,
        zeroline=True,
        zerolinecolor=style.SOFT_TEXT_COLOUR,
        showline=False,
    )
    return style.apply_style(
        fig,
        "Drops of the answer's log P in this item by donor (nats)",
        subtitle=subtitle,
        x="Drop (nats)",
        height=150 + 40 * len(part_order),
        margin={"r": 156},
    )


def metric_label(metric: object) -> str:
    """Return the display name of a metric or part; not escaped."""
    return METRIC_NAMES.get(str(metric), str(metric).replace("_", " "))


def _share_text(row: Row) -> str:
    """Return the share of a row as text."""
    return f"{100 * float(row['keep']):.0f} % of positions"


def _donor_name(row: Row) -> str:
    """Return the donor of a row."""
    return text_value(row, "donor") or "no donor"
