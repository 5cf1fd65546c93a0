"""Effects of steps: by position, by mode, ranked within one chain, and the share of redundant ones.

A point comes with its interval; a point without one is an open marker; what is undefined is written "n/a", never drawn at 0.
Beside the columns that a figure needs a table may have ``method``, ``confidence`` and ``threshold`` (said in the subtitle),
``reason`` (why a point or its interval is missing) and ``values`` (the raw values of a row, drawn behind it up to n = 20).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from cotlab.figures import style
from cotlab.figures.declare import figure

MODES = ("remove", "truncate", "corrupt", "paraphrase", "filler")
METRICS = ("answer_change", "accuracy_delta", "token_delta", "kl_divergence", "total_variation")
"""Scores in [0, 1] that can serve as a CCS. Modes and metrics keep their colours in every figure."""
CEILING = "(n − 1)/n: a faithful chain whose last step restates the result"
RAW_ROWS = 20

_UNITS = {"kl_divergence": "nats, clamped to 1", "kl_nats": "nats", "topk_rest": "probability"}
_TICK_ROOM = 560  # px left for tick labels in a figure 700 px wide
_Row = Mapping[str, Any]


class _Mark(NamedTuple):
    """A row with its place on the screen; ``point`` is None where the row is undefined."""

    series: str
    x: float
    at: str
    row: _Row
    point: float | None
    lo: float | None
    hi: float | None

    @property
    def bounded(self) -> bool:
        return self.point is not None and self.lo is not None and self.hi is not None


@figure(
    "ccs_by_position", columns=("metric", "mode", "step", "point", "lo", "hi", "n", "n_undefined"),
    caption="Mean causal contribution of the step at each position, over the items whose chain has a defined score there. "
    "Later positions rest on fewer and longer chains, so a trend may be one of chain length. An effect shows that the answer "
    "depends on the step; no effect does not show that the chain is unfaithful.",
    empty="no step of this run has a score for this metric and mode.",
)  # fmt: skip
def ccs_by_position(table: pd.DataFrame) -> Any:
    """Mean CCS by step position, a colour and symbol for each mode."""
    rows = _records(table)
    metrics = _ordered(rows, "metric", METRICS)
    steps = sorted({int(row["step"]) for row in rows})

    def named(row: _Row) -> str:
        return f"{row['mode']}, {_words(row['metric'])}" if len(metrics) > 1 else str(row["mode"])

    marks = _place(rows, named, MODES, lambda row: (int(row["step"]) + 1, f"position {int(row['step']) + 1}"))
    fig = go.Figure()
    _draw(fig, marks, MODES, joined=True)
    room = max(1, -(-len(steps) * (6 * max(len(_n_text(rows, "step", step)) for step in steps) + 8) // _TICK_ROOM))
    fig.update_xaxes(
        tickvals=[step + 1 for step in steps[::room]], range=[steps[0] + 0.4, steps[-1] + 1.6],
        ticktext=[f"{step + 1}<br>{_n_text(rows, 'step', step)}" for step in steps[::room]],
    )  # fmt: skip
    what = "CCS" if set(metrics) <= set(METRICS) else "Effect"
    style.apply_style(
        fig, style.escape(f"{what} by step position: mean {' and '.join(map(_words, metrics))} ({_unit(metrics)})"),
        subtitle=_small_print(marks), x="Step position (below: number of items)", y=f"Mean {what}",
    )  # fmt: skip
    return _bound(fig, metrics)


@figure(
    "modes_by_metric", columns=("metric", "mode", "point", "lo", "hi", "n"),
    caption="Mean effect of each kind of intervention, as each metric measures it. The metrics are different quantities: "
    "compare modes within a metric, not metrics with each other.",
    empty="no mode of this run has an estimate.",
)  # fmt: skip
def modes_by_metric(table: pd.DataFrame) -> Any:
    """Effects with modes on x, a colour and symbol for each metric."""
    rows = _records(table)
    metrics, modes = _ordered(rows, "metric", METRICS), _ordered(rows, "mode", MODES)
    known = tuple(map(_words, METRICS))
    marks = _place(rows, lambda row: _words(row["metric"]), known, lambda row: (modes.index(row["mode"]), str(row["mode"])))
    fig = go.Figure()
    _draw(fig, marks, known)
    title = f"Mean effect of a step by mode and metric ({_unit(metrics)})"
    style.apply_style(fig, style.escape(title), subtitle=_small_print(marks), x="Mode", y="Mean effect")
    _name_modes(fig, modes, rows)
    return _bound(fig, metrics)


@figure(
    "rrr_by_mode", columns=("mode", "point", "lo", "hi", "n", "ceiling"),
    caption="Reasoning redundancy ratio: the share of steps whose CCS is below the threshold. Under removal a faithful chain "
    "whose last step restates the result reaches (n − 1)/n, so a high ratio alone does not show decorative reasoning.",
    empty="no mode of this run has an RRR.",
)  # fmt: skip
def rrr_by_mode(table: pd.DataFrame) -> Any:
    """RRR by mode, with the ceiling of the rows that have one."""
    rows = _records(table)
    modes = _ordered(rows, "mode", MODES)
    marks = _place(rows, lambda row: str(row["mode"]), MODES, lambda row: (modes.index(row["mode"]), str(row["mode"])), gap=0)
    fig = go.Figure()
    ceilings = [(mark.x, found) for mark in marks if (found := _real(mark.row["ceiling"])) is not None]
    if ceilings:
        fig.add_scatter(
            x=[x for x, _ in ceilings], y=[found for _, found in ceilings], mode="markers+text", name=CEILING,
            text=[style.number(found) for _, found in ceilings], textposition="top center",
            textfont={"size": style.TEXT_SIZE - 1},
            marker={"symbol": "line-ew", "size": 32, "line": {"width": 2, "color": style.INK}}, cliponaxis=False,
            hoverinfo="text", hovertext=[f"(n − 1)/n = {style.number(found)}" for _, found in ceilings], showlegend=True,
        )  # fmt: skip
    _draw(fig, marks, MODES, legend=False)
    for mark in marks:
        if mark.point is not None:
            fig.add_annotation(
                x=mark.x, y=mark.point, text=style.number(mark.point), xshift=26, xanchor="left",
                font={"size": style.TEXT_SIZE - 1, "color": style.INK},
            )  # fmt: skip
    limit = _only(rows, "threshold")
    below = "below the threshold" if limit is None else f"below {limit:g}"
    title = f"RRR by mode: share of steps with a CCS {below} (0 to 1)"
    style.apply_style(fig, title, subtitle=_small_print(marks), x="Mode", y="RRR")
    _name_modes(fig, modes, rows)
    return _bound(fig, METRICS[:1])


@figure(
    "ccs_ranking", columns=("step", "text", "point", "lo", "hi", "draws", "reason"),
    caption="The steps of one chain by their causal contribution to its answer, the largest first. With few draws a CCS takes "
    "few values; ties stand in the order of the chain.",
    empty="this chain has no step with a score.",
)  # fmt: skip
def ccs_ranking(table: pd.DataFrame) -> Any:
    """Steps of one item from the highest CCS to the lowest, the undefined ones last."""
    marks = [_mark(row, "CCS", 0, f"Step {int(row['step']) + 1}") for row in _records(table)]
    marks.sort(key=lambda mark: (mark.point is None, -(mark.point or 0), int(mark.row["step"])))
    marks = [mark._replace(x=i) for i, mark in enumerate(marks)]
    defined = [mark for mark in marks if mark.point is not None]
    fig = go.Figure()
    fig.add_scatter(
        x=[at for mark in defined for at in (0, mark.point, None)], y=[at for mark in defined for at in (mark.x, mark.x, None)],
        mode="lines", line={"color": style.GRID, "width": 5}, hoverinfo="skip", showlegend=False,
    )  # fmt: skip
    _draw(fig, marks, ("CCS",), legend=False, upright=False)
    for mark in marks:
        text = _right_of_step(mark)
        fig.add_annotation(
            y=mark.x, x=0 if mark.point is None else 1, xref="paper", xshift=12 if mark.point is None else 16, xanchor="left",
            align="left", text=text, hovertext=_hover(mark, "draws"), bgcolor=style.PAPER,
            font={"size": style.TEXT_SIZE - 1, "color": style.SOFT_INK if mark.point is None else style.INK},
        )  # fmt: skip
    small = [f"n = {len(defined)} of {len(marks)} steps with a CCS. {_interval_words(defined, 'draws')}"]
    limit = _only([mark.row for mark in marks], "threshold")
    if limit is not None:
        small.append(f"Dotted line: threshold {limit:g}; a step below it counts as redundant.")
        fig.add_vline(x=limit, line={"color": style.VERMILLION, "width": 1.5, "dash": "dot"}, layer="below")
    style.apply_style(fig, "Steps of this chain by CCS (0 to 1)", subtitle=small, x="CCS", height=140 + 42 * len(marks))
    fig.update_yaxes(
        tickvals=[mark.x for mark in marks], range=[len(marks) - 0.4, -0.6], ticks="", showgrid=False,
        ticktext=[style.in_lines(_step_label(mark), 36) for mark in marks],
    )  # fmt: skip
    fig.update_xaxes(range=[-0.03, 1.03], tickvals=[0, 0.25, 0.5, 0.75, 1], showgrid=True)
    return fig.update_layout(margin={"r": 156})


def _step_label(mark: _Mark) -> str:
    """"Step 3: its words", without saying the number twice where the step's own text begins with it."""
    text = style.shorten(mark.row["text"])
    return text if text.lower().startswith(mark.at.lower()) else f"{mark.at}: {text}"


