"""The tab Decisions."""
