"""Compare: what differs between two runs, item by item, with both chains side by side."""

from cotlab.ui import compare
from cotlab.ui.pair import runs

choice = runs.select_runs()
if choice is not None:
    runs.render_pair(choice)
    view = compare.select_comparison(choice) if runs.is_open_more(choice) else None
    if view is not None:
        compare.render_matched_items(view)
        compare.render_differences(view)
        compare.render_comparison_table(view)
        compare.render_directions(view)
        metric_choice = compare.select_compared_metric(view)
        compare.render_category_differences(view, metric_choice)
        compare.render_changed_items(view, metric_choice)
        compare.render_missing_items(view, metric_choice)
        compare.render_plan_differences(view)
        compare.render_comparison_notes(view)
