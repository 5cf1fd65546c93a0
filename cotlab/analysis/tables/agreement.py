"""What people said of chains as the tables of figures and pages."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cotlab.analysis.tables.source import Absent, Choice, Drawn, FigureTable, Source
from cotlab.figures.style import shorten
from cotlab.review.labelling.agreement import Agreement, agreement
from cotlab.stats.intervals import Interval

WORDS = {"reasoning": "the reasoning", "target": "the target"}
"""What raters agree on, as a figure says it."""
MOST_PAIRS = 20
"""So many pairs stand in one figure, those with the most items; a table has all of them."""
MOST_OF_NAME = 18
"""So many characters of a rater's name stand in a figure, so that both of a pair are there."""


def agreement_points(found: Agreement, question: str) -> pd.DataFrame:
    """Alpha of all raters, then kappa of each two, as the figure ``label_agreement`` wants them.

    Parameters
    ----------
    question : "reasoning" or "target"

    Returns
    -------
    DataFrame
        label, of, point, lo, hi, n, n_undefined, method, confidence, reason; empty where no item has two raters.
    """
    raters = {rater.rater for rater in found.raters}
    pairs = sorted((pair for pair in found.pairs if pair.question == question), key=lambda pair: -pair.n)
    if not pairs:
        return pd.DataFrame(columns=["label", "of", "point", "lo", "hi", "n", "n_undefined", "method", "confidence", "reason"])
    rows = [_row(f"alpha, {len(raters)} raters", question, found.alpha[question])]
    rows += [
        _row(f"kappa, {shorten(pair.first, MOST_OF_NAME)} and {shorten(pair.second, MOST_OF_NAME)}", question, pair.kappa)
        for pair in pairs[:MOST_PAIRS]
    ]
    return pd.DataFrame(rows)


def _row(label: str, question: str, told: Interval) -> dict[str, Any]:
    return {
        "label": label, "of": WORDS[question], "point": told.point, "lo": told.lo, "hi": told.hi, "n": told.n, "n_undefined": 0,
        "method": told.method, "confidence": told.level, "reason": told.reason,
    }  # fmt: skip


def _agreement(source: Source, choice: Choice) -> Drawn | Absent:
    found = agreement(source.store, runs=[source.run_id])
    table = agreement_points(found, "reasoning")
    return Drawn(table) if len(table) else Absent("no item of this run has labels of two raters")


LABEL_AGREEMENT = FigureTable("label_agreement", "run", _agreement)
