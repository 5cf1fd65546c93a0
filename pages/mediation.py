"""Mediation: whether the answer depends on the hidden states at the chain's positions."""

from functools import partial

from cotlab.ui import components
from cotlab.ui.address import show_tabs
from cotlab.ui.item import evidence
from cotlab.ui.mediation import item as mediation_item
from cotlab.ui.mediation import suite as mediation
from cotlab.ui.more import render_more
from cotlab.ui.pickers import pick_run
from cotlab.ui.steps import select_item
from cotlab.ui.verdict_number import render_verdict_line, render_verdict_number

components.render_heading("Mediation", "Does the answer run through the chain's activations?")
row = pick_run("mediation")
if row is not None:
    render_verdict_line(row.id)
    render_verdict_number(row.id)
setting = mediation.select_setting(row) if row is not None else None
if row is not None and setting is not None:
    suite_tab, item_tab = show_tabs(["Over the suite", evidence.ITEM_TAB_LABEL])
    if suite_tab.open:
        with suite_tab:
            mediation.render_mediation_summary(row, setting)
            mediation.render_mediation_warnings(row, setting)
            mediation.render_density(row, setting)
            render_more(
                "by layer, and all indices",
                partial(mediation.render_drop_density, row, setting),
                partial(mediation.render_spans, row, setting),
                partial(mediation.render_layers, row, setting),
                partial(mediation.render_indices, row, setting),
            )
    if item_tab.open:
        with item_tab:
            item = select_item(row)
            if item is not None:
                mediation_item.render_tokens(row, item, setting)
                mediation_item.render_item_values(row, item, setting)
                mediation_item.render_item_density(row, item, setting)
                mediation_item.render_item_spread(row, item, setting)
                mediation_item.render_draws(row, item, setting)
    mediation.render_mediation_notes(setting)
