"""Mediation: whether the answer depends on the hidden states at the chain's positions."""

import streamlit as st

from cotlab.ui import components
from cotlab.ui.mediation import item as mediation_item
from cotlab.ui.mediation import suite as mediation
from cotlab.ui.pickers import pick_run
from cotlab.ui.steps import select_item

components.head("Mediation", "Does the answer run through the chain's activations?")
row = pick_run("mediation")
setting = mediation.select_setting(row) if row is not None else None
if row is not None and setting is not None:
    suite_tab, item_tab = st.tabs(["Over the suite", "One item"])
    with suite_tab:
        mediation.render_mediation_summary(row, setting)
        mediation.render_mediation_warnings(row, setting)
        mediation.render_density(row, setting)
        mediation.render_spans(row, setting)
        mediation.render_layers(row, setting)
        mediation.render_published_layers(row, setting)
        mediation.render_indices(row, setting)
    with item_tab:
        item = select_item(row)
        if item is not None:
            mediation_item.render_tokens(row, item, setting)
            mediation_item.render_item_values(row, item, setting)
            mediation_item.render_item_density(row, item, setting)
            mediation_item.render_item_spread(row, item, setting)
            mediation_item.render_draws(row, item, setting)
    mediation.render_mediation_notes(setting)
