"""Reliability: the parts C, R, V, D, F and their composite, over the suite and in one item."""

import streamlit as st

from cotlab.analysis.tables.reliability import SCORERS
from cotlab.ui import components as parts
from cotlab.ui.item import evidence
from cotlab.ui.reliability import chains as reliability_chains
from cotlab.ui.reliability import item as reliability_item
from cotlab.ui.reliability import suite as reliability
from cotlab.ui.steps import pick_item

parts.head("Reliability", "Do independent signals agree that the reasoning can be relied on?")
row = parts.pick_run(*SCORERS)
if row is not None:
    over_suite, one_item = st.tabs(["Over the suite", evidence.ONE_ITEM], key="view", on_change="rerun", bind="query-params")
    if over_suite.open:
        with over_suite:
            reliability.means(row)
            reliability.items(row)
            reliability.orthogonal(row)
            reliability.diagnoses(row)
    if one_item.open:
        with one_item:
            item = pick_item(row)
            if item is not None:
                reliability_item.bars(row, item)
                reliability_item.diagnosis(row, item)
                reliability_item.flags(row, item)
                reliability_item.links(row, item)
                reliability_chains.paraphrases(row, item)
                evidence.how_to_add(row, "F", "V", "D")
                reliability_item.requests(row, item)
    reliability.fine_print(row)
