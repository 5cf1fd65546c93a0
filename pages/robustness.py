"""Robustness: what a perturbed step does to the rest of the chain and to the answer, over the suite and in one item."""

import streamlit as st

from cotlab.ui import parts, robustness, robustness_item
from cotlab.ui.steps import pick_item

parts.head("Robustness", "What does a perturbed step do to the rest of the chain and to the answer?")
row = parts.pick_run("robustness", "causal")
if row is not None:
    over_suite, one_item = st.tabs(["Over the suite", "One item"])
    with over_suite:
        robustness.headline(row)
        robustness.by_perturbation(row)
        view = robustness.positions(row)
        if view is not None:
            robustness.cell(row, view)
            robustness.items(row, view)
        robustness.causal(row)
    with one_item:
        item = pick_item(row)
        if item is not None:
            robustness_item.table(row, item)
            robustness_item.steps(row, item)
            robustness_item.questions(row, item)
    robustness.fine_print(row)
