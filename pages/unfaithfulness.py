"""Unfaithfulness: how often each model's responses are unfaithful, by named classifiers."""

from cotlab.ui import components, unfaithfulness

components.head(
    "Unfaithfulness",
    "How often does the chain not show how the answer was reached, by which classifier?",
)
view = unfaithfulness.select_unfaithfulness_runs()
if view is not None:
    unfaithfulness.render_rates(view)
    unfaithfulness.render_sweep(view)
    unfaithfulness.render_category_rates(view)
    unfaithfulness.render_classifier_agreement(view)
    unfaithfulness.render_judges(view)
    unfaithfulness.render_chain_sizes(view)
    unfaithfulness.render_unfaithfulness_notes(view)
