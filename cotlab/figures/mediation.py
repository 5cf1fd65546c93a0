"""Mediation: CMI by the share of the chain patched, effects by layer, the indices, and the raw drops of one item.

A point comes with its interval; a point without one is an open marker; what is undefined is written "n/a", never drawn at 0.
Beside the columns that a figure needs a table may have ``n_undefined``, ``method`` and ``confidence`` (said in the subtitle),
``reason`` (why a point is missing) and ``values`` (the raw values of a row, drawn faintly up to n = 20).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import figure

SOURCES = ("filler", "interchange", "right", "mean", "literal")
PARTS = ("cot", "control", "kept", "kept_control", "shuffled", "placebo", "self_shuffle", "expanded",
         "expanded_control", "shrunk", "shrunk_control")  # fmt: skip
DROPS = ("drop_cot", "drop_control")
NAMES = {
    "cmi": "CMI", "drop_cot": "drop, chain patched", "drop_control": "drop, control patched",
    "cmi_over_spans": "CMI, mean over spans",
    "placebo_cmi": "placebo CMI", "shuffled_cmi": "shuffled CMI", "no_cot_drop": "no-CoT drop",
    "no_cot_effect": "no CoT effect",
}  # fmt: skip
"""Metrics as figures name them, where it is more than the underscores."""
RAW_ROWS = 20
Row = Mapping[str, Any]


class _Dot(NamedTuple):
    """A row with its place on the screen and the name of that place."""

    place: float
    at: str
    row: Row

    def real(self, column: str) -> float | None:
        value = self.row.get(column)
        return None if value is None or pd.isna(value) else float(value)

    @property
    def bounded(self) -> bool:
        return all(self.real(column) is not None for column in ("point", "lo", "hi"))


@figure(
    "cmi_density", columns=("source", "keep", "point", "lo", "hi", "n"),
    caption="CMI over all layers when only a random share of the chain's positions is patched, with an equal control. A "
    "value that holds as positions are left out shows that the effect is spread over the chain; a steep fall shows that few "
    "positions carry it, or that the rest of the chain restates what was patched.",
    empty="no item has a CMI over all layers.",
)  # fmt: skip
def cmi_density(table: pd.DataFrame) -> Any:
    """Mean CMI by the share of positions patched, 1.0 first, a series for each source."""
    rows = records(table)
    shares = sorted({float(row["keep"]) for row in rows}, reverse=True)
    found = style.codes((str(row["source"]) for row in rows), SOURCES)
    gap = min(0.12, 0.6 / len(found))
    fig, dots = go.Figure(), []
    for i, (source, code) in enumerate(found.items()):
        own = [
            _Dot(shares.index(float(row["keep"])) + (i - (len(found) - 1) / 2) * gap, _share(row), row)
            for row in rows
            if row["source"] == source
        ]
        own.sort(key=lambda dot: dot.place)
        _draw(fig, own, source, code, legend=len(found) > 1, joined=True)
        dots += own
    ticks = [f"{share:.1f}<br>n = {counts(row for row in rows if float(row['keep']) == share)}" for share in shares]
    fig.update_xaxes(tickvals=list(range(len(shares))), ticktext=ticks, range=[-0.5, len(shares) - 0.5], tickangle=0)
    fig.update_yaxes(range=[-0.05, 1.05], tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1])
    return style.apply_style(
        fig, "CMI by share of the chain patched (0 to 1, all layers)", subtitle=fine_print(dots),
        x="Share of chain positions patched (below: number of items)", y="Mean CMI",
    )  # fmt: skip


@figure(
    "layer_profile", columns=("metric", "span", "point", "lo", "hi", "n"),
    caption="How far log P of the answer falls when the states at the input of one layer alone are replaced: at the chain's "
    "positions, and at as many control positions. Later layers carry on what earlier ones left intact, so single layers do not "
    "add up to the effect of all layers.",
    empty="no single layer was patched.",
)  # fmt: skip
def layer_profile(table: pd.DataFrame) -> Any:
    """Mean drops in nats by layer, chain and control side by side; spans of several layers are left out."""
    rows = [row for row in records(table) if str(row["span"]).isdecimal() and row["metric"] in DROPS]
    fig, dots = go.Figure(), []
    layers = sorted({int(row["span"]) for row in rows})
    for i, metric in enumerate(DROPS):
        own = [
            _Dot(int(row["span"]) + (i - 0.5) * 0.16, f"layer {row['span']}", row) for row in rows if row["metric"] == metric
        ]
        own.sort(key=lambda dot: dot.place)
        code = style.Code(style.PALETTE[i], style.SYMBOLS[i])
        _draw(fig, own, NAMES[metric], code, legend=True, joined=True)
        dots += own
    if layers:
        room = max(1, -(-len(layers) // 14))
        fig.update_xaxes(
            tickvals=layers[::room], range=[layers[0] - 0.6, layers[-1] + 0.6], tickangle=0,
            ticktext=[f"{at}<br>{counts(row for row in rows if int(row['span']) == at)}" for at in layers[::room]],
        )  # fmt: skip
    fig.add_hline(y=0, line={"color": style.SOFT_INK, "width": 1}, layer="below")
    return style.apply_style(
        fig, "Drop of the answer's log P by layer (mean, nats)", subtitle=fine_print(dots),
        x="Layer, the first is 0 (below: number of items)", y="Mean drop (nats)",
    )  # fmt: skip


@figure(
    "mediation_indices", columns=("metric", "point", "lo", "hi", "n", "n_undefined", "reason"),
    caption="The mean of each index over the items where it is defined. The indices are different quantities, and some of them "
    "punish a faithful model too: read the card of each before comparing.",
    empty="no index has been estimated.",
)  # fmt: skip
def mediation_indices(table: pd.DataFrame) -> Any:
    """A row for each index: point and interval, with both and n written at the right; n/a with its reason."""
    rows = records(table)
    dots = [_Dot(i, words(row["metric"]), row) for i, row in enumerate(rows)]
    fig = go.Figure()
    _draw(fig, dots, "index", style.Code(style.ACCENT, "circle"), upright=False)
    for dot in dots:
        known = dot.real("point") is not None
        numbers = style.interval_text(dot.real("point"), dot.real("lo"), dot.real("hi"))
        told = f"{numbers}<br>{_of(dot.row)}" if known else style.in_lines(f"n/a: {_why(dot)}", 62)
        fig.add_annotation(
            y=dot.place, x=1 if known else 0, xref="paper", xshift=14, xanchor="left", align="left", text=told,
            hovertext=_hover(dot, dot.at), bgcolor=style.PAPER,
            font={"size": style.TEXT_SIZE - 1, "color": style.INK if known else style.SOFT_INK},
        )  # fmt: skip
    ends = [v for dot in dots for c in ("point", "lo", "hi") if (v := dot.real(c)) is not None]
    low, high = min([0.0, *ends]), max([1.0, *ends])
    pad = 0.04 * (high - low)
    fig.update_xaxes(range=[low - pad, high + pad], showgrid=True, nticks=6)
    fig.update_yaxes(
        tickvals=[dot.place for dot in dots], ticktext=[style.in_lines(dot.at, 24) for dot in dots], ticks="", showgrid=False,
        range=[len(dots) - 0.4, -0.6],
    )  # fmt: skip
    style.apply_style(
        fig, "Indices of mediation (mean over items, no unit)", subtitle=fine_print(dots, gaps=False), x="Index",
        height=140 + 40 * len(dots),
    )  # fmt: skip
    return fig.update_layout(margin={"r": 204})


@figure(
    "drops_by_donor", columns=("part", "donor", "sample", "value"),
    caption="Every patched forward of one item: how far log P of the answer fell, by what was patched and whose states were "
    "put there. The estimators use the mean over all draws; draws of one donor are not independent, so it has no interval.",
    empty="this item has no patched forward.",
)  # fmt: skip
def drops_by_donor(table: pd.DataFrame) -> Any:
    """Raw drops in nats by part, a colour and symbol for each donor, with the mean of each part."""
    rows = records(table)
    found = list(dict.fromkeys(str(row["part"]) for row in rows))
    order = [p for p in PARTS for p in sorted((f for f in found if f.split(" ")[0] == p), reverse=True)]
    order += [part for part in found if part not in order]
    fig = go.Figure()
    donors = style.codes(sorted({_donor(row) for row in rows}))
    of_part = {part: [d for d in donors if any(_donor(row) == d for row in rows if row["part"] == part)] for part in order}

    def place(row: Row) -> float:
        beside = of_part[str(row["part"])]
        return order.index(str(row["part"])) + ((beside.index(_donor(row)) + 0.5) / len(beside) - 0.5) * 0.6

    for donor, code in donors.items():
        own = [row for row in rows if _donor(row) == donor and not pd.isna(row["value"])]
        fig.add_scatter(
            x=[float(row["value"]) for row in own], y=[place(row) for row in own],
            mode="markers", name=style.escape(style.shorten(donor, 28)),
            marker={"color": style.faded(code.colour, 0.7), "symbol": code.symbol, "size": 7}, hoverinfo="text",
            hovertext=[
                f"{style.escape(words(row['part']))}, {style.escape(donor)}<br>draw {int(row['sample']) + 1}: "
                f"{style.number(float(row['value']))} nats"
                for row in own
            ], showlegend=len(donors) > 1, cliponaxis=False,
        )  # fmt: skip
    for at, part in enumerate(order):
        values = [float(row["value"]) for row in rows if row["part"] == part and not pd.isna(row["value"])]
        text = f"{style.number(float(np.mean(values)))} (n = {len(values)})" if values else "n/a"
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
            fig.add_shape(type="line", x0=mean, x1=mean, y0=at - 0.4, y1=at + 0.4, line={"color": style.INK, "width": 2})
    missing = sum(bool(pd.isna(row["value"])) for row in rows)
    small = ["Line and number: mean over the n draws of the part, without interval."]
    small += [f"n/a: {missing} draw{'s' if missing > 1 else ''}."] if missing else []
    style.apply_style(
        fig, "Drops of the answer's log P in this item by donor (nats)", subtitle=small, x="Drop (nats)",
        height=150 + 40 * len(order),
    )  # fmt: skip
    fig.update_yaxes(
        tickvals=list(range(len(order))), ticktext=[style.in_lines(words(part), 20) for part in order], ticks="",
        range=[len(order) - 0.4, -0.6], showgrid=False,
    )  # fmt: skip
    fig.update_xaxes(showgrid=True, nticks=7, rangemode="tozero", zeroline=True, zerolinecolor=style.SOFT_INK)
    return fig.update_layout(margin={"r": 156})


def records(table: pd.DataFrame) -> list[Row]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def words(metric: object) -> str:
    """A metric or part as a figure names it; not escaped."""
    return NAMES.get(str(metric), str(metric).replace("_", " "))


def counts(rows: Any) -> str:
    """How many items rows rest on: "48", or "45–48" where they differ."""
    found = [_count(row, "n") for row in rows]
    return f"{min(found)}" if min(found) == max(found) else f"{min(found)}–{max(found)}"


def fine_print(dots: Sequence[_Dot], *, gaps: bool = True) -> list[str]:
    """The subtitle: what the bars are, what an open marker means, and where and why points are missing."""
    bounded = [dot for dot in dots if dot.bounded]
    parts = []
    if bounded:
        level = " and ".join(f"{100 * v:g} %" for v in sorted({dot.real("confidence") or 0.95 for dot in bounded}))
        methods = list(dict.fromkeys(text for dot in bounded if (text := said(dot.row, "method"))))
        parts.append(f"Bars: {level} intervals over items{', ' if methods else ''}{'; '.join(methods[:3])}.")
    if any(dot.real("point") is not None and not dot.bounded for dot in dots):
        parts.append("Open marker: no interval, too few items.")
    if any(_raw(dot.row) for dot in dots):
        parts.append("Faint: single items.")
    lines = [style.escape(" ".join(parts))] if parts else []
    why: dict[str, dict[str, None]] = {}
    for dot in dots if gaps else ():
        if dot.real("point") is None:
            why.setdefault(_why(dot), {})[dot.at] = None
    return lines + [style.escape(style.shorten(f"n/a ({text}): {', '.join(at)}", 200)) for text, at in why.items()]


def said(row: Row, column: str) -> str:
    value = row.get(column)
    return value if isinstance(value, str) else ""


def jitter(i: int) -> float:
    """A fixed spread for the i-th raw value, in [−0.05, 0.05): the golden ratio's multiples lie evenly."""
    return ((i * 0.618034) % 1 - 0.5) * 0.1