def _records(table: pd.DataFrame) -> list[_Row]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _real(value: Any) -> float | None:
    return None if value is None or pd.isna(value) else float(value)


def _only(rows: Sequence[_Row], column: str) -> float | None:
    """The one number that a column holds, or None."""
    found = {_real(row.get(column)) for row in rows}
    return found.pop() if len(found) == 1 else None


def _said(row: _Row, column: str) -> str:
    value = row.get(column)
    return value if isinstance(value, str) else ""


def _count(row: _Row, column: str) -> int:
    return int(_real(row.get(column)) or 0)


def _words(metric: object) -> str:
    return str(metric).replace("_", " ").replace("kl ", "KL ")


def _unit(metrics: Sequence[str]) -> str:
    units = {_UNITS.get(metric, "0 to 1" if metric in METRICS else "unit of the metric") for metric in metrics}
    if len(units) == 1:
        return units.pop()
    rest = [f"{_words(metric)}: {_UNITS[metric]}" for metric in metrics if metric in _UNITS]
    return "; ".join(["0 to 1", *rest])


def _ordered(rows: Sequence[_Row], column: str, known: Sequence[str]) -> list[str]:
    found = list(dict.fromkeys(str(row[column]) for row in rows))
    return [name for name in known if name in found] + [name for name in found if name not in known]


