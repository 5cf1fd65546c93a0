"""The page Robustness."""
