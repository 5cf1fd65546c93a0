"""The tab Robustness."""
