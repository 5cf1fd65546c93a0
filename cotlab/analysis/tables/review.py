"""Labels and decisions of a run as the tables of figures and pages."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cotlab.analysis.tables.declare import Choice, FigureData, FigureTable, NoFigure
from cotlab.analysis.view import RunView
from cotlab.figures.style import truncate_text
from cotlab.reliability.policy import DEFAULT
from cotlab.reliability.volumes import threshold_points
from cotlab.review.labelling.agreement import Agreement, measure_agreement
from cotlab.review.release.decide import policy_of, scored
from cotlab.stats.intervals import Interval

QUESTION_LABELS = {"reasoning": "the reasoning", "target": "the target"}
"""What raters agree on, as a figure says it."""
MAX_PAIRS = 20
"""So many pairs stand in one figure, those with the most items; a table has all of them."""
MAX_NAME_CHARS = 18
"""So many characters of a rater's name stand in a figure, so that both of a pair are there."""


def agreement_points(result: Agreement, question: str) -> pd.DataFrame:
    """Return alpha of all raters, then kappa of each two.

    Parameters
    ----------
    question : "reasoning" or "target"

    Returns
    -------
    DataFrame
        label, of, point, lo, hi, n, n_undefined, method, confidence, reason; empty where no item
        has two raters.
    """
    raters = {rater.rater for rater in result.raters}
    pairs = sorted(
        (pair for pair in result.pairs if pair.question == question), key=lambda pair: -pair.n
    )
    if not pairs:
        return pd.DataFrame(
            columns=[
                "label",
                "of",
                "point",
                "lo",
                "hi",
                "n",
                "n_undefined",
                "method",
                "confidence",
                "reason",
            ]
        )
    rows = [_row(f"alpha, {len(raters)} raters", question, result.alpha[question])]
    rows += [
        _row(
            f"kappa, {truncate_text(pair.first, MAX_NAME_CHARS)} and"
            f" {truncate_text(pair.second, MAX_NAME_CHARS)}",
            question,
            pair.kappa,
        )
        for pair in pairs[:MAX_PAIRS]
    ]
    return pd.DataFrame(rows)


def _row(label: str, question: str, interval: Interval) -> dict[str, Any]:
    return {
        "label": label,
        "of": QUESTION_LABELS[question],
        "point": interval.point,
        "lo": interval.lo,
        "hi": interval.hi,
        "n": interval.n,
        "n_undefined": 0,
        "method": interval.method,
        "confidence": interval.level,
        "reason": interval.reason,
    }


def _agreement(view: RunView, choice: Choice) -> FigureData | NoFigure:
    result = measure_agreement(view.store, runs=[view.run_id])
    table = agreement_points(result, "reasoning")
    return (
        FigureData(table)
        if len(table)
        else NoFigure("no item of this run has labels of two raters")
    )


LABEL_AGREEMENT = FigureTable("label_agreement", "run", _agreement)


def _volumes(view: RunView, choice: Choice) -> FigureData | NoFigure:
    if "r_raw" not in view.metrics:
        return NoFigure("the run has no scores of the scorer composite")
    table = scored(view.store, [view.run_id])
    if table.empty:
        return NoFigure("no item has been scored")
    if table["r_cal"].isna().all():
        return NoFigure(str(table["told"].iloc[0]) or "no calibrator gives a probability")
    bounds = policy_of(view.store).thresholds.get(DEFAULT)
    return FigureData(
        threshold_points(table, *((bounds.low, bounds.high) if bounds else (None, None)))
    )


THRESHOLD_VOLUMES = FigureTable("threshold_volumes", "run", _volumes, ("r_raw",))
