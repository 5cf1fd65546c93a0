"""The head of the page Compare: what differs between two runs, in a sentence and a figure."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from cotlab.analysis.compare_verdict import PairVerdict, judge_pair
from cotlab.analysis.tables.declare import FigureChoice
from cotlab.analysis.tables.several_runs import HEADLINE_FIGURE
from cotlab.analysis.verdict.measures import MEASURES
from cotlab.analysis.verdict.pair_differences import (
    HeadlineDifference,
    points_text,
)
from cotlab.analysis.verdict.wording import noun_count, percent_number
from cotlab.analysis.view import RunView
from cotlab.core.types import IN_PROCESS_PROVIDERS
from cotlab.stats.intervals import Interval
from cotlab.store.recorded_models import short_model_name
from cotlab.ui import cached, charts, components
from cotlab.ui.linked import show_linked
from cotlab.ui.text import escape_markdown, shorten
from cotlab.ui.verdict import measure_link

_MAX_CHOSEN_ID_CHARS = 16
"""Characters up to which an id is shown whole: ids with a time are longer."""


def run_names(base_row: RunView, other_row: RunView) -> tuple[str, str]:
    """Return how two runs are called: by their models, where these differ, else also by their ids.

    Of an id that cotlab made the end is enough where it tells the two apart.
    """
    rows = (base_row, other_row)
    names = [shorten(short_model_name(run.model), 40) for run in rows]
    if names[0] == names[1]:
        ids = [run.id for run in rows]
        is_made = all(len(run_id) > _MAX_CHOSEN_ID_CHARS for run_id in ids)
        ends = [run_id.rpartition("-")[2] for run_id in ids] if is_made else ids
        ends = ids if ends[0] == ends[1] else ends
        names = [f"{name} · {shorten(end, 40)}" for name, end in zip(names, ends, strict=True)]
    return names[0], names[1]


def pair_verdict(base_row: RunView, other_row: RunView) -> PairVerdict:
    """Return what differs between two stored runs."""
    names = run_names(base_row, other_row)
    keys = [(run.id, run.revision) for run in (base_row, other_row)]
    return _judge_cached(keys[0], keys[1], names, cached.validated_at())


@cached.cache_by_store(32, "Comparing", copies_results=False)
def _judge_cached(
    base: tuple[str, int], other: tuple[str, int], names: tuple[str, str], validated_at: int
) -> PairVerdict:
    return judge_pair(cached.store(), base[0], other[0], names)


def render_pair_verdict(
    result: PairVerdict,
    names: tuple[str, str],
    rows: tuple[RunView, RunView],
    unread: tuple[bool, bool],
) -> None:
    """Show the sentence on two runs, and each tested metric with its paired difference.

    ``unread`` says of the base and the other whether its answers do not come from its chains.
    """
    st.title(escape_markdown(result.headline))
    if result.detail:
        st.markdown(escape_markdown(result.detail))
    caption = _caption(result)
    if result.differences:
        columns = [
            {"title": rows[0].suite_name},
            *({"title": f"{name},", "unit": "%", "is_number": True} for name in names),
            {"title": f"{names[1]} − {names[0]},", "unit": "points", "is_number": True},
            {"title": "Finding"},
        ]
        cells = [_difference_cells(entry, result, unread) for entry in result.differences]
        content = {"title": "Tested metrics of both runs", "columns": columns, "rows": cells}
        show_linked("table", content, key="pair-head")
        choice = FigureChoice(runs=",".join(row.id for row in rows))
        charts.show(rows[0], HEADLINE_FIGURE, choice, note=escape_markdown(caption))
    elif caption:
        st.caption(escape_markdown(caption))


def _difference_cells(
    entry: HeadlineDifference, result: PairVerdict, unread: tuple[bool, bool]
) -> list[dict[str, str]]:
    difference = entry.difference
    text = "n/a" if difference.point is None else points_text(difference.point)
    small = f"n/a: {difference.reason}" if difference.point is None else "no interval"
    if difference.lo is not None and difference.hi is not None:
        small = f"[{points_text(difference.lo)}, {points_text(difference.hi)}]"
    note = f"n = {noun_count(entry.row.n, 'item')}; {entry.validation}"
    is_split = entry.measure == "change" and result.has_opposite_kinds
    return [
        {"text": entry.label, "below": note},
        _share_cell(entry.base),
        _share_cell(entry.other),
        {"text": text, "small": small},
        {"text": finding_text(entry, is_split=is_split, unread=unread)},
    ]


def finding_text(entry: HeadlineDifference, *, is_split: bool, unread: tuple[bool, bool]) -> str:
    """Return whether the other run is better; neither is in a mean of two kinds of items.

    Sound steps are no praise of the base or the other where its chain is not read (``unread``).
    """
    if is_split:
        return "a mean of two kinds of items, so neither is better"
    if entry.untestable_reason is not None:
        return "cannot be tested"
    if entry.is_worse is None:
        return "no difference beyond chance"
    if entry.measure == "sound" and unread[0 if entry.is_worse else 1]:
        return "no evidence for a chain that is not read"
    return "worse" if entry.is_worse else "better"


def _share_cell(share: Interval) -> dict[str, str]:
    if share.point is None:
        return {"text": "n/a", "small": ""}
    small = "no interval"
    if share.lo is not None and share.hi is not None:
        small = f"[{percent_number(share.lo)}, {percent_number(share.hi)}]"
    return {"text": percent_number(share.point), "small": small}


def _caption(result: PairVerdict) -> str:
    """Return what was left out, and by what the intervals and p-values are."""
    unpaired = [f"{MEASURES[name].compared} ({text})" for name, text in result.unpaired.items()]
    methods = dict.fromkeys(
        interval.method
        for entry in result.differences
        for interval in (entry.base, entry.difference)
        if interval.lo is not None
    )
    lines = []
    if result.differences:
        lines.append("p is corrected over these rows (Benjamini–Hochberg).")
    if methods:
        lines.append(f"In brackets: 95 % intervals ({'; '.join(methods)}).")
    if result.left_out:
        lines.append(f"Not in the sentence, as not tested enough: {'; '.join(result.left_out)}.")
    if unpaired:
        lines.append(f"In both runs, but not comparable: {'; '.join(unpaired)}.")
    return " ".join(lines)


def render_missing_measures(result: PairVerdict, row_by_name: Mapping[str, RunView]) -> None:
    """Say what one of the two runs did not measure, and offer to measure it there."""
    for name, run in row_by_name.items():
        missing = [m for m, run_id in result.lacking.items() if run_id == run.id]
        if run.plan.subject.provider not in IN_PROCESS_PROVIDERS:
            missing = [m for m in missing if m != "inner_change"]
        if not missing or components.current_status(run) in ("planned", "running"):
            continue
        other_name = next(entry for entry in row_by_name if entry != name)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(
                f"Measured in {escape_markdown(other_name)} and not in {escape_markdown(name)}, so"
                " not compared:",
                width="content",
            )
            for measure in missing:
                label = MEASURES[measure].short
                link = measure_link(run.id, MEASURES[measure].request)
                components.page_link(link.place, f"Measure {label}", "play_arrow", dict(link.query))
