"""The page Item, and the parts of other pages that show one item."""
