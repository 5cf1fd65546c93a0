"""Diversity of approaches to a question."""
