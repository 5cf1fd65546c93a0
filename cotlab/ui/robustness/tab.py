"""The tab Robustness of a run: perturbed steps and questions, over the suite and in one item."""

from __future__ import annotations

from functools import partial

from cotlab.analysis.view import RunView
from cotlab.ui.more import ITEM_SECTION, render_more
from cotlab.ui.pickers import select_item
from cotlab.ui.robustness import item as robustness_item
from cotlab.ui.robustness import suite
from cotlab.ui.run_notes import render_category_split
from cotlab.ui.verdict_number import render_verdict_number


def render_robustness_tab(run: RunView) -> None:
    """Show the effect of a perturbed step on the rest of the chain and on the answer."""
    render_verdict_number(run.id)
    render_category_split(run)
    if suite.has_only_composite(run):
        suite.render_composite_suite(run)
    else:
        suite.render_robustness_suite(run)
    suite.render_causal_rates(run)
    render_more("one item", partial(_render_item, run), **ITEM_SECTION)
    suite.render_robustness_notes(run)


def _render_item(run: RunView) -> None:
    item = select_item(run)
    if item is None:
        return
    if suite.has_only_composite(run):
        suite.render_composite_item(run, item)
    else:
        robustness_item.render_steps_table(run, item)
        robustness_item.render_perturbed_steps(run, item)
    robustness_item.render_perturbed_questions(run, item)
