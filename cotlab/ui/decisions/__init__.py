"""The page Decisions."""
