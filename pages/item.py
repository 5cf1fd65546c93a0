"""Item: one question, its chain step by step, and every request and reply behind its scores."""

from cotlab.ui.item import item

run_and_item = item.load_run_and_item()
if run_and_item is not None:
    item.render_item_page(*run_and_item)
