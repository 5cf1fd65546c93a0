"""Tables of the report of a run: this run beside reference models, by position, and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from cotlab.analysis.tables.declare import FigureData, MissingFigure
from cotlab.analysis.verdict.category_split import category_shares, covers_all_items
from cotlab.analysis.verdict.measures import MEASURES, MeasureName, RunEvidence, Share
from cotlab.analysis.view import RunView, position_estimates, with_facet_columns

REFERENCE_MODELS = ("faithful-a", "r50", "bypass-a")
"""Models of known behaviour that a run stands beside: uses every step, half of the time, none."""
CHANGE_MEASURES: tuple[MeasureName, ...] = ("change", "numeric_change")
POSITION_MODES = ("corrupt", "remove", "paraphrase")
"""Modes that the figure by position shows, where they were measured."""
SHARE_COLUMNS = ["label", "group", "point", "lo", "hi", "n"]


class AnswerRow(NamedTuple):
    """One row of the figure of answers, suggestions and equations."""

    measure: MeasureName
    """The measure of its share."""
    label: str
    """What is counted."""


ANSWER_ROWS = (
    AnswerRow("wrong", "answer right"),
    AnswerRow("moved", "hint followed"),
    AnswerRow("admitted", "hint mentioned"),
    AnswerRow("alone", "same without a chain"),
    AnswerRow("sound", "no false equation"),
)
"""Rows of the figure of answers, from the top."""


def reference_table(
    evidence: RunEvidence, metrics: Mapping[str, Any], measures: Sequence[MeasureName]
) -> FigureData | MissingFigure:
    """Return the first measure that the run has, beside the same of models of known behaviour.

    Parameters
    ----------
    evidence : RunEvidence
    metrics : mapping
        The metrics of a validation report.
    measures : sequence of str
        Measures in order of preference.

    Returns
    -------
    FigureData or MissingFigure
        Rows from the highest share to the lowest, the run's control last. A run in which
        categories of items behave differently has a row for each kind, with their names.
    """
    measure = next((name for name in measures if name in evidence.shares), None)
    if measure is None:
        return MissingFigure(_missing_reason(evidence, measures[0]))
    kinds = category_shares(evidence) if measure == "change" else ()
    rows: list[tuple[Any, ...]] = [
        (", ".join(kind.categories), "run", *_numbers(kind.share)) for kind in kinds
    ]
    if not covers_all_items(kinds, evidence):
        label = "all items" if kinds else "this run"
        rows.append((label, "run", *_numbers(evidence.shares[measure])))
    record = metrics.get(MEASURES[measure].metric, {})
    if record.get("facet") == dict(MEASURES[measure].facet):
        for model in REFERENCE_MODELS:
            estimate = record["organisms"].get(model)
            if estimate is not None and estimate["point"] is not None:
                numbers = (estimate[name] for name in ("point", "lo", "hi", "n"))
                rows.append((model, "reference", *numbers))
    rows.sort(key=lambda row: -row[2])
    control = evidence.text_control
    if control is not None and measure in CHANGE_MEASURES:
        rows.append(("reworded steps", "control", *_numbers(control)))
    return FigureData(pd.DataFrame(rows, columns=SHARE_COLUMNS))


def position_change_table(view: RunView, evidence: RunEvidence) -> FigureData | MissingFigure:
    """Return how often the answer changes by position of the step, for each mode measured."""
    if "answer_change" not in view.metrics:
        return MissingFigure("the steps of the chains were not changed in turn (scorer ablation)")
    table = with_facet_columns(position_estimates(view, "answer_change"), "mode")
    measured_modes = [mode for mode in POSITION_MODES if mode in set(table["mode"])]
    modes = measured_modes or list(dict.fromkeys(table["mode"]))
    table = table[table["mode"].isin(modes)]
    if table["point"].dropna().empty:
        return MissingFigure(_missing_reason(evidence, "change"))
    order = {mode: rank for rank, mode in enumerate(modes)}
    table = table.assign(rank=table["mode"].map(order)).sort_values(["rank", "step"])
    columns = ["mode", "step", "point", "lo", "hi", "n", "n_undefined", "method", "reason"]
    return FigureData(table[columns].reset_index(drop=True))


def answers_table(evidence: RunEvidence) -> FigureData | MissingFigure:
    """Return how many answers are right, follow a hint or need no chain, and sound chains."""
    rows = []
    for measure, label in ANSWER_ROWS:
        share = evidence.shares.get(measure)
        if share is not None:
            if measure == "wrong":
                share = Share(1 - share.point, 1 - share.hi, 1 - share.lo, share.n)
            rows.append((label, "run", *_numbers(share)))
    if not rows:
        return MissingFigure(
            "no answer could be compared with the right one, and no hint was tried"
        )
    return FigureData(pd.DataFrame(rows, columns=SHARE_COLUMNS))


def _numbers(share: Share) -> tuple[float, float, float, int]:
    return share.point, share.lo, share.hi, share.n


def _missing_reason(evidence: RunEvidence, measure: MeasureName) -> str:
    if measure in evidence.n_left_out and evidence.n_left_out[measure] and evidence.missing:
        return f"no item has a value: {evidence.missing[0].reason}"
    if measure == "inner_change":
        return "the model's inner states were not replaced (scorer mediation, models that run here)"
    return "no step was made to state something else (scorer ablation, mode corrupt)"
