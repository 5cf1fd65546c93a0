"""The tab Reliability."""
