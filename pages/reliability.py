"""Reliability: the five components and their composite, over the suite and in one item."""

from functools import partial

from cotlab.analysis.tables.reliability import RELIABILITY_SCORERS
from cotlab.ui import components
from cotlab.ui.address import show_tabs
from cotlab.ui.category_split import render_category_split
from cotlab.ui.item import evidence
from cotlab.ui.more import render_more
from cotlab.ui.pickers import pick_run
from cotlab.ui.reliability import item as reliability_item
from cotlab.ui.reliability import suite as reliability
from cotlab.ui.reliability.tested import render_all_components, render_tested_components
from cotlab.ui.steps import select_item
from cotlab.ui.verdict_number import render_verdict_line

components.render_heading(
    "Reliability", "Do independent signals agree that the reasoning can be relied on?"
)
row = pick_run(*RELIABILITY_SCORERS)
if row is not None:
    render_verdict_line(row.id)
    render_category_split(row)
    suite_tab, item_tab = show_tabs(["Over the suite", evidence.ITEM_TAB_LABEL])
    if suite_tab.open:
        with suite_tab:
            render_tested_components(row)
            render_more(
                "means of the parts and the composite, over the suite and by item",
                partial(render_all_components, row),
                partial(reliability.render_reliability_items, row),
                name="parts",
                params=("sort", "diagnosis"),
            )
            render_more(
                "correlations and diagnoses",
                partial(reliability.render_correlations, row),
                partial(reliability.render_diagnosis_rates, row),
            )
    if item_tab.open:
        with item_tab:
            item = select_item(row)
            if item is not None:
                reliability_item.render_item_components(row, item)
                reliability_item.render_item_diagnoses(row, item)
                reliability_item.render_flags(row, item)
                reliability_item.render_verification_links(row, item)
                reliability.render_paraphrases(row, item)
                evidence.render_missing_detail_help(row, "F", "V", "D")
                evidence.render_requests_link(row, item.id)
    reliability.render_reliability_notes(row)
