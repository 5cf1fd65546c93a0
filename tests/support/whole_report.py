"""The report of a run with its items as lists, which report.json holds and no code needs whole."""

from __future__ import annotations

from typing import Any

from cotlab.analysis.report import build_report
from cotlab.analysis.report_items import further_scores, report_items
from cotlab.analysis.view import RunView
from cotlab.store.database import Store


def item_sections(view: RunView) -> dict[str, Any]:
    """Return ``ITEM_SECTIONS`` of a report as lists."""
    return {
        "items": [item.as_json() for item in report_items(view)],
        "further_scores": [
            {
                "mode": part.mode,
                "metric": part.metric,
                "items": [item.as_json() for item in part.items],
            }
            for part in further_scores(view)
        ],
    }


def build_whole_report(store: Store, run_id: str) -> dict[str, Any]:
    """Return what report.json holds of a run."""
    report = build_report(store, run_id)
    return report | item_sections(RunView.read(store, run_id)) if "items" in report else report
