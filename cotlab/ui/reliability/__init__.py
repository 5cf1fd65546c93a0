"""The page Reliability."""
