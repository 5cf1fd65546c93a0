"""The page of an item, and the parts of other pages that show one item."""