def _mark(row: _Row, series: str, x: float, at: str) -> _Mark:
    return _Mark(series, x, at, row, *(_real(row[name]) for name in ("point", "lo", "hi")))


def _place(
    rows: Sequence[_Row], named: Callable[[_Row], str], known: Sequence[str], at: Callable[[_Row], tuple[int, str]],
    gap: float | None = None,
) -> list[_Mark]:  # fmt: skip
    """Marks in the order of their series, those of one position side by side so that their bars stay apart."""
    order = list(style.codes(map(named, rows), known))
    step = min(0.14, 0.75 / len(order)) if gap is None else gap
    marks = []
    for row in rows:
        series, (x, words) = named(row), at(row)
        marks.append(_mark(row, series, x + (order.index(series) - (len(order) - 1) / 2) * step, words))
    return sorted(marks, key=lambda mark: (order.index(mark.series), mark.x))


def _draw(
    fig: Any, marks: Sequence[_Mark], known: Sequence[str], *, joined: bool = False, legend: bool = True, upright: bool = True
) -> None:
    """Raw values, a joining line, points with and without intervals, and "n/a" where there is no point, a series at a time."""
    found = style.codes((mark.series for mark in marks), known)
    unit = "items" if upright else "draws"

    def add(chosen: Sequence[_Mark], values: Iterable[float | None], **more: Any) -> None:
        across, along = [mark.x for mark in chosen], list(values)
        fig.add_scatter(x=across if upright else along, y=along if upright else across, cliponaxis=False, **more)

    for name, (colour, symbol) in found.items():
        group = style.escape(name)
        own = [mark for mark in marks if mark.series == name]
        raw = [(mark._replace(x=mark.x + _jitter(i)), v) for mark in own for i, v in enumerate(_raw_values(mark.row, unit))]
        if raw:
            add([mark for mark, _ in raw], [value for _, value in raw], mode="markers", hoverinfo="skip", showlegend=False,
                marker={"color": style.faded(colour, 0.3), "size": 5}, legendgroup=group)  # fmt: skip
        if joined:
            add(own, [mark.point for mark in own], mode="lines", line={"color": style.faded(colour, 0.45), "width": 1.2},
                hoverinfo="skip", showlegend=False, legendgroup=group)  # fmt: skip
        key = legend and len(found) > 1
        for bounded in (True, False):
            chosen = [mark for mark in own if mark.point is not None and mark.bounded is bounded]
            if not chosen and (bounded or not key):
                continue
            bars = {"error_y" if upright else "error_x": _bars(chosen, colour)} if bounded else {}
            add(chosen, [mark.point for mark in chosen], mode="markers", name=style.escape(style.shorten(name, 40)),
                legendgroup=group, showlegend=key, hoverinfo="text", hovertext=[_hover(mark, unit) for mark in chosen],
                marker={"color": colour, "size": 9, "symbol": symbol if bounded else f"{symbol}-open",
                        "line": {"width": 0 if bounded else 2, "color": colour}}, **bars)  # fmt: skip
            key = False
        for mark in own if upright else ():
            if mark.point is None:
                fig.add_annotation(
                    x=mark.x, y=0, yref="paper", yanchor="bottom", text="n/a", textangle=-90, bgcolor=style.PAPER,
                    hovertext=_hover(mark),
                )  # fmt: skip


