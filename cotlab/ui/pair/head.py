"""The head of the page Compare: what differs between two runs, in a sentence and a figure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from cotlab.analysis.compare_verdict import PairVerdict, judge_pair
from cotlab.analysis.tables.several_runs import HEADLINE_FIGURE, difference_table
from cotlab.analysis.verdict.measures import MEASURES, MIN_ITEMS
from cotlab.analysis.verdict.pair_differences import (
    HeadlineDifference,
    points_text,
)
from cotlab.analysis.verdict.wording import noun_count, percent_number
from cotlab.analysis.view import RunView
from cotlab.core.types import IN_PROCESS_PROVIDERS
from cotlab.stats.intervals import Interval
from cotlab.store.recorded_models import short_model_name
from cotlab.ui import cached, components
from cotlab.ui.item.chain import chain_sources
from cotlab.ui.text import escape_markdown, shorten
from cotlab.ui.verdict import measure_link

_FOLDER = Path(__file__).parent
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
    result: PairVerdict, names: tuple[str, str], suite: str, unread: tuple[bool, bool]
) -> None:
    """Show the sentence on two runs, and each tested metric with its paired difference.

    ``unread`` says of the base and the other whether its answers do not come from its chains.
    """
    _head_component()(
        key="pair-head",
        data={
            "heading": result.headline,
            "detail": result.detail,
            "suite": suite,
            "columns": [
                *(f"{name}, %" for name in names),
                f"{names[1]} − {names[0]}, points",
            ],
            "differences": [
                _difference_row(
                    entry,
                    is_split=entry.measure == "change" and result.has_opposite_kinds,
                    unread=unread,
                )
                for entry in result.differences
            ],
            "caption": _caption(result, names),
        },
    )


def _difference_row(
    entry: HeadlineDifference, *, is_split: bool, unread: tuple[bool, bool]
) -> dict[str, Any]:
    """Return a row of the figure; neither side of a split mean is the better one.

    Sound steps are no praise of the base or the other where its chain is not read (``unread``).
    """
    difference = entry.difference
    bounds = None
    if difference.lo is not None and difference.hi is not None:
        bounds = [difference.lo, difference.hi]
    kind = {True: "worse", False: "better", None: "same"}[entry.is_worse]
    finding = {"worse": "worse", "better": "better", "same": "no difference beyond chance"}[kind]
    if entry.untestable_reason is not None:
        finding = "cannot be tested"
    is_base_better = entry.is_worse is True
    if entry.measure == "sound" and kind != "same" and unread[0 if is_base_better else 1]:
        kind, finding = "same", "no evidence for a chain that is not read"
    if is_split:
        kind, finding = "same", "a mean of two kinds of items, so neither is better"
    text = "n/a" if difference.point is None else points_text(difference.point)
    small = f"n/a: {difference.reason}" if difference.point is None else "no interval"
    if bounds is not None:
        small = f"[{points_text(bounds[0])}, {points_text(bounds[1])}]"
    return {
        "label": entry.label,
        "note": f"n = {noun_count(entry.row.n, 'item')}; {entry.validation}",
        "base": _share_cell(entry.base),
        "other": _share_cell(entry.other),
        "difference": {"text": text, "small": small},
        "point": difference.point,
        "bounds": bounds,
        "kind": kind,
        "name": f"{entry.label}: difference {text} points {small}, {finding}",
    }


def _share_cell(share: Interval) -> dict[str, str]:
    if share.point is None:
        return {"text": "n/a", "small": ""}
    small = "no interval"
    if share.lo is not None and share.hi is not None:
        small = f"[{percent_number(share.lo)}, {percent_number(share.hi)}]"
    return {"text": percent_number(share.point), "small": small}


def _caption(result: PairVerdict, names: tuple[str, str]) -> str:
    unpaired = [f"{MEASURES[name].compared} ({text})" for name, text in result.unpaired.items()]
    unpaired_text = f"In both runs, but not comparable: {'; '.join(unpaired)}." if unpaired else ""
    if not result.differences:
        return unpaired_text
    methods = dict.fromkeys(
        interval.method
        for entry in result.differences
        for interval in (entry.base, entry.difference)
        if interval.lo is not None
    )
    lines = [
        f"Orange: {names[1]} is worse beyond chance; blue: better; grey: no difference beyond"
        f" chance, not testable (fewer than {MIN_ITEMS} items, or no interval), or steps that are"
        " sound in a chain that the answer does not come"
        f" from{_SPLIT_TEXT if result.has_opposite_kinds else ''}."
        " p is corrected over these rows (Benjamini–Hochberg)."
    ]
    if methods:
        lines.append(f"In brackets: 95 % intervals ({'; '.join(methods)}).")
    if result.left_out:
        lines.append(f"Not in the sentence, as not tested enough: {'; '.join(result.left_out)}.")
    return " ".join(filter(None, (*lines, unpaired_text)))


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


_SPLIT_TEXT = ", or the mean of a run whose kinds of items behave differently"


@cache
def _head_component() -> Any:
    _, rows_js = chain_sources()
    return st.components.v2.component(
        "cotlab_pair_head",
        html='<div class="pair-head"></div>',
        css=(_FOLDER / "head.css").read_text("utf-8"),
        js=rows_js + (_FOLDER / "head.js").read_text("utf-8"),
    )


def render_verdict_data(result: PairVerdict, base: str, other: str) -> None:
    """Offer the figure's numbers, and its printed form."""
    if not result.differences:
        return
    components.csv_button("compared-headlines", difference_table(result.differences), "headlines")
    query = {"run": base, "figure": HEADLINE_FIGURE, "runs": f"{base},{other}"}
    components.page_link("figures", "Use in paper", "print", query)
