"""Unfaithfulness: how often each model's responses are unfaithful, by named classifiers."""

from functools import partial

from cotlab.ui import components, unfaithfulness
from cotlab.ui.category_split import render_category_split
from cotlab.ui.more import render_more
from cotlab.ui.verdict_number import render_verdict_line, render_verdict_number

components.render_heading(
    "Unfaithfulness",
    "How often does the chain not show how the answer was reached, by which classifier?",
)
view = unfaithfulness.select_unfaithfulness_runs()
if view is not None:
    if len(view.row_by_run) == 1:
        render_verdict_line(view.first_run)
    render_verdict_number(view.first_run)
    for row in view.row_by_run.values():
        render_category_split(row, names_run=len(view.row_by_run) > 1)
    unfaithfulness.render_unfaithful_rates(view)
    if not view.shows_all:
        unfaithfulness.render_threshold_sweep(view)
    thresholds = [partial(unfaithfulness.render_threshold_sweep, view)] if view.shows_all else []
    render_more(
        f"{'by threshold, ' if thresholds else ''}by category, agreement of the classifiers, judge,"
        " and length of the chains",
        *thresholds,
        partial(unfaithfulness.render_category_rates, view),
        partial(unfaithfulness.render_classifier_agreement, view),
        partial(unfaithfulness.render_judges, view),
        partial(unfaithfulness.render_chain_sizes, view),
    )
    unfaithfulness.render_unfaithfulness_notes(view)