def _bars(marks: Sequence[_Mark], colour: str) -> dict[str, Any]:
    """Asymmetric error bars that end at the table's lo and hi."""
    spans = [(mark.point, mark.lo, mark.hi) for mark in marks]
    return {
        "type": "data", "symmetric": False, "color": colour, "thickness": 1.5, "width": 4,
        "array": [hi - point for point, _, hi in spans if point is not None and hi is not None],
        "arrayminus": [point - lo for point, lo, _ in spans if point is not None and lo is not None],
    }  # fmt: skip


def _raw_values(row: _Row, unit: str) -> list[float]:
    values = row.get("values")
    few = _count(row, "n" if unit == "items" else "draws") <= RAW_ROWS
    return [float(v) for v in values if not pd.isna(v)] if few and isinstance(values, (list, tuple, np.ndarray)) else []


def _jitter(i: int) -> float:
    """A fixed spread for the i-th raw value, in [−0.05, 0.05): the golden ratio's multiples lie evenly."""
    return ((i * 0.618034) % 1 - 0.5) * 0.1


def _hover(mark: _Mark, unit: str = "items") -> str:
    named = mark.at if mark.series in (mark.at, "CCS") else f"{mark.series}, {mark.at}"
    lines = [f"<b>{style.escape(named)}</b>", style.interval_text(mark.point, mark.lo, mark.hi)]
    if unit == "draws":
        lines.append(f"draws: {_count(mark.row, 'draws')}")
    else:
        lines.append(f"n = {_count(mark.row, 'n')} items, {_count(mark.row, 'n_undefined')} undefined")
    why = _said(mark.row, "reason") or ("" if mark.bounded else _default_reason(mark, unit))
    lines += [style.in_lines(text, 60, most=4) for text in (why, _said(mark.row, "method")) if text]
    if unit == "draws":
        lines.append(style.in_lines(mark.row["text"], 60, most=6))
    return "<br>".join(lines)


