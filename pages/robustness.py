"""Robustness: the effect of a perturbed step on the rest of the chain and on the answer."""

import streamlit as st

from cotlab.ui import components
from cotlab.ui.item import evidence
from cotlab.ui.pickers import pick_run
from cotlab.ui.robustness import composite as robustness_composite
from cotlab.ui.robustness import item as robustness_item
from cotlab.ui.robustness import suite as robustness
from cotlab.ui.steps import select_item

components.head(
    "Robustness", "What does a perturbed step do to the rest of the chain and to the answer?"
)
row = pick_run("robustness", "causal", shows=evidence.has_robustness)
if row is not None:
    only_composite = robustness_composite.has_only_composite(row)
    suite_tab, item_tab = st.tabs(
        ["Over the suite", evidence.ITEM_VIEW], key="view", on_change="rerun", bind="query-params"
    )
    if suite_tab.open:
        with suite_tab:
            if only_composite:
                robustness_composite.render_composite_suite(row)
            else:
                robustness.render_robustness_suite(row)
            robustness.render_causal(row)
    if item_tab.open:
        with item_tab:
            item = select_item(row)
            if item is not None:
                if only_composite:
                    robustness_composite.render_composite_item(row, item)
                else:
                    robustness_item.render_steps_table(row, item)
                    robustness_item.render_perturbed_steps(row, item)
                robustness_item.render_perturbed_questions(row, item)
    robustness.render_robustness_notes(row)
