"""The tab Mediation of a run: over the suite, and of one item."""

from __future__ import annotations

from functools import partial

from cotlab.analysis.tables.mediation import Setting
from cotlab.analysis.view import RunView
from cotlab.ui.mediation import item as mediation_item
from cotlab.ui.mediation import suite as mediation
from cotlab.ui.more import ITEM_SECTION, render_more
from cotlab.ui.pickers import select_item
from cotlab.ui.verdict_number import render_verdict_number


def render_mediation_tab(run: RunView) -> None:
    """Show whether the answer depends on the activations at the chain's positions."""
    render_verdict_number(run.id)
    setting = mediation.select_setting(run)
    if setting is None:
        return
    mediation.render_mediation_summary(run, setting)
    mediation.render_mediation_warnings(run, setting)
    mediation.render_density(run, setting)
    render_more(
        "by layer, and all indices",
        partial(mediation.render_drop_density, run, setting),
        partial(mediation.render_spans, run, setting),
        partial(mediation.render_layers, run, setting),
        partial(mediation.render_indices, run, setting),
    )
    render_more("one item", partial(_render_item, run, setting), **ITEM_SECTION)
    mediation.render_mediation_notes(setting)


def _render_item(run: RunView, setting: Setting) -> None:
    item = select_item(run)
    if item is not None:
        mediation_item.render_tokens(run, item, setting)
        mediation_item.render_item_values(run, item, setting)
        mediation_item.render_item_density(run, item, setting)
        mediation_item.render_item_spread(run, item, setting)
        mediation_item.render_draws(run, item, setting)