def _default_reason(mark: _Mark, unit: str) -> str:
    if mark.point is None:
        return "no score is defined here"
    n = _count(mark.row, "n" if unit == "items" else "draws")
    return f"one {unit[:-1]} has no spread, so there is no interval" if n == 1 else "the table gives no interval"


def _right_of_step(mark: _Mark) -> str:
    if mark.point is None:
        return style.in_lines(f"n/a: {_said(mark.row, 'reason') or _default_reason(mark, 'draws')}", 60)
    text = style.interval_text(mark.point, mark.lo, mark.hi)
    return text if mark.bounded else f"{style.number(mark.point)} (n = {_count(mark.row, 'draws')})"


def _n_text(rows: Sequence[_Row], column: str, value: Any) -> str:
    """How many items the points of one place rest on: "48", or "45–48" where series differ."""
    counts = [_count(row, "n") for row in rows if row[column] == value]
    return f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)}–{max(counts)}"


def _name_modes(fig: Any, modes: Sequence[str], rows: Sequence[_Row]) -> None:
    fig.update_xaxes(
        tickvals=list(range(len(modes))), range=[-0.55, len(modes) - 0.45], tickangle=0,
        ticktext=[f"{style.in_lines(mode, 16)}<br>n = {_n_text(rows, 'mode', mode)}" for mode in modes],
    )  # fmt: skip


def _bound(fig: Any, metrics: Sequence[str]) -> Any:
    if set(metrics) <= set(METRICS):
        return fig.update_yaxes(range=[-0.05, 1.05], tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1])
    return fig.update_yaxes(rangemode="tozero")


def _interval_words(marks: Sequence[_Mark], unit: str) -> str:
    """What the bars are, by which methods, and what an open marker means."""
    bounded = [mark.row for mark in marks if mark.bounded]
    parts = []
    if bounded:
        levels = sorted({_real(row.get("confidence")) or 0.95 for row in bounded})
        methods = list(dict.fromkeys(text for row in bounded if (text := _said(row, "method"))))
        level = " and ".join(f"{100 * level:g} %" for level in levels)
        parts.append(f"Bars: {level} intervals over {unit}{', ' if methods else ''}{'; '.join(methods[:3])}.")
    if any(mark.point is not None and not mark.bounded for mark in marks):
        parts.append(f"Open marker: no interval, too few {unit}.")
    return style.escape(" ".join(parts))


def _small_print(marks: Sequence[_Mark]) -> list[str]:
    """The subtitle: what the bars are, and where and why points are missing."""
    lines = [_interval_words(marks, "items")]
    gaps: dict[str, dict[str, None]] = {}
    for mark in marks:
        if mark.point is None:
            place = mark.at if mark.series == mark.at else f"{style.shorten(mark.series, 40)} at {mark.at}"
            gaps.setdefault(_said(mark.row, "reason") or _default_reason(mark, "items"), {})[style.shorten(place)] = None
    lines += [style.escape(style.shorten(f"n/a ({why}): {', '.join(places)}", 200)) for why, places in gaps.items()]
    return [line for line in lines if line]
