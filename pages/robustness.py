"""Robustness: what a perturbed step does to the rest of the chain and to the answer, over the suite and in one item."""

import streamlit as st

from cotlab.ui import components as parts
from cotlab.ui.item import evidence
from cotlab.ui.robustness import composite as robustness_composite
from cotlab.ui.robustness import item as robustness_item
from cotlab.ui.robustness import suite as robustness
from cotlab.ui.steps import pick_item

parts.head("Robustness", "What does a perturbed step do to the rest of the chain and to the answer?")
row = parts.pick_run("robustness", "causal", shows=evidence.has_robustness)
if row is not None:
    alone = robustness_composite.alone(row)
    over_suite, one_item = st.tabs(["Over the suite", evidence.ONE_ITEM], key="view", on_change="rerun", bind="query-params")
    if over_suite.open:
        with over_suite:
            if alone:
                robustness_composite.suite(row)
            else:
                robustness.headline(row)
                robustness.by_perturbation(row)
                view = robustness.positions(row)
                if view is not None:
                    robustness.cell(row, view)
                    robustness.items(row, view)
            robustness.causal(row)
    if one_item.open:
        with one_item:
            item = pick_item(row)
            if item is not None:
                if alone:
                    robustness_composite.one(row, item)
                else:
                    robustness_item.table(row, item)
                    robustness_item.steps(row, item)
                robustness_item.questions(row, item)
    robustness.fine_print(row)
