"""Robustness: the effect of a perturbed step on the rest of the chain and on the answer."""

from cotlab.ui import components, run_notes
from cotlab.ui.address import show_tabs
from cotlab.ui.category_split import render_category_split
from cotlab.ui.item import evidence
from cotlab.ui.pickers import pick_run
from cotlab.ui.robustness import composite as robustness_composite
from cotlab.ui.robustness import item as robustness_item
from cotlab.ui.robustness import questions as robustness_questions
from cotlab.ui.robustness import suite as robustness
from cotlab.ui.steps import select_item
from cotlab.ui.verdict_number import render_verdict_line, render_verdict_number

components.render_heading(
    "Robustness", "What does a perturbed step do to the rest of the chain and to the answer?"
)
row = pick_run("robustness", "causal", plan_filter=evidence.has_robustness)
if row is not None:
    render_verdict_line(row.id)
    render_verdict_number(row.id)
    render_category_split(row)
    run_notes.render_run_notes(row)
    is_composite_only = robustness_composite.has_only_composite(row)
    suite_tab, item_tab = show_tabs(["Over the suite", evidence.ITEM_TAB_LABEL])
    if suite_tab.open:
        with suite_tab:
            if is_composite_only:
                robustness_composite.render_composite_suite(row)
            else:
                robustness.render_robustness_suite(row)
            robustness_questions.render_causal_rates(row)
    if item_tab.open:
        with item_tab:
            item = select_item(row)
            if item is not None:
                if is_composite_only:
                    robustness_composite.render_composite_item(row, item)
                else:
                    robustness_item.render_steps_table(row, item)
                    robustness_item.render_perturbed_steps(row, item)
                robustness_item.render_perturbed_questions(row, item)
    robustness.render_robustness_notes(row)
