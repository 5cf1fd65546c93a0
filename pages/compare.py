"""Compare: runs against a base, over the items that they share."""

from cotlab.ui import compare
from cotlab.ui import components as parts

parts.head("Compare", "What changed against the base, on the same items?")
found = compare.found()
if found is not None:
    compare.matched(found)
    compare.figures(found)
    compare.table(found)
    compare.consistency(found)
    one = compare.pick_metric(found)
    compare.categories(found, one)
    compare.changed_items(found, one)
    compare.missing(found, one)
    compare.settings(found)
    compare.fine_print(found)