def _draw(
    fig: Any, dots: Sequence[_Dot], name: str, code: style.Code, *, legend: bool = False, joined: bool = False,
    upright: bool = True,
) -> None:  # fmt: skip
    """One series: raw values, a joining line, points with and without intervals, and "n/a" where there is no point."""
    group = style.escape(name)

    def add(places: Sequence[float], values: Sequence[float | None], **more: Any) -> None:
        across, along = (places, values) if upright else (values, places)
        fig.add_scatter(x=list(across), y=list(along), legendgroup=group, cliponaxis=False, **more)

    raw = [(dot.place + jitter(i), value) for dot in dots for i, value in enumerate(_raw(dot.row))]
    if raw:
        add([at for at, _ in raw], [value for _, value in raw], mode="markers", hoverinfo="skip", showlegend=False,
            marker={"color": style.faded(code.colour, 0.3), "size": 5})  # fmt: skip
    if joined:
        add([dot.place for dot in dots], [dot.real("point") for dot in dots], mode="lines", hoverinfo="skip", showlegend=False,
            line={"color": style.faded(code.colour, 0.45), "width": 1.2})  # fmt: skip
    key = legend
    for bounded in (True, False):
        chosen = [dot for dot in dots if dot.real("point") is not None and dot.bounded is bounded]
        if not chosen and (bounded or not key):
            continue
        bars = {"error_y" if upright else "error_x": _bars(chosen, code.colour)} if bounded else {}
        add([dot.place for dot in chosen], [dot.real("point") for dot in chosen], mode="markers", name=group, showlegend=key,
            hoverinfo="text", hovertext=[_hover(dot, name) for dot in chosen],
            marker={"color": code.colour, "size": 9, "symbol": code.symbol if bounded else f"{code.symbol}-open",
                    "line": {"width": 0 if bounded else 2, "color": code.colour}}, **bars)  # fmt: skip
        key = False
    for dot in dots if upright else ():
        if dot.real("point") is None:
            fig.add_annotation(x=dot.place, y=0, yref="paper", yanchor="bottom", text="n/a", textangle=-90,
                               bgcolor=style.PAPER, hovertext=_hover(dot, name))  # fmt: skip


