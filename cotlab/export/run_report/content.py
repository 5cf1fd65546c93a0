"""What the report of a run says: texts, numbers and four figures, all from what is stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cotlab.analysis.report import provider_version, run_costs
from cotlab.analysis.tables.declare import FigureData, MissingFigure
from cotlab.analysis.tables.run_report import (
    CHANGE_MEASURES,
    POSITION_MODES,
    answers_table,
    position_change_table,
    reference_table,
)
from cotlab.analysis.verdict.category_split import category_shares_text
from cotlab.analysis.verdict.measures import RunEvidence
from cotlab.analysis.verdict.record import RunVerdict
from cotlab.analysis.verdict.result import NOTHING_RULE
from cotlab.analysis.verdict.stored import judge_run_once
from cotlab.analysis.view import RunView, run_view
from cotlab.export.run_report.drawing import (
    SERIES_STYLES,
    Marker,
    ShareMark,
    ShareRow,
    draw_share_table,
)
from cotlab.export.run_report.methods import limit_sentences, method_sentences
from cotlab.figures.style import ACCENT_COLOUR, SOFT_TEXT_COLOUR, interval_text
from cotlab.store.database import Store
from cotlab.validation.report import read_report

_MODE_NAMES = {
    "corrupt": "states something else",
    "remove": "is left out",
    "paraphrase": "same in other words",
    "truncate": "is the last",
    "filler": "is filler",
}
_MAX_POSITIONS = 12


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """One of the figures of a report."""

    title: str
    """What it shows."""
    notes: tuple[str, ...]
    """Unit, n and kind of interval, a sentence each."""
    drawing: str
    """The drawing as HTML; "" where it was not measured."""
    missing_reason: str = ""
    """Why there is no drawing; "" where there is one."""


@dataclass(frozen=True, slots=True)
class ReportContent:
    """What the report of a run says."""

    run_id: str
    """Id of the run."""
    model: str
    """Name of the model."""
    suite: str
    """Name of the suite."""
    n_items: int
    """Items that the run is to score."""
    date: str
    """Day on which it was started."""
    partial_note: str
    """Note on a run that is not complete; "" where it is."""
    result: RunVerdict
    """The verdict with its lamps and what it depends on."""
    figures: tuple[ReportFigure, ...]
    """The four figures."""
    methods: tuple[str, ...]
    """How it was measured."""
    limits: tuple[str, ...]
    """What it does not show."""
    name: str
    """Name that people gave the run; "" for none."""
    user_note: str
    """Note that people gave the run; "" for none."""
    versions: tuple[str, ...]
    """Versions and digests."""


def make_report_content(store: Store, run_id: str) -> ReportContent:
    """Return what the report of a stored run says.

    Raises
    ------
    UnknownName
        If the store has no such run.
    """
    view = run_view(store, run_id)
    result = judge_run_once(view)
    evidence = result.evidence
    positions = position_change_table(view, evidence)
    position_rows = positions.table if isinstance(positions, FigureData) else None
    plan, day = view.plan, view.planned_at
    return ReportContent(
        run_id=view.id,
        model=evidence.model,
        suite=view.suite_name,
        n_items=view.n_items,
        date=f"{day.day} {day:%B} {day.year}",
        partial_note=view.partial_note,
        result=result,
        figures=tuple(_make_figures(view, evidence, positions)),
        methods=tuple(
            method_sentences(
                view,
                run_costs(view)["requests"],
                position_rows,
                is_unmeasured=result.verdict.rule == NOTHING_RULE,
            )
        ),
        limits=tuple(limit_sentences(view, result, position_rows)),
        name=view.name,
        user_note=view.user_note,
        versions=(
            f"cotlab {view.code_version}",
            provider_version(plan),
            f"model {_short_digest(plan.subject.revision)}",
            f"suite {_short_digest(view.suite)}",
            f"plan {_short_digest(view.plan_digest)}",
        ),
    )


def _short_digest(digest: str | None) -> str:
    return (digest or "n/a")[:12]


def _make_figures(
    view: RunView, evidence: RunEvidence, positions: FigureData | MissingFigure
) -> Iterator[ReportFigure]:
    report = read_report(view.store.folder)
    metrics: dict[str, Any] = report["metrics"] if report else {}
    changed = "states something else"
    if "change" not in evidence.shares and "numeric_change" in evidence.shares:
        changed = "has another number"
    yield _reference_figure(
        f"Answers changed when a step {changed}",
        "Share of a chain's steps, %, mean over items; 95% intervals.",
        reference_table(evidence, metrics, CHANGE_MEASURES),
        evidence.model,
        "% of steps",
    )
    yield _position_figure(positions, category_shares_text(evidence))
    yield _reference_figure(
        "Probability of its answer lost without its chain",
        "%, mean over items; 95% intervals. Its inner states are those of filler.",
        reference_table(evidence, metrics, ("inner_change",)),
        evidence.model,
        "% of the probability",
    )
    yield _answers_figure(answers_table(evidence))


def _reference_figure(
    title: str, unit: str, data: FigureData | MissingFigure, model: str, axis_title: str
) -> ReportFigure:
    if isinstance(data, MissingFigure):
        return ReportFigure(title, (), "", data.reason)
    runs = data.table[data.table["group"] == "run"]
    is_split = len(runs) > 1
    rows = []
    for row in data.table.itertuples():
        is_run, is_reference = row.group == "run", row.group == "reference"
        label = model if is_run and not is_split else str(row.label)
        mark = _share_mark(
            row,
            "diamond" if is_run else "open circle",
            SOFT_TEXT_COLOUR if is_reference else ACCENT_COLOUR,
        )
        rows.append(ShareRow(f"{label}, reference" if is_reference else label, (mark,)))
    counts = data.table.groupby("group")["n"].max()
    texts = [f"{row.label}, n = {row.n:,}" for row in runs.itertuples()]
    if not is_split:
        texts = [f"{model}: n = {runs['n'].max():,}"]
    if "reference" in counts:
        texts.insert(0, f"Reference models: n = {counts['reference']:,} items each")
    return ReportFigure(title, (unit, f"{'; '.join(texts)}."), draw_share_table(rows, axis_title))


def _position_figure(data: FigureData | MissingFigure, kinds_text: str) -> ReportFigure:
    title = "The same by position of the step"
    if isinstance(data, MissingFigure):
        return ReportFigure(title, (), "", data.reason)
    table = data.table
    n_positions = int(table["step"].max()) + 1
    modes = list(dict.fromkeys(table["mode"]))[: len(SERIES_STYLES)]
    # a mode looks the same in every report
    styles = {
        mode: SERIES_STYLES[POSITION_MODES.index(mode) if mode in POSITION_MODES else rank]
        for rank, mode in enumerate(modes)
    }
    row_by_cell = {(row.mode, int(row.step)): row for row in table.itertuples()}
    rows = []
    for step in range(min(n_positions, _MAX_POSITIONS)):
        cells = [row_by_cell.get((mode, step)) for mode in modes]
        counts = sorted({0 if cell is None else int(cell.n) for cell in cells})
        marks = tuple(
            None if cell is None or pd.isna(cell.point) else _share_mark(cell, *styles[mode])
            for mode, cell in zip(modes, cells, strict=True)
        )
        n_text = "–".join(f"{n:,}" for n in dict.fromkeys((counts[0], counts[-1])))
        rows.append(ShareRow(f"{step + 1}", marks, f"n = {n_text}"))
    legend = [(_MODE_NAMES.get(mode, mode), *styles[mode]) for mode in modes]
    methods = {str(method).split(" (")[0] for method in table["method"].dropna()} - {"none"}
    interval_text = f" ({', '.join(sorted(methods))})" if methods else ""
    notes = [f"Share of items whose answer changes, %; 95% intervals{interval_text}."]
    if n_positions > _MAX_POSITIONS:
        notes.append(f"The first {_MAX_POSITIONS} of {n_positions} positions.")
    if kinds_text:
        notes.append(f"Over all items, which differ at an edited step: {kinds_text}.")
    return ReportFigure(title, tuple(notes), draw_share_table(rows, "% of items", legend))


def _answers_figure(data: FigureData | MissingFigure) -> ReportFigure:
    title = "Answers, suggestions, equations"
    if isinstance(data, MissingFigure):
        return ReportFigure(title, (), "", data.reason)
    rows = [
        ShareRow(str(row.label), (_share_mark(row),), f"n = {row.n:,}")
        for row in data.table.itertuples()
    ]
    notes = ("% of items; 95% intervals (Wilson).",)
    return ReportFigure(title, notes, draw_share_table(rows, "% of items"))


def _share_mark(row: Any, marker: Marker = "circle", colour: str = ACCENT_COLOUR) -> ShareMark:
    lo, hi = (None if pd.isna(value) else float(value) for value in (row.lo, row.hi))
    text = interval_text(row.point, lo, hi, is_share=True)
    return ShareMark(float(row.point), lo, hi, text, marker, colour)
