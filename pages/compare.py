"""Compare: what differs between two runs, item by item, with both chains side by side."""

from functools import partial

from cotlab.ui import compare
from cotlab.ui.more import render_more
from cotlab.ui.pair import runs

choice = runs.select_runs()
if choice is not None:
    runs.render_pair(choice)
    title = "every metric with its test, categories, settings that differ"
    render_more(title, partial(compare.render_all_metrics, choice))
