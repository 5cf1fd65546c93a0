"""Unfaithfulness: how often each model's responses are unfaithful, by named classifiers, and what goes with it."""

from cotlab.ui import components as parts
from cotlab.ui import unfaithfulness

parts.head("Unfaithfulness", "How often does the chain not tell how the answer came about, and who says so?")
shown = unfaithfulness.found()
if shown is not None:
    unfaithfulness.rates(shown)
    unfaithfulness.sweep(shown)
    unfaithfulness.by_category(shown)
    unfaithfulness.agreement(shown)
    unfaithfulness.judges(shown)
    unfaithfulness.chains(shown)
    unfaithfulness.fine_print(shown)
