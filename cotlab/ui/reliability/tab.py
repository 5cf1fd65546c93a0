"""The tab Reliability of a run: its components and their composite, and those of one item."""

from __future__ import annotations

from functools import partial

from cotlab.analysis.view import RunView
from cotlab.ui.item import evidence
from cotlab.ui.more import ITEM_SECTION, render_more
from cotlab.ui.pickers import select_item
from cotlab.ui.reliability import item as reliability_item
from cotlab.ui.reliability import suite as reliability
from cotlab.ui.reliability.suite import render_all_components, render_tested_components
from cotlab.ui.run_notes import render_category_split


def render_reliability_tab(run: RunView) -> None:
    """Show the quality checks of a run, and whether they are validated."""
    render_category_split(run)
    render_tested_components(run)
    render_more(
        "means of the parts and the composite, over the suite and by item",
        partial(render_all_components, run),
        partial(reliability.render_reliability_items, run),
        name="parts",
        params=("sort", "diagnosis"),
    )
    render_more(
        "correlations and diagnoses",
        partial(reliability.render_correlations, run),
        partial(reliability.render_diagnosis_rates, run),
    )
    render_more("one item", partial(_render_item, run), **ITEM_SECTION)
    reliability.render_reliability_notes(run)


def _render_item(run: RunView) -> None:
    item = select_item(run)
    if item is not None:
        reliability_item.render_item_components(run, item)
        reliability_item.render_item_diagnoses(run, item)
        reliability_item.render_flags(run, item)
        reliability_item.render_verification_links(run, item)
        reliability.render_paraphrases(run, item)
        evidence.render_missing_detail_help(run, "F", "V", "D")
        evidence.render_requests_link(run, item.id)
