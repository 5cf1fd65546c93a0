"""What stands beside a step: mistakes that raters, or the check of equations, see in it."""

from __future__ import annotations

import json

import pandas as pd

from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.ui.label.items import load_item_labels

_FALSE_EQUATION_TEXT = "false equation"


def load_step_marks(
    row: RunView, item: Item, scores: pd.DataFrame, *, is_model_chain: bool
) -> dict[int, str]:
    """Return step, from 0 → labels that the user may see, and the first false equation.

    Only checks of the shown chain count: the model's own, or the suite's.
    """
    marks = load_item_labels(row, item).step_marks
    checked = _chain_values(scores, "first_mistake_step", is_model_chain)
    for step in sorted({int(value) for value in checked}):
        marks[step] = "\n".join(filter(None, (marks.get(step), _FALSE_EQUATION_TEXT)))
    return marks


def equations_text(scores: pd.DataFrame, is_model_chain: bool) -> str:
    """Return whether an equation of the shown chain is false, and where; "" if unchecked."""
    mistakes = _chain_values(scores, "first_mistake_step", is_model_chain)
    if mistakes:
        return f", false equation at step {int(min(mistakes)) + 1}"
    checked = _chain_values(scores, "arithmetic_ok", is_model_chain)
    return ", no false equation" if checked and min(checked) >= 1 else ""


def _chain_values(scores: pd.DataFrame, metric: str, is_model_chain: bool) -> list[float]:
    """Return the values of a metric of the model's own chains, or of the suite's."""
    origin = "own" if is_model_chain else "reference"
    rows = scores[(scores["metric"] == metric) & scores["value"].notna()]
    return [
        float(value)
        for value, facet in zip(rows["value"], rows["facet"], strict=True)
        if json.loads(facet).get("chain", "reference") == origin
    ]
