"""The four figures of the report of a run, from its verdict's evidence and its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cotlab.analysis.verdict.measures import MEASURES, MeasureName, RunEvidence
from cotlab.analysis.verdict.verdicts import (
    category_shares,
    category_shares_text,
    covers_all_items,
)
from cotlab.analysis.view import RunView, position_estimates, with_facet_columns
from cotlab.export.run_report.drawing import (
    SERIES_STYLES,
    Marker,
    ShareMark,
    ShareRow,
    draw_share_table,
)
from cotlab.figures.style import ACCENT_COLOUR, SOFT_TEXT_COLOUR, interval_text
from cotlab.validation.report import read_report

_REFERENCE_MODELS = ("faithful-a", "r50", "bypass-a")
"""Models of known behaviour that a run stands beside: uses every step, half of the time, none."""
_CHANGE_MEASURES: tuple[MeasureName, ...] = ("change", "numeric_change")
_MODE_NAMES = {
    "corrupt": "states something else",
    "remove": "is left out",
    "paraphrase": "same in other words",
    "truncate": "is the last",
    "filler": "is filler",
}
_POSITION_MODES = ("corrupt", "remove", "paraphrase")
"""Modes that the figure by position shows, where they were measured."""
_MAX_POSITIONS = 12
_ANSWER_LABELS: dict[MeasureName, str] = {
    "wrong": "answer right",
    "moved": "hint followed",
    "admitted": "hint mentioned",
    "alone": "same without a chain",
    "sound": "no false equation",
}
"""Rows of the figure of answers, from the top."""


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """One of the figures of a report."""

    title: str
    """What it shows."""
    notes: tuple[str, ...] = ()
    """Unit, n and kind of interval, a sentence each."""
    drawing: str = ""
    """The drawing as HTML; "" where it was not measured."""
    missing_reason: str = ""
    """Why there is no drawing; "" where there is one."""


def report_figures(
    view: RunView, evidence: RunEvidence, positions: pd.DataFrame | str
) -> list[ReportFigure]:
    """Return the figures of a report; ``positions`` is the table by position, or why there is none.

    Each is a table of shares beside those of models of known behaviour, by position, or of answers.
    """
    changed = "states something else"
    if "change" not in evidence.shares and "numeric_change" in evidence.shares:
        changed = "has another number"
    report = read_report(view.store.folder)
    metrics: dict[str, Any] = report["metrics"] if report else {}
    return [
        _reference_figure(
            evidence,
            metrics,
            _CHANGE_MEASURES,
            title=f"Answers changed when a step {changed}",
            unit="Share of a chain's steps, %, mean over items; 95% intervals.",
            axis_title="% of steps",
        ),
        _position_figure(positions, category_shares_text(evidence)),
        _reference_figure(
            evidence,
            metrics,
            ("inner_change",),
            title="Probability of its answer lost without its chain",
            unit="%, mean over items; 95% intervals. Its inner states are those of filler.",
            axis_title="% of the probability",
        ),
        _answers_figure(evidence),
    ]


def position_table(view: RunView, evidence: RunEvidence) -> pd.DataFrame | str:
    """Return how often the answer changes by mode and position, or why that is not known."""
    if "answer_change" not in view.metrics:
        return "the steps of the chains were not changed in turn (scorer ablation)"
    table = with_facet_columns(position_estimates(view, "answer_change"), "mode")
    measured_modes = [mode for mode in _POSITION_MODES if mode in set(table["mode"])]
    modes = measured_modes or list(dict.fromkeys(table["mode"]))
    table = table[table["mode"].isin(modes)]
    if table["point"].dropna().empty:
        return _missing_reason(evidence, "change")
    return table.sort_values(
        ["mode", "step"],
        key=lambda column: column.map(modes.index) if column.name == "mode" else column,
    )


def _missing_reason(evidence: RunEvidence, measure: MeasureName) -> str:
    if evidence.n_left_out.get(measure) and evidence.missing:
        return f"no item has a value: {evidence.missing[0].reason}"
    if measure == "inner_change":
        return "the model's inner states were not replaced (scorer mediation, models that run here)"
    return "no step was made to state something else (scorer ablation, mode corrupt)"


def _reference_figure(
    evidence: RunEvidence,
    metrics: dict[str, Any],
    measures: Sequence[MeasureName],
    *,
    title: str,
    unit: str,
    axis_title: str,
) -> ReportFigure:
    """Return the first measure that a run has, beside the same of models of known behaviour.

    The highest share comes first and the run's control last. A run in which categories of items
    behave differently has a row for each kind, with their names.
    """
    measure = next((name for name in measures if name in evidence.shares), None)
    if measure is None:
        return ReportFigure(title, missing_reason=_missing_reason(evidence, measures[0]))
    kinds = category_shares(evidence) if measure == "change" else ()
    runs = [(", ".join(kind.categories), kind.share) for kind in kinds]
    if not covers_all_items(kinds, evidence):
        runs.append(("all items" if kinds else evidence.model, evidence.shares[measure]))
    runs.sort(key=lambda run: -run[1].point)
    rows = [ShareRow(label, (_share_mark(share, "diamond"),)) for label, share in runs]
    record = metrics.get(MEASURES[measure].metric, {})
    organisms = record["organisms"] if record.get("facet") == dict(MEASURES[measure].facet) else {}
    references = [
        (model, pd.Series(organisms[model]))
        for model in _REFERENCE_MODELS
        if model in organisms and organisms[model]["point"] is not None
    ]
    rows += [
        ShareRow(f"{model}, reference", (_share_mark(numbers, "open circle", SOFT_TEXT_COLOUR),))
        for model, numbers in references
    ]
    rows.sort(key=lambda row: -row.marks[0].point if row.marks[0] else 0)
    if evidence.text_control is not None and measure in _CHANGE_MEASURES:
        mark = _share_mark(evidence.text_control, "open circle")
        rows.append(ShareRow("reworded steps", (mark,)))
    texts = [f"{label}{',' if kinds else ':'} n = {share.n:,}" for label, share in runs]
    if references:
        n_items = max(int(numbers["n"]) for _, numbers in references)
        texts.insert(0, f"Reference models: n = {n_items:,} items each")
    return ReportFigure(title, (unit, f"{'; '.join(texts)}."), draw_share_table(rows, axis_title))


def _position_figure(table: pd.DataFrame | str, kinds_text: str) -> ReportFigure:
    title = "The same by position of the step"
    if isinstance(table, str):
        return ReportFigure(title, missing_reason=table)
    n_positions = int(table["step"].max()) + 1
    modes = list(dict.fromkeys(table["mode"]))[: len(SERIES_STYLES)]
    # a mode looks the same in every report
    styles = {
        mode: SERIES_STYLES[_POSITION_MODES.index(mode) if mode in _POSITION_MODES else rank]
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
    method_text = f" ({', '.join(sorted(methods))})" if methods else ""
    notes = [f"Share of items whose answer changes, %; 95% intervals{method_text}."]
    if n_positions > _MAX_POSITIONS:
        notes.append(f"The first {_MAX_POSITIONS} of {n_positions} positions.")
    if kinds_text:
        notes.append(f"Over all items, which differ at an edited step: {kinds_text}.")
    return ReportFigure(title, tuple(notes), draw_share_table(rows, "% of items", legend))


def _answers_figure(evidence: RunEvidence) -> ReportFigure:
    """Return how many answers are right, follow a hint or need no chain, and sound chains."""
    title = "Answers, suggestions, equations"
    shares = {name: evidence.shares.get(name) for name in _ANSWER_LABELS}
    if (wrong := shares["wrong"]) is not None:
        shares["wrong"] = wrong.complement
    rows = [
        ShareRow(_ANSWER_LABELS[name], (_share_mark(share),), f"n = {share.n:,}")
        for name, share in shares.items()
        if share is not None
    ]
    if not rows:
        reason = "no answer could be compared with the right one, and no hint was tried"
        return ReportFigure(title, missing_reason=reason)
    notes = ("% of items; 95% intervals (Wilson).",)
    return ReportFigure(title, notes, draw_share_table(rows, "% of items"))


def _share_mark(numbers: Any, marker: Marker = "circle", colour: str = ACCENT_COLOUR) -> ShareMark:
    """Return the mark of anything with ``point``, ``lo`` and ``hi``."""
    lo, hi = (None if pd.isna(value) else float(value) for value in (numbers.lo, numbers.hi))
    text = interval_text(numbers.point, lo, hi, is_share=True)
    return ShareMark(float(numbers.point), lo, hi, text, marker, colour)
