"""Mediation: CMI by share of patched positions and by span of layers, indices, and raw drops.

A point without an interval is an open marker; an undefined value is written "n/a" outside the plot,
never drawn at 0. Optional columns of tables: ``n_undefined``, ``method`` and ``confidence`` (in the
subtitle), ``reason`` (of a missing point) and ``values`` (raw values, drawn up to n = 20).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from cotlab.core.types import MEDIATION_SOURCES
from cotlab.figures import style
from cotlab.figures.cells import (
    MAX_HORIZONTAL_COLUMNS,
    MAX_LABELLED_COLUMNS,
    NO_VALUE_SIGN,
    Cell,
    cell_hover_text,
    draw_cells,
    format_cell_number,
)
from cotlab.figures.declare import (
    Row,
    count_range,
    figure,
    in_order,
    int_value,
    table_records,
    text_value,
)
from cotlab.figures.layout import apply_style
from cotlab.figures.marks import (
    IntervalUnit,
    Mark,
    draw_reference_line,
    draw_series,
    missing_notes,
    subtitle_notes,
)
from cotlab.figures.rows import (
    add_mean_line,
    add_row_text,
    draw_estimate_rows,
    name_rows,
    set_axis_range,
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
SPAN_METRIC_ORDER = ("cmi", "share", "mass_lost")
SIGNED_METRIC = "share"
"""The metric in [−1, 1]; its cells have a scale of their own, with 0 in the middle."""
MIN_INTERVAL_N = 5
"""Fewest items or drops for which a density curve has an interval."""


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
    """Draw mean CMI by share of patched positions, a curve with a band for each source."""
    title = "Density curve (CMI): share of the chain patched (0 to 1, all layers)"
    return _draw_by_share(table, "items", title, y="Mean CMI")


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
    """Draw the mean drop in nats by share of patched positions, a curve for each source."""
    title = "Drop of the answer's log P by share of the chain patched (nats)"
    fig = _draw_by_share(table, "items", title, y="Mean drop (nats)", has_unit_range=False)
    draw_reference_line(fig, y=0, line_dash="solid")
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
    title = "Density curve (CMI) of this item (0 to 1, all layers)"
    return _draw_by_share(table, "draws", title, y="CMI", height=340)


def _draw_by_share(
    table: pd.DataFrame,
    unit: IntervalUnit,
    title: str,
    *,
    y: str,
    height: int = 380,
    has_unit_range: bool = True,
) -> Any:
    """Draw a curve with a band for each source over the shares of patched positions, rising."""
    rows = table_records(table)
    shares = sorted({float(row["keep"]) for row in rows})
    style_by_source = style.category_styles((str(row["source"]) for row in rows), MEDIATION_SOURCES)
    fig, marks = go.Figure(), []
    for i, (source, category_style) in enumerate(style_by_source.items()):
        x_offset = 0.008 * (i - (len(style_by_source) - 1) / 2)
        source_marks = [
            _without_early_interval(
                Mark(source, float(row["keep"]) + x_offset, _share_text(row), row, unit)
            )
            for row in rows
            if row["source"] == source
        ]
        source_marks.sort(key=lambda mark: mark.x)
        draw_series(
            fig,
            source_marks,
            category_style,
            in_legend=len(style_by_source) > 1,
            is_joined=True,
            has_band=True,
        )
        marks += source_marks
    fig.update_xaxes(
        tickvals=shares,
        ticktext=[
            f"{100 * share:.0f}%<br>n = {_counts_text(rows, share, unit)}" for share in shares
        ],
        range=[min(0.0, shares[0] - 0.08), 1.06],
        tickangle=0,
    )
    if has_unit_range:
        fig.update_yaxes(range=[-0.05, 1.05], tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1])
    unit_name = "items" if unit == "items" else "drops"
    x = f"Chain positions patched (below: number of {unit_name})"
    return apply_style(fig, title, subtitle=subtitle_notes(marks), x=x, y=y, height=height)


def _without_early_interval(mark: Mark) -> Mark:
    """Return a mark without its interval if it rests on too few items or drops."""
    if mark.point is None or mark.n >= MIN_INTERVAL_N:
        return mark
    reason = f"fewer than {MIN_INTERVAL_N} {mark.unit}"
    return mark._replace(row={**mark.row, "lo": None, "hi": None, "reason": reason})


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
        category_style = style.CategoryStyle(style.hue(style.PALETTE[i]), style.SYMBOLS[i])
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
    draw_reference_line(fig, y=0, line_dash="solid")
    return apply_style(
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
    """Draw a row for each index with its interval and n at the right."""
    rows = table_records(table)
    marks = [Mark("", i, metric_label(row["metric"]), row) for i, row in enumerate(rows)]
    return draw_estimate_rows(marks, "Indices of mediation (mean over items, no unit)", x="Index")


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
        add_row_text(fig, row_position, text)
    n_missing = len(rows) - len(defined_rows)
    subtitle = ["Line and number: mean over the n draws of the part."]
    subtitle += [f"n/a: {n_missing} draw{'s' if n_missing > 1 else ''}."] if n_missing else []
    name_rows(fig, [metric_label(part) for part in part_order], 20)
    set_axis_range(fig, [float(row["value"]) for row in defined_rows], (0, 0))
    draw_reference_line(fig, x=0, line_dash="solid")
    return apply_style(
        fig,
        "Drops of the answer's log P in this item by donor (nats)",
        subtitle=subtitle,
        x="Drop (nats)",
        height=110 + 40 * len(part_order),
    )


def metric_label(metric: object) -> str:
    """Return the display name of a metric or part; not escaped."""
    return METRIC_NAMES.get(str(metric), str(metric).replace("_", " "))


def _share_text(row: Row) -> str:
    """Return the share of a row as text."""
    return f"{100 * float(row['keep']):.0f}% of positions"


def _donor_name(row: Row) -> str:
    """Return the donor of a row."""
    return text_value(row, "donor") or "no donor"


@figure(
    "span_heatmap",
    columns=("source", "metric", "span", "point", "lo", "hi", "n"),
    caption=(
        "Mean over the items where the value of the span is defined; a span whose drops add up to"
        " less than 0.01 nat has no value. The columns are single layers, thirds of the depth, and"
        " all layers."
    ),
    empty_reason="no span has an estimate.",
)
def span_heatmap(table: pd.DataFrame) -> Any:
    """Draw cells in viridis, or from orange to blue for a signed metric."""
    rows = table_records(table)
    sources = in_order((row["source"] for row in rows), MEDIATION_SOURCES)
    metrics = in_order((row["metric"] for row in rows), SPAN_METRIC_ORDER)
    row_keys = [(source, metric) for source in sources for metric in metrics]
    spans = sorted(dict.fromkeys(str(row["span"]) for row in rows), key=span_sort_key)
    row_by_cell = {(str(row["source"]), str(row["metric"]), str(row["span"])): row for row in rows}
    is_upright, is_dense = len(spans) > MAX_HORIZONTAL_COLUMNS, len(spans) > MAX_LABELLED_COLUMNS
    separator = ", " if is_upright else "<br>"
    cells, reason_spans = [], []
    for i, (source, metric) in enumerate(row_keys):
        for j, span in enumerate(spans):
            row = row_by_cell.get((source, metric, span))
            mark = Mark("", j, "", row or {})
            text = "n/a"
            if row is not None:
                text = f"{format_cell_number(mark.point)}{separator}n = {mark.n}"
            if is_dense and mark.point is None:
                text = NO_VALUE_SIGN
            reason = "not requested"
            if row is not None:
                reason = text_value(row, "reason") or "no item has a defined value"
            if mark.point is None:
                reason_spans.append((reason, span_name(span)))
            get_colour = style.diverging_colour if metric == SIGNED_METRIC else style.viridis_colour
            heading = f"{metric_label(metric)}, source {source}, layers {span_name(span)}"
            lines = [mark.text, mark.count_text] if mark.point is not None else []
            hover_text = cell_hover_text(heading, lines, reason)
            cells.append(Cell(j, i, get_colour(mark.point), text, hover_text))
    scale_notes = ["Each cell: mean and number of items; intervals in the data."]
    scale_notes += ["Dark is 0, bright is 1."] if set(metrics) - {SIGNED_METRIC} else []
    range_text = "0 to 1"
    if SIGNED_METRIC in metrics:
        scale_notes.append("Share: blue above 0, orange below, pale at 0.")
        range_text = "−1 to 1" if len(metrics) == 1 else "0 to 1; share −1 to 1"
    subject = metric_label(metrics[0]) if len(metrics) == 1 else "Mediation"
    fig = apply_style(
        go.Figure(),
        style.escape(f"{subject} by span of layers ({range_text})"),
        subtitle=[" ".join(scale_notes), *missing_notes(reason_spans)],
        x="Layers whose input was patched, the first is 0",
        height=110 + (92 if is_upright else 46) * len(row_keys),
    )
    labels = [_row_label(row_key, len(sources), len(metrics)) for row_key in row_keys]
    return draw_cells(
        fig,
        cells,
        [span_name(span) for span in spans],
        labels,
        is_upright=is_upright,
        column_interval=1 + is_dense,
    )


def span_sort_key(span: str) -> tuple[int, int]:
    """Single layers first, then ranges, then all."""
    first_layer = span.split("-")[0]
    return (2, 0) if not first_layer.isdecimal() else (int("-" in span), int(first_layer))


def span_name(span: str) -> str:
    """Return the display name of a span: "all", "3" or "0–7"."""
    return span.replace("-", "–")


def _row_label(row_key: tuple[str, str], n_sources: int, n_metrics: int) -> str:
    """Return the name of a row: its source, its metric or both."""
    source, metric = row_key
    return (
        metric_label(metric)
        if n_sources == 1
        else source
        if n_metrics == 1
        else f"{source}, {metric_label(metric)}"
    )
