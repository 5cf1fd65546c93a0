"""The page Compare: one sentence on two runs, their items, and two chains side by side."""
