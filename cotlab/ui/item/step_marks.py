"""What stands beside a step: mistakes that raters, or the check of equations, see in it."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from cotlab.core.types import Item
from cotlab.ui.label.items import load_item_labels

_FALSE_EQUATION_TEXT = "false equation"


def load_step_marks(
    row: dict[str, Any], item: Item, scores: pd.DataFrame, *, is_model_chain: bool
) -> dict[int, str]:
    """Return step, from 0 → labels that the user may see, and the first false equation.

    Only checks of the shown chain count: the model's own, or the suite's.
    """
    marks = load_item_labels(row, item).step_marks
    origin = "own" if is_model_chain else "reference"
    checks = scores[(scores["metric"] == "first_mistake_step") & scores["value"].notna()]
    false_steps = {
        int(value)
        for value, facet in zip(checks["value"], checks["facet"], strict=True)
        if json.loads(facet).get("chain", "reference") == origin
    }
    for step in sorted(false_steps):
        marks[step] = "\n".join(filter(None, (marks.get(step), _FALSE_EQUATION_TEXT)))
    return marks