def _bars(dots: Sequence[_Dot], colour: str) -> dict[str, Any]:
    """Asymmetric error bars that end at the table's lo and hi."""
    spans = [(float(dot.row["point"]), float(dot.row["lo"]), float(dot.row["hi"])) for dot in dots]
    return {
        "type": "data", "symmetric": False, "color": colour, "thickness": 1.5, "width": 4,
        "array": [hi - point for point, _, hi in spans], "arrayminus": [point - lo for point, lo, _ in spans],
    }  # fmt: skip


def _hover(dot: _Dot, name: str) -> str:
    at = dot.at if name in (dot.at, "index") else f"{name}, {dot.at}"
    lines = [f"<b>{style.escape(at)}</b>", style.interval_text(dot.real("point"), dot.real("lo"), dot.real("hi")), _of(dot.row)]
    told = (said(dot.row, "reason") or ("" if dot.bounded else _why(dot)), said(dot.row, "method"))
    return "<br>".join([*lines, *(style.in_lines(text, 60, most=4) for text in told if text)])


def _why(dot: _Dot) -> str:
    if dot.real("point") is None:
        return said(dot.row, "reason") or "no item has a defined value"
    return "too few items for an interval"


def _of(row: Row) -> str:
    """ "n = 98 items, 2 undefined"."""
    return f"n = {_count(row, 'n')} items, {_count(row, 'n_undefined')} undefined"


def _count(row: Row, column: str) -> int:
    value = row.get(column)
    return 0 if value is None or pd.isna(value) else int(value)


def _raw(row: Row) -> list[float]:
    values = row.get("values")
    few = _count(row, "n") <= RAW_ROWS
    return [float(v) for v in values if not pd.isna(v)] if few and isinstance(values, (list, tuple, np.ndarray)) else []


def _share(row: Row) -> str:
    return f"{100 * float(row['keep']):.0f} % of positions"


def _donor(row: Row) -> str:
    return said(row, "donor") or "no donor"
