"""Mediation: whether the states at the chain's positions carry the answer, over the suite and in one item."""

import streamlit as st

from cotlab.ui import components as parts
from cotlab.ui.mediation import item as mediation_item
from cotlab.ui.mediation import spread as mediation_spread
from cotlab.ui.mediation import suite as mediation
from cotlab.ui.steps import pick_item

parts.head("Mediation", "Does the answer run through the chain's activations?")
row = parts.pick_run("mediation")
setting = mediation.choose(row) if row is not None else None
if row is not None and setting is not None:
    over_suite, one_item = st.tabs(["Over the suite", "One item"])
    with over_suite:
        mediation.headline(row, setting)
        mediation.flags(row, setting)
        mediation.density(row, setting)
        mediation.spans(row, setting)
        mediation.layers(row, setting)
        mediation.by_layer(row, setting)
        mediation.indices(row, setting)
    with one_item:
        item = pick_item(row)
        if item is not None:
            mediation_item.tokens(row, item, setting)
            mediation_item.numbers(row, item, setting)
            mediation_spread.density(row, item, setting)
            mediation_spread.table(row, item, setting)
            mediation_item.draws(row, item, setting)
    mediation.fine_print(setting)
