"""Reliability: the five components and their composite, over the suite and in one item."""

import streamlit as st

from cotlab.analysis.tables.reliability import SCORERS
from cotlab.ui import components
from cotlab.ui.item import evidence
from cotlab.ui.pickers import pick_run
from cotlab.ui.reliability import item as reliability_item
from cotlab.ui.reliability import suite as reliability
from cotlab.ui.steps import select_item

components.head("Reliability", "Do independent signals agree that the reasoning can be relied on?")
row = pick_run(*SCORERS)
if row is not None:
    suite_tab, item_tab = st.tabs(
        ["Over the suite", evidence.ITEM_VIEW], key="view", on_change="rerun", bind="query-params"
    )
    if suite_tab.open:
        with suite_tab:
            reliability.render_component_means(row)
            reliability.render_reliability_items(row)
            reliability.render_correlations(row)
            reliability.render_diagnosis_rates(row)
    if item_tab.open:
        with item_tab:
            item = select_item(row)
            if item is not None:
                reliability_item.render_item_components(row, item)
                reliability_item.render_item_diagnoses(row, item)
                reliability_item.render_flags(row, item)
                reliability_item.render_verification_links(row, item)
                reliability.render_paraphrases(row, item)
                evidence.render_how_to_add(row, "F", "V", "D")
                reliability_item.render_requests_link(row, item)
    reliability.render_reliability_notes(row)
