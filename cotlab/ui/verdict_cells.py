"""Cells of tables of runs: the finding of each in a few words, and its shares."""

from __future__ import annotations

from typing import Any

from cotlab.analysis.verdict.category_split import category_shares
from cotlab.analysis.verdict.measures import MeasureName
from cotlab.analysis.verdict.record import RunVerdict
from cotlab.analysis.verdict.result import NOTHING_RULE
from cotlab.analysis.verdict.wording import interval, percent_number
from cotlab.store.item_scores import NOTHING_MEASURED

OTHER_CHANGES: dict[MeasureName, str] = {"numeric_change": "numbers", "inner_change": "states"}
"""What was changed, in a word, where it is not what a step states."""


def verdict_cell(result: RunVerdict | None) -> dict[str, Any]:
    """Return the cell of a table of runs with mark and finding in a few words."""
    if result is None:
        return {"text": "imported", "mark": None}
    if result.verdict.rule == NOTHING_RULE:
        return {"text": NOTHING_MEASURED, "mark": result.verdict.mark, "tone": "amber"}
    return {"text": result.verdict.short, "mark": result.verdict.mark}


def share_cell(result: RunVerdict | None, *measures: MeasureName) -> dict[str, Any]:
    """Return the cell of a table with a share in percent and its interval; "n/a" without it.

    A measure that is not validated for what it claims has no number here. A word says where not
    the statements of steps were changed, and where the mean is of two kinds of items.
    """
    evidence = None if result is None else result.evidence
    measure = next((name for name in measures if evidence and evidence.share(name)), None)
    share = evidence.share(measure) if evidence and measure else None
    if share is None or measure is None:
        return {"text": "n/a"}
    small_text = f"{interval(share)} {OTHER_CHANGES.get(measure, '')}".strip()
    kinds = category_shares(evidence) if evidence and measure == "change" else ()
    if kinds:
        points = " and ".join(percent_number(kind.share.point) for kind in kinds)
        return {
            "text": percent_number(share.point),
            "small": small_text,
            "below": f"mean of {points}",
        }
    return {"text": percent_number(share.point), "small": small_text}
