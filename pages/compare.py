"""Compare: differences between runs and a base, over the items that they share."""

from cotlab.ui import compare, compare_items, components

components.head("Compare", "What changed against the base, on the same items?")
view = compare.select_comparison()
if view is not None:
    compare.render_matched_items(view)
    compare.render_differences(view)
    compare.render_comparison_table(view)
    compare.render_directions(view)
    choice = compare_items.select_compared_metric(view)
    compare_items.render_category_differences(view, choice)
    compare_items.render_changed_items(view, choice)
    compare_items.render_missing_items(view, choice)
    compare_items.render_plan_differences(view)
    compare.render_comparison_notes(view)
